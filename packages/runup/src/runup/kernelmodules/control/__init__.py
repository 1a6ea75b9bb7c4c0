"""Validates kernel modules on a cluster: reads images from registries, starts runs, writes statuses."""
