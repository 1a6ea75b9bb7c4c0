"""Checks of a cluster before an update: what a check is, those that every release carries, and the commands about them."""
