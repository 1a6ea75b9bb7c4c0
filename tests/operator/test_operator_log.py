"""The log of `start`: one JSON object a line, whatever the API server answers; tracebacks for our bugs alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from bench.hostile.faulty_api import faulty_api, truncated
from tests.operator.operator_world import cluster
from tests.operator.test_operator_ends import leading, log_lines, operator

from kubekit.kube import config
from runup.process.log import MAX_TEXT, MAX_TRACEBACK, configure_logging

SECRET = "a-token-that-is-nobodys-business"


@pytest.mark.slow
async def test_answers_that_cannot_be_read(tmp_path: Path) -> None:
    """A third of all answers truncated: each of them is one line with its reason, none a traceback."""
    async with cluster(tmp_path) as (world, _), faulty_api(config.load(str(world.kubeconfig))) as api:
        world.kubeconfig = api.kubeconfig(world.reports / "kubeconfig")
        api.share, api.faults = 1 / 3, (truncated,)
        async with operator(world, tmp_path) as child:
            await leading(world)
            for target in ("5.2.0", "5.1.0", "5.2.0"):
                await world.ask({"mode": "Preflight", "version": target})
                await world.until(lambda version: version.status.observed_generation == version.metadata.generation)
            child.terminate()
            await child.wait()
        assert api.counted["request truncated"] > 0
    said = log_lines(tmp_path)
    failed = [line for line in said if line["event"] == "a write failed"]
    assert {line["reason"] for line in failed} <= {"UnreadableAnswer"}
    assert [line for line in said if "exception" in line] == []


def test_a_bug_shows_calls_and_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback is one line of JSON, bounded, and holds no variable's value."""
    configure_logging()
    try:
        _recurse(SECRET, 300)
    except ValueError:
        structlog.get_logger("test").exception("reconcile failed", error="x" * 10 * MAX_TEXT)
    finally:
        structlog.reset_defaults()
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert SECRET not in line
    assert "ValueError: it broke yyy" in event["exception"]
    assert "_recurse" in event["exception"]
    assert len(event["exception"]) < MAX_TRACEBACK + 100
    assert len(event["error"]) < MAX_TEXT + 100


def test_what_libraries_say_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """asyncio reports a task that failed unheard by the standard library's logging."""
    import logging

    configure_logging()
    try:
        logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=ValueError("it broke"))
    finally:
        structlog.reset_defaults()
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("Task exception was never retrieved", "error")
    assert event["exception"].strip() == "ValueError: it broke"


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose zone is five hours and a half before UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "XYZ-05:30")
        time.tzset()
        yield
    time.tzset()


def test_times_are_utc_and_say_so_whatever_the_machines_zone(
    capsys: pytest.CaptureFixture[str], far_east: None
) -> None:
    """Logs of several machines are read side by side."""
    configure_logging()
    before = datetime.now(UTC)
    try:
        structlog.get_logger("test").warning("it happened")
    finally:
        structlog.reset_defaults()
    event = json.loads(capsys.readouterr().err)
    shown = datetime.fromisoformat(event["timestamp"])
    assert shown.utcoffset() == timedelta(0)
    assert before <= shown <= datetime.now(UTC)


def _recurse(token: str, depth: int) -> None:
    if depth == 0:
        raise ValueError("it broke " + "y" * 10 * MAX_TEXT)
    # Not twice the same line: Python shortens what repeats.
    (_recurse if depth % 2 else _other)(token, depth - 1)


def _other(token: str, depth: int) -> None:
    _recurse(token, depth)
