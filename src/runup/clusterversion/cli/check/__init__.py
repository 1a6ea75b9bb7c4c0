"""`runup check`: what must be so before a preflight or an update, one row a question."""
