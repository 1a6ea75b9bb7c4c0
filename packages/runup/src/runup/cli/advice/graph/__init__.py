"""The command `runup graph`: builds, serves and shows an update service's graph."""
