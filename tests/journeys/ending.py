"""Sandboxes that end while the tests continue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

END_S = 90
# The folder is $0, the command that ends the sandbox the arguments.
_THEN_REMOVE = '"$@"; rm -rf -- "$0"'
_ending: list[subprocess.Popen[bytes]] = []


def end(data: Path, folder: Path | None = None) -> None:
    """Ends the sandbox in `data`, if one runs, and removes `folder`, by default `data`; waits for neither."""
    stop = [sys.executable, "-m", "runup", "sandbox", "stop", "--data", str(data)]
    _ending.append(
        subprocess.Popen(
            ["sh", "-c", _THEN_REMOVE, str(folder or data), *stop],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C ends the tests, and must not leave their sandboxes behind.
            start_new_session=True,
        )
    )


def wait() -> None:
    """Waits until every sandbox has ended that was to."""
    while _ending:
        _ending.pop().wait(END_S)
