"""The `runup checks` commands, which write, test, list and explain checks."""
