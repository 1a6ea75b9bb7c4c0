"""Splits a stream of chunks into lines, in time proportional to its length however long a line is."""

from __future__ import annotations

from kubekit.kube.api_errors import Transient

# An object in etcd has at most 1.5 MiB, its JSON event not much more than twice that: a longer line is not an event.
LONGEST_LINE = 64 * 1024 * 1024


class Lines:
    """Splits chunks into lines. The text after the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines completed by `chunk`, without newlines and empty lines. Raises Transient beyond 64 MiB."""
        first, newline, rest = chunk.partition(b"\n")
        self._parts.append(first)
        self._length += len(first)
        if self._length > LONGEST_LINE:
            raise Transient(f"a line of a watch is longer than {LONGEST_LINE} bytes", reason="LineTooLong")
        if not newline:
            return []
        # The parts of a line are joined once: appending bytes would copy a long line for every chunk.
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        self._parts = [lines.pop()]
        self._length = len(self._parts[0])
        return [line for line in lines if line.strip()]
