"""Pre-update checks of a cluster: what a check is, the built-in checks, and the `runup checks` commands."""
