"""The operator's log: one JSON object a line on stderr, tracebacks as plain text and without the values of variables.

What a variable holds may be a token, or 5,000 nodes.
"""

from __future__ import annotations

import sys


def configure() -> None:
    """Make it so for this process."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
