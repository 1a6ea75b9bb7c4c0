"""`runup version`: wall time and peak memory of the whole process (aims: under 100 ms, under 40 MiB).

A bare interpreter is measured in turns with it, as the floor that this machine sets.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.measure import process, spread

ROUNDS = 21


def run() -> dict[str, Any]:
    """Both processes, in turns."""
    runup = [str(Path(sys.executable).with_name("runup")), "version"]
    bare = [sys.executable, "-c", "pass"]
    process(runup)  # the first run writes byte code
    pairs = [(process(runup), process(bare)) for _ in range(ROUNDS)]
    assert all(version.code == 0 for version, _ in pairs)
    return {
        "runup_version_seconds": spread([version.seconds for version, _ in pairs]),
        "runup_version_peak_mib": spread([version.peak_mib for version, _ in pairs], 1),
        "bare_interpreter_seconds": spread([floor.seconds for _, floor in pairs]),
        "bare_interpreter_peak_mib": spread([floor.peak_mib for _, floor in pairs], 1),
    }
