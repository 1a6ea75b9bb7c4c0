"""Replaces pytest-kind: its cluster is the server that KUBECONFIG names."""
