"""Applies a release and keeps it applied: what `runup.domain.payload` decides, carried out."""
