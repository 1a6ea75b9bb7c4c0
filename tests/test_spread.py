"""The tests are spread as pytest-xdist itself spreads them, and what a worker that died leaves is done by others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spread import Spread
from xdist.scheduler import LoadFileScheduling

# Sixty files of one to nine tests.
TESTS = [f"tests/test_{file}.py::test_it[{n}]" for file in range(60) for n in range(1 + file * 7 % 9)]


class Worker:
    """What pytest-xdist tells a worker to run, by places in TESTS."""

    def __init__(self, name: str) -> None:
        self.gateway = self
        self.id = name
        self.notified: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, places: list[int]) -> None:
        """See `WorkerController`."""
        self.notified += places

    def shutdown(self) -> None:
        """See `WorkerController`."""
        self.shutting_down = True


def spread(config: pytest.Config, scheduling: type[LoadFileScheduling], dies_after: int = 1000) -> list[list[int]]:
    """What each of three workers did; the third dies after so many tests, in the next one."""
    scheduler: Any = scheduling(config)
    workers = [Worker(name) for name in ("a", "b", "c")]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()
    done: dict[str, list[int]] = {worker.id: [] for worker in workers}
    while any(len(done[worker.id]) < len(worker.notified) for worker in workers):
        # The first is twice as quick.
        for worker in [workers[0], *workers]:
            if len(done[worker.id]) < len(worker.notified):
                done[worker.id].append(worker.notified[len(done[worker.id])])
                scheduler.mark_test_complete(worker, done[worker.id][-1])
        if len(workers) == 3 and len(done["c"]) >= dies_after:
            scheduler.remove_node(workers.pop())
    return list(done.values())


@pytest.fixture
def config(pytester: pytest.Pytester) -> pytest.Config:
    """Of a run with three workers."""
    return pytester.parseconfig("--dist", "loadfile", "--tx", "3*popen")


def test_who_runs_what(config: pytest.Config) -> None:
    """As pytest-xdist has it, test by test."""
    assert spread(config, Spread) == spread(config, LoadFileScheduling)


@pytest.mark.parametrize("dies_after", [3, 30])
def test_a_worker_that_died(config: pytest.Config, dies_after: int) -> None:
    """Everything else is done, once, and what it had done is not done again."""
    done = spread(config, Spread, dies_after)
    assert len(done[2]) == dies_after
    assert sorted(place for places in done for place in places) == list(range(len(TESTS)))
