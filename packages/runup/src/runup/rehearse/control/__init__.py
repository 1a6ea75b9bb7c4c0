"""Creates a copy of a cluster, applies a release to it, and reports the result for every object."""
