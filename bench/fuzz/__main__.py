"""`python -m bench.fuzz READER [--seed S] [--count N | --seconds T]`: one reader of other people's bytes, fuzzed.

Seed and index name an input for good: `--first INDEX --count 1` reads one again, `--write FILE` keeps it. The inputs
are read in a separate process (`bench.fuzz.worker`), which is started again after an input that ends it or never ends.
JSON on stdout; exit code 1 after an unexpected exception or outcome, an input that took more than 2 s of a processor,
or more than 256 MiB beyond what the process had before the first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bench.fuzz.changes import drawn

ROOT = Path(__file__).parents[2]
SLOW_S = 2.0
MOST_MIB = 256
# Seconds of a processor after which an input is taken to hang (`bench.fuzz.watchdog`).
HANG_S = 20.0
# Faults that are told in full, and the characters of each.
_TOLD, _SAID = 20, 3000


@dataclass
class Survey:
    """What came of the inputs so far; `base_mib` is what the process had before the first."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, Any]] = field(default_factory=list)
    slowest: dict[str, Any] = field(default_factory=lambda: {"index": None, "seconds": 0.0})
    base_mib: float = 0.0
    beyond_mib: float = 0.0

    def take(self, line: dict[str, Any]) -> None:
        """Counts what the process said of one input."""
        beyond = line["mib"] - self.base_mib
        self.outcomes[line["outcome"]] += 1
        if line["seconds"] > self.slowest["seconds"]:
            self.slowest = {"index": line["index"], "seconds": line["seconds"]}
        why = line["said"]
        if line["seconds"] > SLOW_S:
            why = f"took {line['seconds']:.1f} s of a processor"
        elif beyond > MOST_MIB >= self.beyond_mib:
            why = f"took {beyond:.0f} MiB beyond the {self.base_mib:.0f} before"
        self.beyond_mib = max(self.beyond_mib, beyond)
        if why:
            self.faults.append({"index": line["index"], "fault": why})

    def ended(self, index: int, why: str) -> None:
        """Counts an input that ended the process."""
        self.outcomes["ended the process"] += 1
        self.faults.append({"index": index, "fault": why})


def main(arguments: list[str]) -> int:
    """See the module."""
    options = _parser().parse_args(arguments)
    from bench.fuzz.readers import READERS

    if options.reader not in READERS:
        print(f"error: no reader {options.reader}; there are {', '.join(READERS)}", file=sys.stderr)
        return 2
    if options.write:
        options.write.write_bytes(READERS[options.reader].make(drawn(options.reader, options.seed, options.first)))
    began = time.monotonic()
    survey = surveyed(
        options.reader,
        options.seed,
        first=options.first,
        count=0 if options.seconds else options.count,
        seconds=options.seconds,
    )
    print(json.dumps(_told(options, survey, time.monotonic() - began), indent=2))
    return 1 if survey.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("reader", metavar="READER", help="any other word lists them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="INDEX", help="index of the first input")
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--count", type=int, default=1000, help="number of inputs")
    until.add_argument("--seconds", type=float, default=0.0, help="begin no further input after so long")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the first input there")
    return parser


def surveyed(reader: str, seed: int, first: int, count: int, seconds: float, hang_s: float = HANG_S) -> Survey:
    """Returns what came of the inputs; a `count` of 0 is for as many as `seconds` allow."""
    survey, index, until = Survey(), first, time.monotonic() + seconds
    while (index < first + count) if count else (time.monotonic() < until):
        left_s = max(until - time.monotonic(), 0.0)
        worker = [reader, seed, index, first + count - index if count else 0, left_s, hang_s]
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            for line in _lines([*map(str, worker)], said):
                if line["outcome"] == "ready":
                    survey.base_mib = max(survey.base_mib, line["mib"])
                else:
                    survey.take(line)
                    index = line["index"] + 1
            if why := _end_of(said):
                survey.ended(index, why)
                index += 1
            elif not count:
                break
    return survey


def _lines(worker: list[str], said: IO[str]) -> Iterator[dict[str, Any]]:
    """Yields what the process says; what it ended with is then in `said`, nothing if it ended in order."""
    command = [sys.executable, "-m", "bench.fuzz.worker", *worker]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        said.write(f"\nended with {process.returncode}")
    else:
        said.truncate(0)


def _end_of(said: IO[str]) -> str:
    said.seek(0)
    return said.read()[-_SAID:]


def _told(options: argparse.Namespace, survey: Survey, seconds: float) -> dict[str, Any]:
    return {
        "reader": options.reader,
        "seed": options.seed,
        "first": options.first,
        "cases": survey.outcomes.total(),
        "outcomes": dict(survey.outcomes),
        "faults": len(survey.faults),
        "slowest": survey.slowest,
        "base_mib": round(survey.base_mib, 1),
        "beyond_base_mib": round(survey.beyond_mib, 1),
        "seconds": round(seconds, 1),
        "told": survey.faults[:_TOLD],
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
