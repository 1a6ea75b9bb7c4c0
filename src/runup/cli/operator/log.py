"""The operator's log: one JSON object a line on stderr, tracebacks as plain text and without the values of variables.

What a variable holds may be a token, or 5,000 nodes.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any

from runup.lang.printable import everywhere


def configure() -> None:
    """Make it so for this process."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _printable,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _printable(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """What others wrote, as escapes that stay escapes when somebody prints the field."""
    found: dict[str, Any] = everywhere(dict(event))
    return found
