"""Decides the contents of the console's pages and which requests it answers. Pure."""
