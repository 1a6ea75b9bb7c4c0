"""`python -m bench.unstable TEST [TEST...] [--times 50] [--load 8]`: run tests that often beside busy processes.

Each time is a run of pytest of its own, so that worlds are made anew; several tests are one run. JSON on stdout,
progress on stderr; exit code 1 if any run failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.measure import spread

BUSY = "while True: pass"
OPTIONS = ("-q", "-rfE", "--tb=short", "-p", "no:xdist", "-p", "no:cacheprovider")
# Of what a failed run said, its end.
SAID = 4000


@dataclass(frozen=True, slots=True)
class Once:
    """One run: the exit code of pytest, how long it took, and what it said."""

    code: int
    seconds: float
    said: str

    @property
    def first_line(self) -> str:
        """What failed first, as pytest sums it up."""
        summed = [line for line in self.said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return summed[0] if summed else (self.said.strip().splitlines() or [f"exit code {self.code}"])[-1]


def main(arguments: list[str]) -> int:
    """See the module."""
    options = _parser().parse_args(arguments)
    runs = []
    with busy(options.load), ThreadPoolExecutor(options.at_once) as pool:
        coming = [pool.submit(once, options.tests) for _ in range(options.times)]
        for number, done in enumerate(coming, 1):
            runs.append(done.result())
            said = "passed" if runs[-1].code == 0 else runs[-1].first_line
            print(f"{number}/{options.times} {runs[-1].seconds:.1f} s: {said}", file=sys.stderr, flush=True)
    print(json.dumps(result(options.tests, options.load, runs), indent=2))
    return 1 if any(run.code for run in runs) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.unstable", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tests", nargs="+", metavar="TEST", help="as pytest names it: a file, a test, a case")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--load", type=int, default=8, help="busy processes beside it")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="runs side by side: the sooner it is over")
    return parser


@contextlib.contextmanager
def busy(number: int) -> Iterator[list[int]]:
    """So many processes that do nothing but compute, ended with the block; their ids."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(number):
            processes.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY]))  # noqa: PERF401 -- ended below
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def once(tests: list[str]) -> Once:
    """Run them. With RUNUP_E2E and the programs of `make e2e`, those on a real server too."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"COLUMNS": "400"}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *tests],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Once(done.returncode, time.monotonic() - began, done.stdout)


def result(tests: list[str], load: int, runs: list[Once]) -> dict[str, Any]:
    """How many passed, how the others failed, how long it took."""
    failures = [{"run": number, "line": run.first_line, "said": run.said[-SAID:]} for number, run in _bad(runs)]
    return {
        "tests": tests,
        "load": load,
        "runs": len(runs),
        "passed": len(runs) - len(failures),
        "failures": failures,
        "seconds": spread([run.seconds for run in runs], 1),
    }


def _bad(runs: list[Once]) -> Iterator[tuple[int, Once]]:
    yield from ((number, run) for number, run in enumerate(runs, 1) if run.code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
