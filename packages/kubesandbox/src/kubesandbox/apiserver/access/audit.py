"""The audit log: one audit.k8s.io/v1 event a line for every request, written before its answer is sent."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from kubesandbox.apiserver.http.messages import Request, Response, encode_json
from kubesandbox.apiserver.metadata import JSON, rfc3339
from kubesandbox.apiserver.status_errors import ApiError

_ROOM, _LEAST_ROOM = 1 << 18, 1 << 16
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE (linux/falloc.h)


class AuditLog:
    """The audit log's file. Each request calls `reserve` before it is carried out, and `write` before its answer.

    Both raise OSError if the file cannot be written; the server then refuses the request. An event that could not be
    written is kept, and no request is carried out before it has been.
    """

    def __init__(self, path: Path | None, now: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._file: IO[bytes] | None = None
        self._unwritten, self._room = b"", 0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered, so that a line reaches the kernel before the response is sent, even if this process dies.
            self._file = path.open("ab", buffering=0)
            if not stat.S_ISREG(path.stat().st_mode):
                # A device has no room to reserve: try it once.
                self._unwritten = b"\n"
                self._flush()
        # The clock has whole seconds; events of one second keep their order by the monotonic part.
        base, self._start = now(), monotonic()
        self._monotonic = monotonic
        self._base, self._base_us = base.replace(microsecond=0), base.microsecond
        # The text of a second is made once: it is asked for twice by each request.
        self._second, self._second_text = -1, ""

    def now_text(self) -> str:
        """Returns the present time as a MicroTime."""
        second, microsecond = divmod(self._base_us + int((self._monotonic() - self._start) * 1_000_000), 1_000_000)
        if second != self._second:
            self._second = second
            self._second_text = rfc3339(self._base + timedelta(seconds=second)).removesuffix("Z")
        return f"{self._second_text}.{microsecond:06d}Z"

    def reserve(self) -> None:
        """Writes what an earlier request could not, and reserves room for the next events. Raises OSError."""
        if self._file is None:
            return
        self._flush()
        if self._room < _LEAST_ROOM:
            _allocate(self._file, _ROOM)
            self._room = _ROOM

    def write(
        self,
        request: Request,
        *,
        response: Response,
        received: str,
        audit_id: str,
        failure: ApiError | None,
    ) -> None:
        """Logs one request that is about to be answered. Raises OSError."""
        if self._file is None:
            return
        target = request.target
        event: JSON = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": audit_id,
            "stage": "ResponseStarted" if response.stream else "ResponseComplete",
            "requestURI": request.uri,
            "verb": target.verb,
            "user": request.sender.to_dict() if request.sender else {},
            "sourceIPs": ["127.0.0.1"],
            "userAgent": request.header("user-agent"),
        }
        if request.user is not None and request.user is not request.sender:
            event["impersonatedUser"] = request.user.to_dict()
        if target.is_resource:
            metadata = request.metadata
            pairs = (
                ("resource", target.resource),
                ("namespace", target.namespace or metadata.get("namespace")),
                ("name", target.name or metadata.get("name")),
                ("uid", metadata.get("uid")),
                ("resourceVersion", metadata.get("resourceVersion")),
                ("apiGroup", target.group),
                ("apiVersion", target.version),
                ("subresource", target.subresource),
            )
            event["objectRef"] = {key: value for key, value in pairs if value}
        status: JSON = {"metadata": {}, "code": response.status}
        if failure is not None and failure.reason:
            status |= {"status": "Failure", "message": failure.message, "reason": failure.reason}
        event["responseStatus"] = status
        if request.annotations:
            event["annotations"] = request.annotations
        event["requestReceivedTimestamp"] = received
        event["stageTimestamp"] = self.now_text()
        line = encode_json(event) + b"\n"
        self._room -= len(line)
        self._unwritten += line
        self._flush()

    def _flush(self) -> None:
        while self._file is not None and self._unwritten:
            self._unwritten = self._unwritten[self._file.write(self._unwritten) :]

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with suppress(OSError):
                # Frees the room beyond the last event.
                os.ftruncate(self._file.fileno(), os.fstat(self._file.fileno()).st_size)
            self._file.close()
            self._file = None


def _allocate(file: IO[bytes], count: int) -> None:
    """Reserves `count` bytes after the end of a file without changing its size. Raises OSError if they do not fit."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if function is None:  # not Linux
        return
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if function(file.fileno(), _KEEP_SIZE, os.fstat(file.fileno()).st_size, count):
        code = ctypes.get_errno()
        # Other errors are of file systems and devices that reserve nothing.
        if code in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}:
            raise OSError(code, os.strerror(code), file.name)
