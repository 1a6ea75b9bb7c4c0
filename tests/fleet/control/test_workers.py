"""Processes that are killed, hang, run out of memory or fail: each costs its own cluster, and is reported."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubekit.lang.files import remove_tree
from runup.evaluation import workers
from runup.evaluation.workers import Lost, Pool, Retried

KILLED = "the process that read it was ended by SIGKILL, as the kernel does when memory runs out"


def _square(number: int) -> int:
    return number * number


def _kill(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _exit(_: int) -> int:
    os._exit(3)


def _hang(_: int) -> int:
    time.sleep(600)
    return 0


def _run_out(_: int) -> int:
    raise MemoryError


def _fail(number: int) -> int:
    raise ValueError(f"{number} is odd")


def one_that(does: Callable[[int], int]) -> Callable[[int], int]:
    """Work that goes wrong for 7 alone."""
    return lambda number: does(number) if number == 7 else _square(number)


TROUBLE: dict[str, tuple[Callable[[int], int], str, bool]] = {
    "killed": (_kill, KILLED, True),
    "ended by itself": (_exit, "the process that read it ended by itself (exit code 3)", True),
    "out of memory": (_run_out, "reading it takes more memory than there is", True),
    "a bug": (_fail, "runup itself failed: ValueError: 7 is odd", False),
}


@pytest.mark.parametrize(("does", "why", "again"), TROUBLE.values(), ids=list(TROUBLE))
@pytest.mark.parametrize("size", [1, 3])
def test_trouble_costs_one_cluster(does: Callable[[int], int], why: str, again: bool, size: int) -> None:
    """All others have their results; what may have been chance is tried once more."""
    answers = list(Pool(one_that(does), size).run(range(20)))
    results = {index: answer for index, answer in answers if not isinstance(answer, Retried)}
    lost = results.pop(7)
    assert results == {number: number * number for number in range(20) if number != 7}
    assert isinstance(lost, Lost)
    assert lost.why == why
    assert ("Traceback" in lost.bug) == (not again)
    assert [(index, answer.why) for index, answer in answers if isinstance(answer, Retried)] == [(7, why)] * again


def test_what_is_killed_once_has_a_result(tmp_path: Path) -> None:
    """The second try counts."""

    def killed_once(number: int) -> int:
        mark = tmp_path / str(number)
        if number == 3 and not mark.exists():
            mark.touch()
            _kill(number)
        return _square(number)

    answers = list(Pool(killed_once, 2).run(range(6)))
    assert [answer for index, answer in answers if index == 3] == [Retried(KILLED), 9]
    assert len(answers) == 7


@pytest.mark.slow
def test_who_takes_too_long_is_ended_and_not_tried_again() -> None:
    """It would take as long once more."""
    answers = dict(Pool(one_that(_hang), 2, limit_s=1.0).run(range(10)))
    assert answers.pop(7) == Lost("it took longer than 1 s; give it more with --timeout")
    assert answers == {number: number * number for number in range(10) if number != 7}


def test_a_process_that_has_grown_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of one dump is released before the next is read."""
    monkeypatch.setattr(workers, "_LARGE_MIB", -1)
    pids = [pid for _, pid in Pool(lambda _: os.getpid(), 2).run(range(5))]
    assert len(set(map(str, pids))) == 5


def test_processes_are_kept_while_they_are_small() -> None:
    """What they have compiled and imported serves the next cluster."""
    pids = {str(pid) for _, pid in Pool(lambda _: os.getpid(), 2).run(range(30))}
    assert 1 <= len(pids) <= 2


def test_whoever_stops_listening_ends_the_processes() -> None:
    """As Ctrl-C does."""
    pool: Pool[int, int] = Pool(lambda _: os.getpid(), 2)
    answers = pool.run(range(50))
    _, pid = next(answers)
    assert isinstance(pid, int)
    answers.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _unpack_and_hang(_: int) -> int:
    tempfile.mkdtemp(prefix="runup-dump-")
    return _hang(0)


def _unpack_and_die(_: int) -> int:
    (Path(tempfile.mkdtemp(prefix="runup-dump-")) / "file").write_text("much")
    return _kill(0)


@pytest.mark.parametrize("does", [_unpack_and_hang, _unpack_and_die, _run_out, _fail])
def test_what_a_process_unpacked_goes_with_it(
    does: Callable[[int], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it ends: dumps are gigabytes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answers = dict(Pool(one_that(does), 2, limit_s=1.0).run([1, 7]))
    assert isinstance(answers[1], Lost)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_processes_are_stopped_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a console is ended at the end of a round: the folders hold what clusters' dumps hold."""

    def signalled_then_removed(path: Path) -> str:
        signal.raise_signal(signal.SIGTERM)  # to this thread, which holds it back
        return remove_tree(path)

    def exits(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    monkeypatch.setattr(workers, "remove_tree", signalled_then_removed)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.signal(signal.SIGTERM, exits)
    try:
        with pytest.raises(SystemExit):
            for _ in Pool(_square, 3).run(range(3)):
                assert list(tmp_path.iterdir())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(tmp_path.iterdir()) == []
