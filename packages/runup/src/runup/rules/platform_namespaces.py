"""Reports the platform's namespaces from those of users."""

from __future__ import annotations


def is_system(namespace: str) -> bool:
    """Returns whether the namespace belongs to the platform."""
    return namespace.startswith(("openshift-", "kube-")) or namespace == "openshift"
