"""Decides from values whether the out-of-tree kernel modules of Modules will load on another kernel. No I/O."""
