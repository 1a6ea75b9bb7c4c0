"""How `runup` begins and ends: what its scripts call, before anything else is imported.

A command lives for a tenth of a second and nearly everything that it makes stays until it ends. Left to itself the
garbage collector walks those objects again and again while modules are loaded, and three times more at the end: a
sixth of the whole command (docs/decisions/0043-a-command-in-five-interpreters.md).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from runup.cli.startup import late

_ALLOCATIONS = 200_000
"""New objects until the collector looks: no short command makes as many, a long one (`--watch`) stays bounded."""


def runup() -> int:
    """The command `runup`; returns its exit code."""
    return _command("runup")


def plugin() -> int:
    """The same called through `kubectl runup` or `oc runup`, whose name help and errors then show."""
    host, _, name = os.path.basename(sys.argv[0]).partition("-")  # noqa: PTH119 (pathlib is not needed to start)
    return _command(f"{host} {name}" if name else host)


def _command(prog: str) -> int:
    gc.set_threshold(_ALLOCATIONS)
    late.install()
    from runup.cli.main import main

    code = main(prog=prog)
    _leave(code)
    gc.freeze()
    return code


def _leave(code: int) -> None:
    """End the process where nothing is left to do at its end: then Python only takes apart what nobody will miss.

    Returns where somebody asked to be called at the end, a thread still runs, or output could not be written.
    """
    if atexit._ncallbacks() or len(sys._current_frames()) > 1:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code)
