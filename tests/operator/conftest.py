"""The operator's commands configure the process's log: each test puts it back."""

from __future__ import annotations

from tests.process.logs import logs

__all__ = ["logs"]
