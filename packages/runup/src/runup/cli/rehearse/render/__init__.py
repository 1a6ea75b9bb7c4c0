"""Renders the plan of changes of a rehearsal."""
