"""Asks registries and signature stores about releases, and builds release images."""
