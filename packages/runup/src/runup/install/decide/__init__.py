"""Decides from values which objects a component consists of on a cluster, and what is removed. No I/O."""
