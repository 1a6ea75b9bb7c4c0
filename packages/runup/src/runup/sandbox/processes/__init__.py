"""Starts, supervises and stops a sandbox's processes."""
