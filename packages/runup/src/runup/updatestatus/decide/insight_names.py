"""Names that insights are written with and read by, and helpers that compose texts."""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.lang.text import shorten
from runup.updatestatus.decide.limits import UNBOUNDED

UPDATING, HEALTHY, AVAILABLE, DEGRADED = "Updating", "Healthy", "Available", "Degraded"
INSTALLATION, PARTIAL, ARCHITECTURE, MULTI = "Installation", "Partial", "Architecture", "Multi"
UNKNOWN_VERSION = "unknown"

INFORMER = "update-status-controller"
"""The informer name of this controller in the report."""

VERSION_LIMIT = 64
REASON_LIMIT = 1024
"""In characters, by the API."""


def cut(text: str, limit: int) -> str:
    """Returns `text`, cut at `limit` characters with a note of how long it was."""
    return shorten(text, limit, mark=f"... ({len(text)} characters in all)")


def limit_or_unbounded(limit: int, text: int) -> int:
    """Returns the API's `limit` of a field, or `text` if the status is not limited at all."""
    return text if text >= UNBOUNDED.text else limit


def qualified(namespace: str, name: str) -> str:
    """Returns the name of a namespaced object as users of kubectl write it."""
    return f"{namespace}/{name}"


def name_or_number(noun: str, names: Sequence[str]) -> str:
    """Returns the noun with the only name, or the number of names."""
    return f"{noun} {names[0]}" if len(names) == 1 else f"{len(names)} {noun}s"
