"""Tasks for the workers of the tests: a task reports its start and waits for permission to end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.servers import eventually

from runup.evaluation.workers import DependsOnWorker

# Who gave garbage, and the end of what blocks, of workers in the test's own process.
GARBLED: list[str] = []
LET_GO = threading.Event()


def square(item: tuple[str, int]) -> int:
    """The square of a number, as soon as the file `go` is in the folder; who has begun is written there."""
    folder, number = Path(item[0]), item[1]
    (folder / f"began-{number}-{os.getpid()}").touch()
    eventually((folder / "go").exists, "the test lets go")
    return number * number


def broken(number: int) -> int:
    """An error for odd numbers."""
    if number % 2:
        raise RuntimeError(f"{number} is odd")
    return number


def various(number: int) -> int:
    """The number; 1 is an error, 2 depends on the worker, and the first worker that has 3 gives another type."""
    from distributed import get_worker

    if number == 1:
        raise RuntimeError("1 is odd")
    if number == 2:
        raise DependsOnWorker("cannot read 2")
    if number == 3 and get_worker().address in (GARBLED or [get_worker().address]):
        GARBLED[:] = [get_worker().address]
        return "3"  # type: ignore[return-value]
    return number


def blocked(number: int) -> int:
    """The number, once the test lets go."""
    LET_GO.wait(30)
    return number
