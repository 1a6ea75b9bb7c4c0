"""How text leaves the process, whatever the terminal's encoding."""

from __future__ import annotations

import io
import sys


def escape_what_cannot_be_encoded() -> None:
    """Outside UTF-8 a character that the terminal lacks is shown as `\\u2192`: output never decides an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
