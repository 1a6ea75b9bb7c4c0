"""Comparisons with what is real: nodes, kube-apiserver, Kubernetes' own tests, other tools."""
