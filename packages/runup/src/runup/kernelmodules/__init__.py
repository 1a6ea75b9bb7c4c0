"""Checks whether the cluster's kernel modules will load on the kernel of another release."""
