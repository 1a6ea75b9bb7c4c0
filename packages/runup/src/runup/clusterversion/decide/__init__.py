"""Decides what a ClusterVersion requests and what its status says; only `reconcile` decides the status."""
