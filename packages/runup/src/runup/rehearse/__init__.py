"""Rehearses an update on a copy of the cluster: the release is applied to the copy, and nothing else is written."""
