"""Many clusters at once: which they are, their preflights, updates and recommendations side by side."""
