"""Simulates the drains of an update: evictions, new nodes of pods, downtimes, and the duration. Pure."""
