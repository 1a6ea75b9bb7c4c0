"""Applies the manifests of a release to the cluster, and keeps the cluster's objects as the release has them."""
