"""The languages of cluster files: YAML with Kubernetes' scalar rules, CEL, quantities, Go durations.

This is the bottom layer: it imports no other package of runup.
"""
