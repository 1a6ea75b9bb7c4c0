"""A release being applied: which task comes when, what went wrong, how far it is. Decided here, done elsewhere."""
