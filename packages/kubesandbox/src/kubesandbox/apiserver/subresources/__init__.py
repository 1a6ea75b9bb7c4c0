"""Subresources and reviews: eviction, logs, scale, token, binding and finalize."""
