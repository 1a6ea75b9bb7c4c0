"""Wall time of whole commands, as multiples of a bare interpreter that runs in turns with them; memory of the least.

`upgrade status` reads the files that `oc` has for its own tests; the live commands ask a sandbox on this machine, whose
API server is part of their time (aims: 5.5 bare interpreters; `runup version` under 100 ms and 40 MiB). Commands are
measured with byte code in place, as an installation has it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import Run, process, spread

ROUNDS = 21
FILES = Path(__file__).parents[2] / "shared" / "corpus" / "oc-status"
RUNUP = str(Path(sys.executable).with_name("runup"))
BARE = [sys.executable, "-c", "pass"]


def run() -> dict[str, Any]:
    """Every command in turns with the bare interpreter."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    version, floor = _in_turns([RUNUP, "version"], env)
    ratios = {"version": _ratio(version, floor)}
    cases = sorted(FILES.glob("*-cv.yaml"))
    if cases:
        pairs = [_in_turns([RUNUP, "upgrade", "status", "--mock-clusterversion", str(case)], env, 7) for case in cases]
        ratios["upgrade status, files"] = _ratio([r for a, _ in pairs for r in a], [r for _, b in pairs for r in b])
    with _sandbox(env) as live:
        for name in ("upgrade", "upgrade status"):
            ratios[f"{name}, sandbox"] = _ratio(*_in_turns([RUNUP, *name.split()], live))
    return {
        "times_a_bare_interpreter": ratios,
        "runup_version_seconds": spread([each.seconds for each in version]),
        "runup_version_peak_mib": spread([each.peak_mib for each in version], 1),
        "bare_interpreter_seconds": spread([each.seconds for each in floor]),
        "bare_interpreter_peak_mib": spread([each.peak_mib for each in floor], 1),
    }


def _in_turns(command: Sequence[str], env: dict[str, str], rounds: int = ROUNDS) -> tuple[list[Run], list[Run]]:
    process(command, env)  # the first run writes byte code
    pairs = [(process(command, env), process(BARE, env)) for _ in range(rounds)]
    assert all(command_run.code == 0 for command_run, _ in pairs), command
    return [each for each, _ in pairs], [each for _, each in pairs]


def _ratio(command: Sequence[Run], floor: Sequence[Run]) -> float:
    medians = [statistics.median([each.seconds for each in runs]) for runs in (command, floor)]
    return round(medians[0] / medians[1], 2)


@contextmanager
def _sandbox(env: dict[str, str]) -> Iterator[dict[str, str]]:
    """The environment of a sandbox's user; the sandbox is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="runup-bench-") as folder:
        data = ["--data", str(Path(folder, "sandbox"))]
        subprocess.run([RUNUP, "sandbox", "start", *data], env=env, check=True, stdout=subprocess.DEVNULL)
        try:
            yield env | {"KUBECONFIG": str(Path(folder, "sandbox", "admin.kubeconfig"))}
        finally:
            subprocess.run([RUNUP, "sandbox", "stop", *data], env=env, check=True, stdout=subprocess.DEVNULL)
