"""Names that insights are written with and read by, and the few ways in which texts are made of parts."""

from __future__ import annotations

from collections.abc import Sequence

from runup.updatestatus.decide.limits import UNBOUNDED

UPDATING, HEALTHY, AVAILABLE, DEGRADED = "Updating", "Healthy", "Available", "Degraded"
INSTALLATION, PARTIAL, ARCHITECTURE, MULTI = "Installation", "Partial", "Architecture", "Multi"
UNKNOWN_VERSION = "unknown"

INFORMER = "update-status-controller"
"""Who writes our insights, by the name in the report."""

VERSION_LIMIT = 64
REASON_LIMIT = 1024
"""In characters, by the API."""


def cut(text: str, limit: int) -> str:
    """`text`, or as much of it as leaves room to say how much is missing."""
    if len(text) <= limit:
        return text
    end = f"... ({len(text)} characters in all)"
    return text[: limit - len(end)] + end


def room(limit: int, text: int) -> int:
    """The API's `limit` of a field, or no limit for a status that leaves nothing out (`text` characters of it)."""
    return text if text >= UNBOUNDED.text else limit


def qualified(namespace: str, name: str) -> str:
    """A namespaced object's name as kubectl's users write it."""
    return f"{namespace}/{name}"


def listed(noun: str, names: Sequence[str]) -> str:
    """The one of that name, or how many there are."""
    return f"{noun} {names[0]}" if len(names) == 1 else f"{len(names)} {noun}s"
