"""Decisions about releases: reads payloads, selects manifests, compares releases."""
