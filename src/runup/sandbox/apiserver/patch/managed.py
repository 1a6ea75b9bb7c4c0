"""managedFields (being written)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runup.sandbox.apiserver.kinds import Kind


def on_update(tree: Any, kind: Kind, old: Any, new: Any, *, manager: str, now: datetime, subresource: str) -> None:
    """Record who wrote what."""
