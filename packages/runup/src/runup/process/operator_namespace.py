"""The namespace of the operator and its records."""

from __future__ import annotations

import os

from runup.process.names import OPERATOR_NAMESPACE


def operator_namespace() -> str:
    """Returns the operator's namespace; CVO_NAMESPACE overrides the default (docs/decisions/0072 D19)."""
    return os.environ.get("CVO_NAMESPACE") or OPERATOR_NAMESPACE
