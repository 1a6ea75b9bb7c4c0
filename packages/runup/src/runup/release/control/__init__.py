"""Reads releases from registries and signature stores, and builds release images."""
