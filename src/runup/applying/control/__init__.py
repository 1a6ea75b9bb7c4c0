"""Applies a release and keeps it applied: what `runup.applying.decide` decides, carried out."""
