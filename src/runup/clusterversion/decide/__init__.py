"""ClusterVersion: what is asked for, what is answered. `reconcile` is the one place that decides its status."""
