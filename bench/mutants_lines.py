"""Which test of a room runs which line of it: coverage.py's contexts, kept until the checkout changes.

As `-p bench.mutants_lines` it is the pytest plugin that writes the map; MUTANTS_ROOM and MUTANTS_LINES tell it what
and where.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

from bench.mutants_copy import Copy
from bench.mutants_made import ROOT, Mutant

CACHE = Path("~/.cache/runup/mutants").expanduser()
TESTS = {"domain": ("tests/domain", "tests/golden"), "cli": ("tests/cli", "tests/golden")}
NOWHERE = "import"
# Of tests for one mutant, by what they took: what is left then are a line's slowest tests.
BOUND_S = 40.0


@dataclass(frozen=True)
class Lines:
    """`took`: seconds of each test that passed; `ran`: by file and line, the tests that ran it."""

    took: dict[str, float]
    failing: list[str]
    ran: dict[str, dict[str, list[str]]]

    def tests(self, mutant: Mutant) -> dict[str, float]:
        """Who runs the changed statement, the fastest first; of a line that runs at import, who runs its module."""
        lines = self.ran.get(str(mutant.path.relative_to(ROOT)), {})
        statement = _statement(mutant.path, mutant.line)
        found = {test for line in statement or lines for test in lines.get(str(line), ())}
        chosen, total = {}, 0.0
        for test in sorted(found, key=lambda test: self.took[test]):
            chosen[test] = self.took[test]
            total += self.took[test]
            if total > BOUND_S:
                break
        return chosen


def _statement(path: Path, line: int) -> list[int]:
    """The lines of the statement that begins with or spans `line`, of a compound one its head; none at import."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    inside = (
        node.body[0].lineno <= line <= (node.end_lineno or line)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    if not any(inside):
        return []
    spanning = [node for node in nodes if isinstance(node, ast.stmt) and _spans(node, line)]
    nearest = max(spanning, key=lambda node: node.lineno)
    if hasattr(nearest, "body") or isinstance(nearest, ast.Match):
        return [nearest.lineno, line]
    return list(range(nearest.lineno, (nearest.end_lineno or nearest.lineno) + 1))


def _spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def lines_of(room: str, copy: Copy) -> Lines:
    """The room's map: as it was kept, or made in the copy."""
    kept = CACHE / f"{room}-{_state()}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _make(room, copy, kept)
    return Lines(**json.loads(kept.read_text()))


def _make(room: str, copy: Copy, to: Path) -> None:
    """Run the room's tests once. An exit code above 1 says that pytest itself could not."""
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "bench.mutants_lines", "-m", "not e2e"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTS.get(room, (f"tests/{room}",))],
        cwd=copy.folder,
        env=copy.environment() | {"MUTANTS_ROOM": room, "MUTANTS_LINES": str(to)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode > 1 or not to.is_file():
        raise SystemExit(f"error: the tests of {room} cannot be run:\n{done.stdout[-2000:]}")


def _state() -> str:
    """What the map depends on: every file of code and tests."""
    digest = hashlib.sha256()
    files = (path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*"))
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Recorder:
    """The plugin: a context a test."""

    def __init__(self, room: str, to: Path) -> None:
        self._to = to
        self._took: dict[str, float] = {}
        self._failing: set[str] = set()
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"*/src/runup/{room}/*"])
        self._coverage.start()
        self._coverage.switch_context(NOWHERE)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Whatever runs while a test does is the test's, its fixtures too."""
        self._coverage.switch_context(item.nodeid)
        began = time.perf_counter()
        result = yield
        self._took[item.nodeid] = time.perf_counter() - began
        self._coverage.switch_context(NOWHERE)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without a change says nothing."""
        if report.failed:
            self._failing.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the map, whole or not at all."""
        self._coverage.stop()
        took = {test: seconds for test, seconds in self._took.items() if test not in self._failing}
        told = {"took": took, "failing": sorted(self._failing), "ran": dict(self._ran(took))}
        unfinished = self._to.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(told))
        unfinished.rename(self._to)

    def _ran(self, took: dict[str, float]) -> Iterator[tuple[str, dict[int, list[str]]]]:
        data = self._coverage.get_data()
        for file in data.measured_files():
            lines: dict[int, list[str]] = defaultdict(list)
            for line, contexts in data.contexts_by_lineno(file).items():
                lines[line] += [test for test in contexts if test in took]
            yield file[file.index("src/runup/") :], lines


def pytest_configure(config: pytest.Config) -> None:
    """Begin before anything of the room is imported."""
    config.pluginmanager.register(Recorder(os.environ["MUTANTS_ROOM"], Path(os.environ["MUTANTS_LINES"])))
