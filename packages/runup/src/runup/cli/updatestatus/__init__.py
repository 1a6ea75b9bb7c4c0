"""The command `runup upgrade status`: builds an UpdateStatus from a cluster, a dump or files, and prints it."""
