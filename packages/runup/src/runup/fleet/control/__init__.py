"""Finds the clusters of a fleet and reads each of them in a separate process."""
