"""Writes the output of one container to its log, line by line of each stream.

As a container runtime does: what a program writes in pieces, to two streams, is not torn by the other stream. A runner
cannot be left to it: `runc run` copies each stream on its own, in the pieces that it reads.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# A line that is longer is written in parts, so that a container without line feeds costs no more memory than this.
_MAX_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 16


class ContainerLog:
    """The log of a running container: two pipes, read in the event loop, whose lines are appended to one file."""

    def __init__(self, file: Path) -> None:
        """Opens the log and both pipes. Raises OSError."""
        self._file = file.open("ab", buffering=0)
        self._streams: list[_Stream] = []
        try:
            self._streams += (_Stream(self._file), _Stream(self._file))
        except OSError:
            self.close()
            raise

    @property
    def writing_ends(self) -> tuple[int, int]:
        """The descriptors that the container gets as its standard output and standard error."""
        output, errors = self._streams
        return output.writing_end, errors.writing_end

    def started(self) -> None:
        """Begins to read; the container has the writing ends now."""
        for stream in self._streams:
            stream.started()

    def close(self) -> None:
        """Writes what is left in the pipes, and closes them: a process that outlives its container writes no more."""
        for stream in self._streams:
            stream.close()
        self._file.close()


class _Stream:
    """A pipe of the container (stdout or stderr), with the beginning of a line that has not ended yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = b""
        self._reading_end, self.writing_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reading_end, False)

    def started(self) -> None:
        self._close_writing_end()
        asyncio.get_running_loop().add_reader(self._reading_end, self._read_once)

    def close(self) -> None:
        """Writes the rest; it is bounded, since a process that lives on may write for ever."""
        self._close_writing_end()
        for _ in range(_MAX_LINE_BYTES // _READ_BYTES):
            if self._reading_end < 0 or not self._read_once():
                break
        self._write_data(self._line)
        self._line = b""
        self._close_reading_end()

    def _read_once(self) -> bool:
        """Reads once; returns whether there may be more."""
        try:
            data = os.read(self._reading_end, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close_reading_end()
            return False
        lines, feed, last_line = (self._line + data).rpartition(b"\n")
        self._line = last_line
        self._write_data(lines + feed)
        if len(self._line) >= _MAX_LINE_BYTES:
            self._write_data(self._line)
            self._line = b""
        return True

    def _write_data(self, data: bytes) -> None:
        # A full disk costs lines of the log, as it does on a node, and not the container.
        with suppress(OSError):
            while data:
                data = data[self._file.write(data) or len(data) :]

    def _close_reading_end(self) -> None:
        if self._reading_end >= 0:
            asyncio.get_running_loop().remove_reader(self._reading_end)
            os.close(self._reading_end)
            self._reading_end = -1

    def _close_writing_end(self) -> None:
        if self.writing_end >= 0:
            os.close(self.writing_end)
            self.writing_end = -1
