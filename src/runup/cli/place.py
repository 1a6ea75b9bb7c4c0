"""Where the operator and its records live."""

from __future__ import annotations

import os

NAMESPACE = "openshift-cluster-version-operator"


def operator_namespace() -> str:
    """The operator's namespace; CVO_NAMESPACE moves it (decision D19)."""
    return os.environ.get("CVO_NAMESPACE") or NAMESPACE
