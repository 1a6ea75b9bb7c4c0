"""Computes all insights of an UpdateStatus from one snapshot of the cluster. Pure."""
