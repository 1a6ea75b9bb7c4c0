"""Settings of all tests: which are run, and no deadline for examples of property tests, which depend on the machine."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from runup.checks.decide import engine

# Servers and the command in this process, for the tests of every feature's commands; `--rerun-alone`; who runs what;
# for tests of these.
pytest_plugins = ("tests.cli.commands", "tests.unstable", "tests.spread", "pytester")

# Tests that run in a shell's background would hand down that Ctrl-C must be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("runup", deadline=None)
settings.load_profile("runup")


# What takes longer in `make test` is named at its end.
LONG_S = 10.0
# Whole folders of tests each of which starts sandboxes, a browser or dozens of commands.
SLOW = tuple(Path(__file__).parent / name for name in ("browser", "journeys", "ocm", "transcripts"))


# Of a test that starts a sandbox and waits for several things: none of its own guards may end it later than this.
SLOW_LIMIT_S = 900


@pytest.fixture(autouse=True)
def reraises_bugs_of_checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that raises fails its test with its traceback, unless the test is marked `failing_checks`."""
    monkeypatch.setattr(engine, "reraise_bugs", request.node.get_closest_marker("failing_checks") is None)


@pytest.fixture
def in_a_terminal() -> Iterator[None]:
    """SIGHUP as a terminal's processes have it: under `nohup` it is ignored, which is handed down."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


# By a mark: the variable that `make e2e` and `make real` set.
ASKED_BY = {"e2e": "RUNUP_E2E", "real": "RUNUP_REAL"}


@cache
def is_slow(file: Path) -> bool:
    """Asked once a file, and not for each of its tests."""
    return any(file.is_relative_to(folder) for folder in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing in these folders is imported, by every worker, to be left out afterwards."""
    return True if config.option.markexpr == "not slow" and collection_path in SLOW else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test in these folders as slow."""
    if is_slow(item.path):
        item.add_marker(pytest.mark.slow)
        limit = item.get_closest_marker("timeout")
        if limit is None or limit.args[0] < SLOW_LIMIT_S:
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT_S), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Freezes collected objects: garbage collection took a tenth of each worker's time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests of one group share a sandbox and build on each other: torn apart they fail now and then, and elsewhere.

    Ten thousand collected tests are some million objects that stay: no look for garbage needs to go through them.
    """
    gc.collect()
    gc.freeze()
    if getattr(session.config.option, "loadgroup", False):
        torn = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if torn:
            raise pytest.UsageError(f"pytest-xdist cannot keep {torn[0]} and its group together; see pyproject.toml")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips tests that need a real server or cluster unless one was requested."""
    unasked = [marker for marker, asked in ASKED_BY.items() if not os.environ.get(asked)]
    left_out = {item for item in items if any(item.get_closest_marker(marker) for marker in unasked)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """No failure: whoever wrote it decides whether it is marked `slow` or made quicker."""
    if "not slow" not in config.option.markexpr:
        return
    took: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid] += report.duration
    for nodeid, seconds in took.most_common():
        if seconds > LONG_S:
            terminalreporter.write_line(f"not marked slow, and took {seconds:.0f} s: {nodeid}")
