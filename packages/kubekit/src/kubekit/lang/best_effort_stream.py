"""A stream for logs that drops lines that cannot be written, for example on a full disk.

Logging must not interrupt the work: a process whose log is full goes on, and a line that cannot be written must not end
the loop that wrote it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TextIO


class Lossy:
    """A wrapper of `stream` that ignores its errors; a closed stream (ValueError) counts as full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes `text`, or drops it if that fails."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Writes the buffered text, or keeps it if that fails."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
