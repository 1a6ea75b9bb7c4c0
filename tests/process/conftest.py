"""The log is configured for the whole process: each test puts it back."""

from __future__ import annotations

from tests.process.logs import logs

__all__ = ["logs"]
