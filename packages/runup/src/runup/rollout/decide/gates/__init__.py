"""The gates of an update: one module for each group, and the conjunction of all."""
