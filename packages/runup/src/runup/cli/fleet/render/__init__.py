"""Renders the results of a fleet; pure."""
