"""The operator's log: one JSON object a line on stderr, of a bounded length, without the values of variables.

What a variable holds may be a token, or 5,000 nodes. An error that was to be expected is one line with its reason; a
traceback means a bug of ours.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from typing import Any, TextIO, cast

from kubekit.lang.lossy import Lossy
from kubekit.lang.printable import everywhere

# Of an answer that cannot be read, a message may quote megabytes.
MAX_TEXT = 2_000
# The first calls say which loop it was in, the last ones where it broke.
MAX_TRACEBACK = 6_000


def configure() -> None:
    """Make it so for this process."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            with_traceback,
            bounded,
            _printable,
            structlog.processors.JSONRenderer(sort_keys=True, default=str),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=cast("TextIO", Lossy(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    # What libraries say: asyncio of a task that nobody awaited, aiohttp of a request that no handler survived.
    logging.basicConfig(handlers=[_Libraries()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


class _Libraries(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def with_traceback(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The exception under way as text: calls, no variables, and of each error in the chain its message shortened."""
    given = event.pop("exc_info", None)
    error = (
        given
        if isinstance(given, BaseException)
        else given[1]
        if isinstance(given, tuple)
        else sys.exc_info()[1]
        if given
        else None
    )
    if error is not None:
        event["exception"] = _middle_out("".join(_lines(error)), MAX_TRACEBACK)
    return event


def bounded(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """`event` with long texts shortened."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception":
            event[name] = _middle_out(value, MAX_TEXT)
    return event


def _printable(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What others wrote, as escapes that stay escapes when somebody prints the field."""
    found: dict[str, Any] = everywhere(dict(event))
    return found


def _lines(error: BaseException) -> Iterator[str]:
    told = traceback.TracebackException.from_exception(error, capture_locals=False)
    for line in told.format():
        yield _middle_out(line, MAX_TEXT)


def _middle_out(text: str, limit: int) -> str:
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[: limit // 2]}... {left_out} characters ...{text[-(limit - limit // 2) :]}"
