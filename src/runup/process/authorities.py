"""The certificate authorities of a mounted file as they are now: it may come late, and is changed while we run."""

from __future__ import annotations

from pathlib import Path

import structlog

from runup.process.stamp import Stamp, stamp_of

log = structlog.get_logger("sources")
# More than any bundle: what is given to a process on its environment is held by an API object.
MAX_BYTES = 256 << 10


class Authorities:
    """Those in the file at `path`; empty where that names none."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._seen: Stamp | None = None
        self._pem = ""
        self._error = ""

    def pem(self) -> str:
        """The file's text, read again when the file is another one; what was read last where it cannot be read now.

        A target is started anew when they change, and a file that is being replaced is no change.
        """
        if self._path is None:
            return ""
        try:
            seen = stamp_of(self._path)
            if seen != self._seen:
                self._pem, self._seen = self._read(self._path, size=seen[2]), seen
            self._error = ""
        except (OSError, UnicodeDecodeError, ValueError) as error:
            if str(error) != self._error:
                log.warning("certificate authorities cannot be read", file=str(self._path), error=str(error))
            self._error = str(error)
        return self._pem

    @staticmethod
    def _read(path: Path, size: int) -> str:
        if size > MAX_BYTES:
            raise ValueError(f"it has {size} bytes; {MAX_BYTES} at most are read")
        return path.read_text(encoding="ascii")
