"""A stream for logs that loses lines where it cannot be written, such as on a full disk.

What is logged is told beside the work: a process whose log has no room does its work all the same, and a line that
cannot be written must not end the loop that wrote it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TextIO


class Lossy:
    """`stream`, whose errors are nobody's business; a closed one (ValueError) counts as full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or lose, `text`."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write, or go on keeping, what is buffered."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
