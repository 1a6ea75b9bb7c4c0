"""The languages that cluster files are written in: YAML with Kubernetes' scalar rules, CEL, quantities, Go durations.

Bottom layer: imports nothing of runup's.
"""
