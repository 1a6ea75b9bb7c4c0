"""Wall time and peak memory of whole processes, the machine's pace, and the spread of repeated measurements."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall time in seconds, peak resident set in MiB, exit code, processor time (user and system)."""

    seconds: float
    peak_mib: float
    code: int
    cpu_seconds: float = 0.0


# The kernel counts what a parent has resident as a child's peak, up to its exec: a small process must be the parent.
_LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(json.dumps([time.perf_counter() - started, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status),
    usage.ru_utime + usage.ru_stime]))
"""


# Objects as of a list, grouped and sorted: mostly memory, as what is measured is.
_PIECE_OF_WORK = """
import time
started = time.perf_counter()
for turn in range(3):
    rows = [{"name": f"pod-{number}", "number": number, "labels": {"app": number % 100}} for number in range(40_000)]
    named = {}
    for row in rows:
        named.setdefault(row["labels"]["app"], []).append(row["name"])
    in_order = [sorted(names) for names in named.values()]
print(time.perf_counter() - started)
"""
_LOOKS = 5


def pace() -> float:
    """Seconds that a processor takes for a fixed piece of work while all others do it, too: the median of all looks.

    What others on the same machine do is in it: of two runs, that with the smaller pace had more of the machine.
    """
    argv = [sys.executable, "-I", "-S", "-c", _PIECE_OF_WORK]
    seconds = []
    for _ in range(_LOOKS):
        at_once = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
        seconds += [float(each.communicate()[0]) for each in at_once]
    return round(statistics.median(seconds), 3)


def work_mib() -> float:
    """Returns the MiB that the fixed piece of work takes at its peak: what memory is compared with."""
    return round(process([sys.executable, "-I", "-S", "-c", _PIECE_OF_WORK]).peak_mib, 1)


def process(argv: Sequence[str], env: dict[str, str] | None = None) -> Run:
    """Run `argv` (its first word a path) to its end, output thrown away; raises CalledProcessError if that is none."""
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *argv]
    done = subprocess.run(launcher, stdout=subprocess.PIPE, env=env, check=True, text=True)
    return Run(*json.loads(done.stdout))


def compile_bytecode(checkout: Path) -> None:
    """Compile the sources of `checkout`, as an installation does: the sandbox's containers would, and keep nothing."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "compileall",
            "-q",
            *map(str, (*checkout.glob("packages/*/src"), *checkout.glob("src"))),
        ],
        check=True,
    )


def resident_kib(pid: int) -> int:
    """What a process and all below it have resident, in KiB, shared pages by their share."""
    total, waiting = 0, [pid]
    while waiting:
        each = waiting.pop()
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
        except (OSError, StopIteration):
            continue  # it has ended meanwhile
        waiting += map(int, children.split())
    return total


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
