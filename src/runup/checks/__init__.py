"""Checks of a cluster before an update: what a check is, those of every release, and the commands about them."""
