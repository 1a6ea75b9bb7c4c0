"""Installs, upgrades and removes the components of runup on a cluster."""
