"""Renderers of an UpdateStatus: as text, as a log of changes, and as an HTML page."""
