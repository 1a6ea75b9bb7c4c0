"""Queries the update service and Prometheus, and holds their answers for the decisions."""
