"""Installs what runup keeps on a cluster, upgrades it in place, and removes it without a trace."""
