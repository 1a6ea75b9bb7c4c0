"""Shortens texts for places with size limits, and says how much was left out.

Lengths are bytes as the API server stores them (JSON as Go writes it): a text that fits in bytes fits in characters
too. A text that fits is not changed, so that cutting it again has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.lang.printable import cut_position

# Room for ` ... and 1234567 more characters` and for `... and 1234567 more`.
_ENDING = 40
# The least limit that `cut` takes.
_LEAST_LIMIT = 64


def stored_bytes(text: str) -> int:
    """Returns the number of bytes that `text` takes inside a stored object: Go writes `<`, `>` and `&` as six."""
    data = text.encode("utf-8", "surrogatepass")
    one_more = len(data) - len(data.translate(None, b'"\\\n\t'))
    five_more = len(data) - len(data.translate(None, b"<>&"))
    return len(data) + one_more + 5 * five_more


def cut(text: str, limit: int) -> str:
    """Returns `text` if it takes at most `limit` bytes, else its beginning and the number of characters left out.

    `limit` is at least `_LEAST_LIMIT`.
    """
    if stored_bytes(text) <= limit:
        return text
    end = _fitting_length(text, limit - _ENDING)
    return f"{text[:end]} ... and {len(text) - end} more characters"


def join_within(parts: Sequence[str], separator: str, limit: int) -> str:
    """Returns all `parts` joined, or as many whole ones as fit and the number left out.

    A first part that does not fit is cut.
    """
    whole = separator.join(parts)
    if stored_bytes(whole) <= limit:
        return whole
    if len(parts) == 1:
        return cut(whole, limit)
    room = limit - _ENDING - stored_bytes(separator)
    kept: list[str] = []
    for part in parts:
        part = part if kept else cut(part, max(room, _LEAST_LIMIT))
        room -= stored_bytes(part) + stored_bytes(separator)
        if kept and room < 0:
            break
        kept.append(part)
    more = len(parts) - len(kept)
    return separator.join([*kept, f"... and {more} more"]) if more else separator.join(kept)


def _fitting_length(text: str, limit: int) -> int:
    """Returns the number of characters whose stored form fits in `limit` bytes, by bisection."""
    low, high = 0, min(len(text), max(limit, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if stored_bytes(text[:middle]) <= limit else (low, middle - 1)
    return cut_position(text, low)
