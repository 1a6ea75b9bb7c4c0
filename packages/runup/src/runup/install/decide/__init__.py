"""Decides which objects a component consists of on a cluster, and which are removed. No I/O."""
