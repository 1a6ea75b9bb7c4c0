"""Time of whole commands, as multiples of a bare interpreter that runs in turns with them; memory of the least.

Commands over files read those that `oc` has for its own tests; the live ones ask a sandbox on this machine (aims: 6
bare interpreters of wall time; `runup version` under 100 ms and 40 MiB). Wall time holds what the server takes to
answer, and whatever else the machine does; processor time is the command's own. Commands are measured with byte code in
place, as an installation has it.
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
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MARK = "-cv.yaml"
# Words, the folder of cases, and the flag that takes a case.
OVER_FILES = (
    ("upgrade status", "oc-status", "--mock-clusterversion"),
    ("upgrade recommend", "oc-recommend", "--mock-clusterversion"),
    ("upgrade", "oc-recommend", "--dump"),
    ("upgrade channel", "oc-recommend", "--dump"),
)
# The channel that the sandbox's cluster is in: read, compared, left alone.
LIVE = ("upgrade", "upgrade status", "upgrade recommend", "upgrade channel stable-5.2")
RUNUP = str(Path(sys.executable).with_name("runup"))
BARE = [sys.executable, "-c", "pass"]


def run() -> dict[str, Any]:
    """Every command in turns with the bare interpreter."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    version, floor = _in_turns([RUNUP, "version"], env)
    ratios: dict[str, Any] = {"version": _ratios(version, floor)}
    for name, folder, flag in OVER_FILES:
        cases = sorted((CORPUS / folder).glob(f"*{MARK}"))
        pairs = [_in_turns([RUNUP, *name.split(), flag, str(case)], env, 7) for case in cases]
        ratios[f"{name}, files"] = (
            _ratios([r for a, _ in pairs for r in a], [r for _, b in pairs for r in b])
            if pairs
            else f"no cases in {CORPUS / folder}"
        )
    with _sandbox(env) as live:
        for name in LIVE:
            ratios[f"{name}, sandbox"] = _ratios(*_in_turns([RUNUP, *name.split()], live))
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


def _ratios(command: Sequence[Run], floor: Sequence[Run]) -> dict[str, float]:
    """Of medians."""
    wall = [statistics.median([each.seconds for each in runs]) for runs in (command, floor)]
    processor = [statistics.median([each.cpu_seconds for each in runs]) for runs in (command, floor)]
    return {"wall": round(wall[0] / wall[1], 2), "processor": round(processor[0] / processor[1], 2)}


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
