"""Starts and ends `runup`: its scripts call this before anything else is imported.

A command runs for a tenth of a second and nearly all of its objects live until it ends. By default the garbage
collector walks those objects again and again while modules are loaded, and three more times at the end: a sixth of the
whole command (docs/decisions/0043-a-command-in-five-interpreters.md).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from runup import __version__

TYPE_CHECKING = False  # `typing` is not needed to start
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_ALLOCATIONS = 200_000
"""New objects before the collector runs: more than a short command creates; a long one (`--watch`) stays bounded."""


def runup() -> int:
    """Runs the command `runup` and returns its exit code."""
    return _command("runup")


def plugin() -> int:
    """Runs `runup` as `kubectl runup` or `oc runup`, whose name help and errors then show."""
    host, _, name = os.path.basename(sys.argv[0]).partition("-")  # noqa: PTH119 (pathlib is not needed to start)
    return _command(f"{host} {name}" if name else host)


def _command(prog: str) -> int:
    """Runs `runup` with a fast start, and returns the exit code."""
    # A standard stream that the caller has closed (`>&-`) reads or writes nothing. Otherwise the first file that is
    # opened gets its number: what is meant for the terminal would be written there.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    if sys.argv[1:] in (["version"], ["--version"]) and _print_version():
        leave_at_once(0)
        return 0
    gc.set_threshold(_ALLOCATIONS)
    try:
        with InterruptibleImports():
            # Before the first import of a module that must be delayed, and not for `version`: it takes `typing`.
            from runup.cli.startup import lazy_imports

            lazy_imports.install()
            from runup.cli.main import main
        code = main(prog=prog)
    except KeyboardInterrupt:  # before or after what `main` guards
        code = INTERRUPTED
    leave_at_once(code)
    # What is left is not examined once more at the end of the interpreter.
    gc.freeze()
    return code


class InterruptibleImports:
    """Ends the process on SIGINT while modules are imported, when Python might only print the exception."""

    def __enter__(self) -> None:
        import signal

        self._is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_handled:
            signal.signal(signal.SIGINT, _leave_interrupted)

    def __exit__(self, *_error: object) -> None:
        import signal

        if self._is_handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave_interrupted(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a signal handler's signature)
    """Ends the process as a shell reports an interrupt."""
    os._exit(INTERRUPTED)


def _print_version() -> bool:
    """Prints what `runup version` prints, and returns whether it could; the command itself reports why not.

    Scripts ask for the version before anything else, and to import click alone takes longer than the whole answer.
    """
    line = f"Client Version: {__version__}\n".encode()
    try:
        # Past the buffer, in which what could not be written would stay.
        return os.write(sys.stdout.fileno(), line) == len(line)
    except (OSError, ValueError):
        return False


def leave_at_once(code: int) -> None:
    """Ends the process at once if nothing is left to do, which saves the time in which Python frees its objects.

    Returns if an exit handler is registered, a thread still runs, or output could not be written.
    """
    if atexit._ncallbacks() or len(sys._current_frames()) > 1:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code)
