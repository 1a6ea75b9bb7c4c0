"""What could not be read, for those who need nothing else of a snapshot."""

from __future__ import annotations

import msgspec


class Unreadable(msgspec.Struct, frozen=True):
    """Why a kind could not be read, in words for the administrator."""

    why: str
