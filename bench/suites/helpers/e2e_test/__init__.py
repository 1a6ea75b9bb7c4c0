"""Replaces the helpers of the Kubernetes client's tests, which its source distribution lacks."""
