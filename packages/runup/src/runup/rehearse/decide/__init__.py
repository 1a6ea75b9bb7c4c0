"""Decides what a rehearsal found: changes by object, rights, lost fields, and the report of it all."""
