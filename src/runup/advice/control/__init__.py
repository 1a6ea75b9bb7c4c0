"""Asks the update service and Prometheus; what they said is observed."""
