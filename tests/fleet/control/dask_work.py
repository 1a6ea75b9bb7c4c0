"""Tasks for the workers of the tests: a task reports its start and waits for permission to end."""

from __future__ import annotations

import os
from pathlib import Path

from tests.servers import eventually


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
