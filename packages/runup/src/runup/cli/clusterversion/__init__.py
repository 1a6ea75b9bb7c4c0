"""`runup upgrade`, `rollback` and `check`: commands that read and edit ClusterVersion."""
