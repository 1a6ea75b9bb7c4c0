"""The audit log: one audit.k8s.io/v1 event a line, for every request, written once it has been answered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import orjson

from kubesandbox.apiserver.http.messages import Request, Target, User
from kubesandbox.apiserver.metadata import JSON, new_uid, rfc3339


class AuditLog:
    """The audit log's file. If it cannot be written, events are lost, but requests succeed."""

    def __init__(self, path: Path | None, now: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._file: IO[bytes] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered, so that a line reaches the kernel before the response is sent, even if this process dies.
            self._file = path.open("ab", buffering=0)
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

    def write(
        self,
        request: Request,
        target: Target,
        *,
        uri: str,
        status: int,
        received: str,
        stage: str = "ResponseComplete",
        audit_id: str = "",
        user: User | None = None,
        impersonated: User | None = None,
        reason: str = "",
        message: str = "",
    ) -> None:
        """Logs one answered request."""
        if self._file is None:
            return
        event: JSON = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": audit_id or new_uid(),
            "stage": stage,
            "requestURI": uri,
            "verb": target.verb,
            "user": user.to_dict() if user else {},
            "sourceIPs": ["127.0.0.1"],
            "userAgent": request.header("user-agent"),
        }
        if impersonated is not None:
            event["impersonatedUser"] = impersonated.to_dict()
        if target.is_resource:
            pairs = (
                ("resource", target.resource),
                ("namespace", target.namespace),
                ("name", target.name),
                ("apiGroup", target.group),
                ("apiVersion", target.version),
                ("subresource", target.subresource),
            )
            event["objectRef"] = {key: value for key, value in pairs if value}
        response: JSON = {"metadata": {}, "code": status}
        if reason:
            response |= {"status": "Failure", "message": message, "reason": reason}
        event["responseStatus"] = response
        if request.annotations:
            event["annotations"] = request.annotations
        event["requestReceivedTimestamp"] = received
        event["stageTimestamp"] = self.now_text()
        with suppress(OSError):
            self._file.write(orjson.dumps(event) + b"\n")

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
