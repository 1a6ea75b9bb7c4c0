"""Decides which clusters a fleet has, and what their results have in common; pure."""
