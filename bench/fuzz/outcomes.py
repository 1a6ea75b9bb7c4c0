"""What may come of a fuzzed input, and where its files are; for `bench.fuzz`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

ACCEPTED, REFUSED = "accepted", "refused"
# A folder in memory where there is one: a busy disk would be measured otherwise.
_MEMORY = Path("/dev/shm")
FOLDER = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
# Characters: a status, a log and a terminal take as much.
_LONGEST = 1 << 16


class Wrong(Exception):
    """The reader ended in order, but not as it should."""


def check_text(refusal: str) -> str:
    """Returns REFUSED. Raises Wrong for a refusal that nobody could show."""
    if not refusal or len(refusal) > _LONGEST:
        raise Wrong(f"refused in {len(refusal)} characters: {refusal[:100]!r}")
    try:
        refusal.encode()
    except UnicodeEncodeError as error:
        raise Wrong(f"refused in words that no status can take: {refusal[:200]!r}") from error
    return REFUSED
