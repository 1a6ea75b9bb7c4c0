"""Fetches other releases for the operator, by a Pod on its node or straight from a registry."""
