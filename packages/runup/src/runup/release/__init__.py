"""Releases: their images, payloads, signatures, and which manifest a cluster gets."""
