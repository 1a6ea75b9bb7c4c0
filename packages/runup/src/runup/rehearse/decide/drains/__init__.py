"""Simulates the drains of an update: which pods go when and where, what is down, how long it takes. Pure."""
