"""Decides. Pure functions from values to values: no clock, network, file, log or random number."""
