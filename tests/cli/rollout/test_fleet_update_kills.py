"""`runup fleet update` is killed before and after each intent and each act, and ends as without. Cases 42 and 63."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.control.fleet_world import FILE, Fleet, fleet
from tests.servers import eventually

from runup.cli.main import main
from runup.fleet.control import update_driver
from runup.fleet.control.update_journal import Journal, open_journal
from runup.fleet.decide.update_records import open_intents
from runup.rollout.control import observe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two clusters without the component update-policy."""
    with fleet(tmp_path_factory.mktemp("two"), harbour=False, lighthouse=False) as found:
        yield found


SIX = ("amber", "basalt", "coral", "dolomite", "flint", "garnet")


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Six clusters without the component update-policy."""
    with fleet(tmp_path_factory.mktemp("six"), **dict.fromkeys(SIX, False)) as found:
        yield found


@pytest.fixture(autouse=True)
def without_thanos(monkeypatch: pytest.MonkeyPatch) -> None:
    """These servers have no Thanos: no alerts fire."""
    monkeypatch.setattr(observe.thanos, "alerts", lambda *_: ())


def _killed_at(place: int, words: tuple[str, ...]) -> int | None:
    """Types the words in another process that is killed at one place; returns its exit code, None if it was killed."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    passed = 0

    def through(work: Callable[..., Any]) -> Callable[..., Any]:
        """The work, with a place before it and one after it."""

        def run(*arguments: Any, **named: Any) -> Any:
            nonlocal passed
            for moment in ("before", "after"):
                passed += 1
                if passed == place:
                    os.kill(os.getpid(), signal.SIGKILL)
                if moment == "before":
                    result = work(*arguments, **named)
            return result

        return run

    Journal.add = through(Journal.add)  # type: ignore[method-assign]
    Journal.keep = through(Journal.keep)  # type: ignore[method-assign]
    update_driver.send = through(update_driver.send)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os._exit(main(list(words)))


def test_42_a_killed_command_ends_as_without(two: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at every place of the first command: `resume` ends with one start of each cluster, one at a time."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "update.yaml").write_text(FILE, encoding="utf-8")
    words = ("--once", "--kubeconfig", str(two.kubeconfig))
    start = ("fleet", "update", "start", "update.yaml", "--contexts", "harbour,lighthouse", *words)
    place, killed = 0, True
    while killed:
        place += 1
        two.heal()
        for each in tmp_path.glob("5.1.journal*"):
            each.unlink()
        before = {name: len(two.writes(name)) for name in two.clusters}
        killed = _killed_at(place, start) is None
        for name in two.clusters:
            assert main(["fleet", "update", "resume", "update.yaml", *words]) == 2
            assert [each for each in two.clusters if two.started(each)][-1] == name
            two.finish(name)
        assert main(["fleet", "update", "resume", "update.yaml", *words]) == 0
        assert {name: len(two.writes(name)) - before[name] for name in two.clusters} == dict.fromkeys(two.clusters, 1)
        with open_journal(tmp_path / "5.1.journal") as journal:
            assert open_intents(journal.entries()) == {}
    # At least the stored intent, the act's intent, the act and its outcome, each before and after.
    assert place > 8


@pytest.mark.timeout(7200)
def test_42_six_clusters_and_a_resume_that_is_killed(
    six: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three at a time: `start` is killed at every place, and so is the `resume` after it; each cluster starts once."""
    monkeypatch.chdir(tmp_path)
    rollout = "{type: Progressive, progressive: {maxConcurrency: 3}}"
    head, policy = FILE.partition("  stages:")[0], FILE[FILE.index("  policy:") :]
    text = f"{head}  stages:\n  - {{name: all, selector: {{}}, rollout: {rollout}}}\n{policy}"
    (tmp_path / "update.yaml").write_text(text, encoding="utf-8")
    words = ("--once", "--kubeconfig", str(six.kubeconfig))
    start = ("fleet", "update", "start", "update.yaml", "--contexts", ",".join(SIX), *words)
    resume = ("fleet", "update", "resume", "update.yaml", *words)
    # The place after one step is the place before the next one.
    place, killed = -1, [True, True]
    while any(killed):
        place += 2
        six.heal()
        for each in tmp_path.glob("5.1.journal*"):
            each.unlink()
        before = {name: len(six.writes(name)) for name in SIX}
        killed = [_killed_at(place, start) is None, _killed_at(place, resume) is None]
        for first in (0, 3):
            # The first three are complete before the last three start.
            assert main([*resume]) == 2
            assert [name for name in SIX if six.started(name)] == [*SIX[: first + 3]]
            for name in SIX[first : first + 3]:
                six.finish(name)
        assert main([*resume]) == 0
        assert {name: len(six.writes(name)) - before[name] for name in SIX} == dict.fromkeys(SIX, 1)
        with open_journal(tmp_path / "5.1.journal") as journal:
            assert open_intents(journal.entries()) == {}
    # Three starts in one command, each with its intent, its act and its outcome, before and after.
    assert place > 18


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_with_the_command_to_resume(
    number: signal.Signals, code: int, two: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update that has begun continues, no other starts, and the printed command resumes."""
    two.heal()
    text = FILE.replace("selector: {matchLabels: {kubernetes.io/metadata.name: harbour}}", "").replace(
        "name: canary", "name: all"
    )
    (tmp_path / "update.yaml").write_text(text.partition("  - name: main")[0] + text[text.index("  policy:") :])
    child = os.fork()
    if not child:
        # The files of pytest's capture would be written otherwise.
        sys.stdout, sys.stderr = ((tmp_path / name).open("w", buffering=1) for name in ("out", "err"))
        os.chdir(tmp_path)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os._exit(main(["fleet", "update", "start", "update.yaml", *two.words, "--interval", "1s"]))
    eventually(lambda: "harbour: running (ControlPlane)" in _text(tmp_path / "out"), "the first start")
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code, _text(tmp_path / "err")
    resume = _text(tmp_path / "err").partition("To resume: ")[2].split()
    assert resume == ["runup", "fleet", "update", "resume", "5.1", "--journal", "5.1.journal"]
    assert (two.started("harbour"), two.started("lighthouse")) == (True, False)
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", "update", "status", "5.1", "--kubeconfig", str(two.kubeconfig)]) == 2


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
