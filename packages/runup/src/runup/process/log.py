"""The log of a process that serves: one JSON object a line on stderr, of a limited length, without values of variables.

A variable may hold a token, or 5,000 nodes. An expected error is one line with its reason; a traceback means a bug of
ours.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from typing import Any, TextIO, cast

from kubekit.lang.files import Lossy
from kubekit.lang.text import printable_value

# Limit of a text, in characters: a message may quote megabytes of an answer that cannot be parsed.
MAX_TEXT = 2_000
# Seconds between two lines about the same wait.
WAIT_LOGGED_EVERY_S = 60.0
# Limit of a traceback, in characters. Its middle is cut: the first calls show the loop, the last ones the error.
MAX_TRACEBACK = 6_000


def configure_logging() -> None:
    """Configures logging for this process."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            with_traceback,
            shorten_texts,
            _printable,
            structlog.processors.JSONRenderer(sort_keys=True, default=str),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=cast("TextIO", Lossy(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    # Libraries log, too: asyncio about a task that nobody awaited, aiohttp about a handler that raised.
    logging.basicConfig(handlers=[_Libraries()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


class _Libraries(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def with_traceback(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Adds the current exception as text: calls without variables, and each error of the chain, shortened."""
    exc_info = event.pop("exc_info", None)
    error = (
        exc_info
        if isinstance(exc_info, BaseException)
        else exc_info[1]
        if isinstance(exc_info, tuple)
        else sys.exc_info()[1]
        if exc_info
        else None
    )
    if error is not None:
        event["exception"] = _middle_out("".join(_traceback_lines(error)), MAX_TRACEBACK)
    return event


def shorten_texts(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Returns `event` with long texts shortened."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception":
            event[name] = _middle_out(value, MAX_TEXT)
    return event


def _printable(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escapes control characters in other people's text, so that they stay escaped when a field is printed."""
    escaped: dict[str, Any] = printable_value(dict(event))
    return escaped


def _traceback_lines(error: BaseException) -> Iterator[str]:
    chain = traceback.TracebackException.from_exception(error, capture_locals=False)
    for line in chain.format():
        yield _middle_out(line, MAX_TEXT)


def _middle_out(text: str, limit: int) -> str:
    """Returns a text of at most about `limit` characters: its beginning, how much is left out, its end."""
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    # The beginning and the end say most, so the middle is cut.
    return f"{text[: limit // 2]}... {left_out} characters ...{text[-(limit - limit // 2) :]}"
