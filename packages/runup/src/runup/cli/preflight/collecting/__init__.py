"""Collects a dump of what the checks read: `runup dump collect`."""
