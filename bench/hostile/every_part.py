"""What is hostile or broken: reports, images, signatures, floods, an API server's faults, kills of the operator.

Each part runs in a process of its own, whose most memory is its own, and counts by kind what came of it: refused,
accepted, survived or recovered as due; `wrong` and `crashed` are faults of ours, and `wrong` in words says which.
`python -m bench hostile --reports 340000 --faults 300 --kills 59` takes about an hour.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = ("wrong", "crashed")


def run(
    *, reports: int = 20_000, faults: int = 60, kills: int = 4, expressions: int = 20_000, seed: int = 1
) -> dict[str, Any]:
    """Every part, after the other; `sum` has how many of all kinds came to what."""
    numbers = {
        "reports": (reports, seed),
        "cel": (expressions, seed),
        "signatures": (),
        "limits": (),
        "faults": (faults, seed),
        "kills": (kills, seed),
    }
    found = {"images": _timed(_images)}
    for name, arguments in numbers.items():
        found[name] = _timed(lambda: json.loads(_last(f"bench.hostile.{name}", *map(str, arguments))))  # noqa: B023
    return {"seed": seed, **found, "sum": {name: _sum(part) for name, part in found.items()}}


def faults_of_ours(found: dict[str, Any]) -> int:
    """How many of all came to what they should not."""
    return sum(each.get(outcome, 0) for each in found["sum"].values() for outcome in OURS)


def images(lines: Iterable[list[Any]]) -> dict[str, Any]:
    """What a process said of all images, each line a name, a way to use it and what was refused; counted."""
    from bench.hostile.images import HARMLESS, IMAGES

    due = {row.name: row.said for row in (*IMAGES, *HARMLESS)}
    counted: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    slowest, peak = (0.0, ""), 0.0
    for name, way, said in lines:
        if name == "seconds":
            slowest = max(slowest, (said, way))
        elif name == "peak":
            peak = said / 1024
        else:
            # What is in no table is a document that costs memory, whatever it says.
            outcome = _outcome(due.get(name, "." if said else ""), said)
            counted.setdefault(way, Counter())[outcome] += 1
            if outcome == "wrong":
                wrong.append(f"{name}: {way}: {said or 'accepted'}")
    worst = {"what": slowest[1], "seconds": slowest[0]}
    kinds = {kind: dict(each) for kind, each in counted.items()}
    return {"kinds": kinds, "worst": worst, "wrong": wrong, "peak_mib": round(peak, 1)}


def _outcome(due: str, said: str) -> str:
    if not due:
        return "wrong" if said else "accepted as due"
    return "refused as due" if said and re.search(due, said) else "wrong"


def _images() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        said = _output("bench.hostile.images", folder)
    return images(json.loads(line) for line in said.splitlines())


def _timed(part: Any) -> dict[str, Any]:
    started = time.perf_counter()
    found: dict[str, Any] = part()
    return found | {"all_seconds": round(time.perf_counter() - started, 1)}


def _last(module: str, *arguments: str) -> str:
    """The last line that it prints."""
    return _output(module, *arguments).splitlines()[-1]


def _output(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        # What breaks the process is the worst there is: it is shown, never counted away.
        raise RuntimeError(f"{module} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _sum(part: dict[str, Any]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in part["kinds"].values():
        total.update(each)
    return dict(total)
