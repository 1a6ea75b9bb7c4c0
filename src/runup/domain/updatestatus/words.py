"""Names that insights are written with and read by, and the one way in which a text is shortened."""

from __future__ import annotations

from runup.domain.updatestatus.limits import UNBOUNDED

UPDATING, HEALTHY, AVAILABLE, DEGRADED = "Updating", "Healthy", "Available", "Degraded"
INSTALLATION, PARTIAL, ARCHITECTURE, MULTI = "Installation", "Partial", "Architecture", "Multi"
UNKNOWN_VERSION = "unknown"

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
