"""Makes a worker of a Dask scheduler a bad one, as `--preload` of `dask worker`: BAD_WORKER says in which way."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import runup

WAY = os.environ.get("BAD_WORKER", "")
if WAY == "version":
    # Before the engine is imported, which compares it.
    runup.__version__ = "0.0.0"

from runup.evaluation import dask_engine  # noqa: E402
from runup.evaluation.workers import DependsOnWorker  # noqa: E402

SLOW_S = 60.0


def read(item: tuple[str, int]) -> int:
    """The square of a number; a worker that is bad does something else."""
    folder, number = item
    if WAY == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if WAY == "folder":
        raise DependsOnWorker(f"cannot read {folder}")
    if WAY == "slow":
        time.sleep(SLOW_S)
    if WAY == "garbage":
        return "garbage"  # type: ignore[return-value]
    Path(folder, f"read-{number}-{os.getpid()}").touch()
    # Long enough that a bad worker has a part of the items.
    time.sleep(0.05)
    return number * number


def _other_form(_task: Any) -> str:
    return "garbage"


if WAY == "other form":
    dask_engine.call_in_worker = _other_form  # type: ignore[assignment]
