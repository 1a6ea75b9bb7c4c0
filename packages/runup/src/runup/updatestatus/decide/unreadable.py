"""The marker of an input that could not be read, for callers that need nothing else of a snapshot."""

from __future__ import annotations

import msgspec


class Unreadable(msgspec.Struct, frozen=True):
    """The reason why a kind could not be read, in words for the administrator."""

    why: str
