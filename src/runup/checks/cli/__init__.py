"""`runup checks`: checks are written, tested and listed."""
