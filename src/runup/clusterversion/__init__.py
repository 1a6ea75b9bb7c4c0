"""ClusterVersion: the one reconcile that decides its status, the loop around it, and the commands that edit it."""
