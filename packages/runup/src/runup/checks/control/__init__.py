"""Reads and writes the files of checks."""
