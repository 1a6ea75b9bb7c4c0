"""Makes the copy of a cluster, applies a release to it, and looks at what became of every object."""
