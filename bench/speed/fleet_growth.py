"""`python -m bench fleet_growth`: how seconds and memory of `fleet preflight` grow with the number of dumps.

The dumps are copies of `examples/plain-kubernetes` whose cluster has a separate ID; files that clusters share are
links to one copy, which is read for each. Every run writes JSON, JSON Lines, HTML and JUnit. `parent_mib` is the most
memory that the command itself had resident; the memory of its workers does not depend on the number of dumps. The aims
are 512 MiB at 10,000 dumps, and 60 s for 1,000 on two processors at the pace of the targets (`bench/measure.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.aims import OF_TARGETS, grown
from bench.hostile.fleet import set_cluster_id
from bench.measure import pace

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain-kubernetes"
NAMESPACES = "namespaces.json"
FORMS = ("json", "jsonl", "html", "junit")
SIZES = (10, 100, 1000, 10_000)
AIM = {"dumps": 10_000, "parent_mib": 512, "seconds_for_1000": 60}
JSON = dict[str, Any]


def _make(folder: Path, dumps: int) -> None:
    """Makes the dumps."""
    for number in range(dumps):
        place = folder / f"c{number:05}"
        shutil.copytree(EXAMPLE, place, copy_function=os.link, ignore=shutil.ignore_patterns(NAMESPACES))
        shutil.copy(EXAMPLE / NAMESPACES, place)
        set_cluster_id(place, f"00000000-0000-4000-8000-{number:012}")


def _measured(dumps: int, scratch: Path) -> JSON:
    """Evaluates as many dumps, and returns what that took."""
    folder, out = scratch / "dumps", scratch / "out"
    for each in (folder, out):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    _make(folder, dumps)
    targets = ",".join(f"{form}={out / form}" for form in FORMS)
    words = [sys.executable, "-m", "runup", "fleet", "preflight", "--dumps", str(folder), "-o", targets]
    before, started = pace(), time.perf_counter()
    peak_kib, last_arrival_s = 0, 0.0
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        lines = out / "jsonl"
        size = 0
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak_kib = max(peak_kib, *map(int, re.findall(r"VmHWM:\s+(\d+)", status)), 0)
                if (now := lines.stat().st_size) != size:
                    size, last_arrival_s = now, time.perf_counter() - started
            except OSError:
                pass  # it has ended, or has not begun
            time.sleep(0.2)
    seconds = time.perf_counter() - started
    with (out / "jsonl").open() as arrived:
        evaluated = sum(json.loads(line)["result"] != "CouldNotRun" for line in arrived)
    return {
        "seconds": round(seconds, 1),
        "seconds_until_the_last_line": round(last_arrival_s, 1),
        "pace": round((before + pace()) / 2, 3),
        "parent_mib": round(peak_kib / 1024, 1),
        "evaluated": evaluated,
        "mib_of_outputs": {form: round((out / form).stat().st_size / 2**20, 2) for form in FORMS},
    }


def main(words: list[str]) -> int:
    """Measures each size, and prints the figures, their exponents, and how they compare with the aims."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet_growth", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="N,N,...")
    flags = parser.parse_args(words)
    sizes = [int(size) for size in flags.sizes.split(",")]
    found: dict[int, JSON] = {}
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as place:
        for size in sizes:
            print(f"bench: fleet_growth: {size} dumps", file=sys.stderr, flush=True)
            found[size] = _measured(size, Path(place))
            print(f"bench: {json.dumps(found[size])}", file=sys.stderr, flush=True)
    costs = [
        asdict(grown(what, unit, {size: figures[what] for size, figures in found.items()}))
        for what, unit in (("seconds", "s"), ("parent_mib", "MiB"))
    ]
    largest = max(sizes)
    each_s = found[largest]["seconds"] / largest
    at_pace_s = each_s * 1000 * OF_TARGETS.pace / found[largest]["pace"]
    result = {
        "sizes": found,
        "growth": costs,
        "aim": AIM,
        "seconds_for_1000": round(each_s * 1000, 1),
        "seconds_for_1000_at_the_pace_of_the_targets": round(at_pace_s, 1),
    }
    print(json.dumps(result, indent=2))
    failed = any(figures["evaluated"] != size for size, figures in found.items())
    return 1 if failed or found[largest]["parent_mib"] > AIM["parent_mib"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
