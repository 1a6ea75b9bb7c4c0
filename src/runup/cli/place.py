"""Where the operator and its records live."""

from __future__ import annotations

import os

from runup.process.names import OPERATOR_NAMESPACE


def operator_namespace() -> str:
    """The operator's namespace; CVO_NAMESPACE moves it (decision D19)."""
    return os.environ.get("CVO_NAMESPACE") or OPERATOR_NAMESPACE
