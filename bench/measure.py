"""Wall time and peak memory of whole processes, and the spread of repeated measurements."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall time in seconds, peak resident set in MiB, exit code."""

    seconds: float
    peak_mib: float
    code: int


def process(argv: Sequence[str], env: dict[str, str] | None = None) -> Run:
    """Run `argv` to its end, output thrown away."""
    started = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as child:
        # wait4 alone gives the memory of this one child.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.perf_counter() - started, usage.ru_maxrss / 1024, child.returncode)


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Minimum, median and maximum."""
    return {
        "min": round(min(values), digits),
        "median": round(statistics.median(values), digits),
        "max": round(max(values), digits),
        "runs": len(values),
    }


def timed(action: Callable[[], object], times: int) -> dict[str, float]:
    """How long `action` takes, in seconds."""
    values = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        values.append(time.perf_counter() - started)
    return spread(values)
