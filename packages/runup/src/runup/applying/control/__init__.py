"""Applies a release and keeps it applied: the I/O that carries out what `runup.applying.decide` decides."""
