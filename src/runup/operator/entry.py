"""The entry points of `cluster-version-operator` and `kernel-module-preflight`: a stop is obeyed from here on.

The first process of a container gets no signal that it has no handler for. Until the command has its own, which takes
half a second of imports and more on a busy node, whoever stops the pod would wait out its whole grace period.
"""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run a command; the exit code."""
    return _run(sys.argv[1:])


def kernel_modules() -> int:
    """`kernel-module-preflight`, by the name under which its images start it; the exit code."""
    return _run(["kernel-module-preflight", *sys.argv[1:]])


def _run(args: list[str]) -> int:
    signal.signal(signal.SIGTERM, _end)
    from runup.operator.main import main as run

    return run(args)


def _end(_number: int, _frame: FrameType | None) -> None:
    """Nothing has begun: nothing is to be undone, and 0 says that it was told to stop."""
    os._exit(0)
