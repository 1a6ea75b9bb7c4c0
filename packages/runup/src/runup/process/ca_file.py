"""Reads certificate authorities from a mounted file, which may appear late and changes while the process runs."""

from __future__ import annotations

from pathlib import Path

import structlog

from kubekit.lang.files import FileVersion, stamp_of

log = structlog.get_logger("sources")
# Larger than any bundle. It is passed to a process in an environment variable, and so stored in an API object.
MAX_BYTES = 256 << 10


class Authorities:
    """The certificate authorities in the file at `path`; empty if that is."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._seen: FileVersion | None = None
        self._pem = ""
        self._error = ""

    def pem(self) -> str:
        """Returns the file's text, read again whenever the file changes; the last text if it cannot be read now.

        A changed text restarts the target, and a file that is just being replaced must not.
        """
        if self._path is None:
            return ""
        try:
            stamp = stamp_of(self._path)
            if stamp != self._seen:
                self._pem, self._seen = self._read_within_limit(self._path, size=stamp[2]), stamp
            self._error = ""
        except (OSError, UnicodeDecodeError, ValueError) as error:
            if str(error) != self._error:
                log.warning("certificate authorities cannot be read", file=str(self._path), error=str(error))
            self._error = str(error)
        return self._pem

    @staticmethod
    def _read_within_limit(path: Path, size: int) -> str:
        if size > MAX_BYTES:
            raise ValueError(f"it has {size} bytes; {MAX_BYTES} at most are read")
        return path.read_text(encoding="ascii")
