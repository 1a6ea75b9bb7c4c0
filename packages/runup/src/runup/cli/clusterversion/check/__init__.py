"""`runup check`: the prerequisites of a preflight or an update, one row each."""
