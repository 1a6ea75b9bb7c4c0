"""A release applied and kept applied: its manifests in, the cluster's objects as they should be."""
