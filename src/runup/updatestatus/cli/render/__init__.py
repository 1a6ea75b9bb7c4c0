"""An UpdateStatus as text, as a log of changes, and as a page."""
