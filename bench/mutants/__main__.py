"""`python -m bench.mutants --seed N --count K [ROOM...]`: which of K small changes to the code no test notices.

cosmic-ray makes the changes; the sample, the copy and the choice of tests are ours (docs/decisions/0035). Each mutant
is tried in a fork against the fast tests of its room that run the changed line; what lives is tried once more against
all of the nearest tests, the slow ones too, in a process of its own. JSON on stdout, progress on stderr.

With `--gates` the changes are no sample: each after which an update may start too early (bench/mutants/gates.py).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.mutants.copy import FAST, MARKED, Copy
from bench.mutants.forks import Forks
from bench.mutants.gates import EQUIVALENT, mutants
from bench.mutants.lines import Lines, lines_of
from bench.mutants.made import Mutant, modules_of, sample
from bench.mutants.rooms import ROOMS

PARTS = ("decide", "control", "cli")
OUTCOMES = ("killed", "survived", "out of time")


class Trial:
    """Tries mutants, first the fast way, then the slow one."""

    def __init__(self, copy: Copy, forks: Forks, *, slow: bool) -> None:
        self._copy = copy
        self._forks = forks
        self._slow = slow
        self._lines: dict[str, Lines] = {}
        self.failing: list[str] = []

    def outcome(self, mutant: Mutant) -> str:
        """One of OUTCOMES."""
        room = mutant.room
        if room not in self._lines:
            print(f"which test of {room} runs which line", file=sys.stderr, flush=True)
            self._lines[room] = lines_of(room, self._copy)
            self.failing += self._lines[room].failing
        if self._forks.killed(mutant, self._lines[room]):
            return "killed"
        return self._copy.outcome(mutant) if self._slow else "survived"


def main(arguments: list[str]) -> int:
    """See the module."""
    options = _parser().parse_args(arguments)
    if unknown := sorted(set(options.rooms) - {*ROOMS}):
        print(f"error: no room {', '.join(unknown)}; there are {', '.join(ROOMS)}", file=sys.stderr)
        return 1
    if not modules_of(options.rooms, options.part):
        print(f"error: no {options.part} in {', '.join(options.rooms)}", file=sys.stderr)
        return 1
    if options.fast:
        os.environ[MARKED] = FAST
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    chosen = mutants() if options.gates else sample(options.rooms, options.seed, options.count, options.part)
    with _trial(slow=not options.once) as (trial, copy):
        for mutant, outcome in _tried(trial, chosen, options.minutes * 60):
            change = mutant.told()
            modules[change["file"]][outcome] += 1
            kinds[change["operator"]][outcome] += 1
            survivors += [change] if outcome == "survived" else []
    total = sum(modules.values(), Counter())
    what = {"kinds": kinds, "equivalent": len(EQUIVALENT)} if options.gates else {"seed": options.seed}
    result = {**what, **{name: total[name] for name in OUTCOMES}}
    told = {
        "failing_anyway": sorted({*trial.failing, *copy.failing}),
        "modules": dict(sorted(modules.items())),
        "survivors": survivors,
    }
    print(json.dumps(result | told, indent=2))
    return 1 if options.gates and survivors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=ROOMS, help=f"rooms to change; all of {', '.join(ROOMS)} if none")
    parser.add_argument("--part", default="", choices=PARTS, help="only what is in this folder of the rooms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--gates", action="store_true", help="all changes after which an update may start too early")
    parser.add_argument("--minutes", type=float, default=0, help="begin no further mutant after so long; 0 for no end")
    parser.add_argument("--fast", action="store_true", help="no test but those of `make test`")
    parser.add_argument("--once", action="store_true", help="no second try: more survive than truly do")
    return parser


@contextlib.contextmanager
def _trial(*, slow: bool) -> Iterator[tuple[Trial, Copy]]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder) / "checkout")
        with Forks(copy) as forks:
            yield Trial(copy, forks, slow=slow), copy


def _tried(trial: Trial, chosen: Sequence[Mutant], seconds: float) -> Iterator[tuple[Mutant, str]]:
    """Each with its outcome, told as it comes."""
    began = time.monotonic()
    for number, mutant in enumerate(chosen, 1):
        if seconds and time.monotonic() - began > seconds:
            return
        outcome = trial.outcome(mutant)
        change = mutant.told()
        said = f"{change['file']}:{change['line']}: {change['before']} -> {change['after']}"
        print(f"{number}/{len(chosen)} {outcome}: {said}", file=sys.stderr, flush=True)
        yield mutant, outcome


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
