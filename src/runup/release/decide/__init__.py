"""Decides about releases: payloads read, manifests chosen, releases compared."""
