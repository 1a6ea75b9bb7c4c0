"""ClusterVersion: the reconcile function that decides its status, its controller, and the commands that edit it."""
