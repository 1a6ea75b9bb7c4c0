"""The pytest plugin (`-p bench.mutants.recorder`) that writes which test runs which line of a room, and how many
seconds of CPU it takes.

MUTANTS_ROOM tells it the folder of the room, MUTANTS_LINES the file to write.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

NOWHERE = "import"


class Recorder:
    """A context of coverage.py a test."""

    def __init__(self, room: str, to: Path) -> None:
        self._room, self._to = room, to
        self._took: dict[str, float] = {}
        self._failing: set[str] = set()
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"*/{room}/*"])
        self._coverage.start()
        self._coverage.switch_context(NOWHERE)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Whatever runs while a test does is the test's, its fixtures too."""
        self._coverage.switch_context(item.nodeid)
        began = _cpu_s()
        result = yield
        self._took[item.nodeid] = _cpu_s() - began
        self._coverage.switch_context(NOWHERE)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without a change says nothing."""
        if report.failed:
            self._failing.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write it."""
        self._coverage.stop()
        took = {test: seconds for test, seconds in self._took.items() if test not in self._failing}
        self._to.write_text(json.dumps({"took": took, "failing": sorted(self._failing), "ran": dict(self._ran(took))}))

    def _ran(self, took: dict[str, float]) -> Iterator[tuple[str, dict[int, list[int]]]]:
        """By file and line, the places of tests in `took`: they are named often."""
        place = {test: number for number, test in enumerate(took)}
        data = self._coverage.get_data()
        for file in data.measured_files():
            lines: dict[int, list[int]] = defaultdict(list)
            for line, contexts in data.contexts_by_lineno(file).items():
                lines[line] += [place[test] for test in contexts if test in place]
            yield file[file.index(f"{self._room}/") :], lines


def _cpu_s() -> float:
    """Returns the CPU time of the process and of those it has waited for: the same on a busy machine."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Begin before anything of the room is imported."""
    config.pluginmanager.register(Recorder(os.environ["MUTANTS_ROOM"], Path(os.environ["MUTANTS_LINES"])))
