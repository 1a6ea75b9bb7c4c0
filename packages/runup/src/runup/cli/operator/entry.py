"""The entry points of `cluster-version-operator` and `kernel-module-preflight`, which handle signals from the start.

The first process of a container gets no signal without a handler for it. Until the command installs its own, which
takes half a second of imports and more on a busy node, a deleted pod would wait for its whole grace period.
"""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Runs a command and returns its exit code."""
    return _run_program(sys.argv[1:])


def kernel_modules() -> int:
    """Runs `kernel-module-preflight`, by the name under which its images start it, and returns the exit code."""
    return _run_program(["kernel-module-preflight", *sys.argv[1:]])


def _run_program(args: list[str]) -> int:
    """Runs the program with `args`, and returns its exit code."""
    # Before the imports of `run`: they take most of the start.
    signal.signal(signal.SIGTERM, _exit_at_once)
    from runup.cli.startup.start import INTERRUPTED, InterruptibleImports

    try:
        with InterruptibleImports():
            from runup.cli.startup import lazy_imports, plain_logs

            plain_logs.leave_rich_out()
            lazy_imports.install()
            from runup.cli.operator.main import main as run
        return run(args)
    except KeyboardInterrupt:  # before or after what `run` guards
        return INTERRUPTED


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    """Exits with 0, the code of a requested stop: nothing has begun, so nothing has to be undone."""
    os._exit(0)
