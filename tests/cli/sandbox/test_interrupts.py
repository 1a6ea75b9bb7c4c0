"""The demo's interrupts: one at most, and only where it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runup.process.ending_signals import ending_signals
from runup.sandbox.demo_cluster import Interrupts


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Put the process's own back."""
    before = {number: signal.getsignal(number) for number in ending_signals()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupt(number: int = signal.SIGTERM) -> None:
    """Send it to this process, and let Python see to it."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("second", ending_signals())
def test_a_second_one_does_not_cut_off_the_clearing_up(second: int) -> None:
    """It arrives after the first was raised and before anything was cleared up."""
    interrupts = Interrupts()
    cleared = False
    with pytest.raises(KeyboardInterrupt):
        interrupts.guarding(interrupt)
    try:
        interrupt(second)
    finally:
        cleared = True
    assert cleared


def test_one_that_comes_before_the_work_ends_it_at_its_start() -> None:
    """Nothing was begun, so nothing is left."""
    interrupts = Interrupts()
    interrupt()
    begun: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupts.guarding(lambda: begun.append("begun"))
    assert begun == []


def test_one_that_comes_after_the_work_is_too_late() -> None:
    """The clearing up at the end of the story is not cut off either."""
    interrupts = Interrupts()
    interrupts.guarding(lambda: None)
    interrupt()


def test_a_command_is_ended_by_an_interrupt(tmp_path: Path) -> None:
    """It does not outlive us."""
    interrupts = Interrupts()
    pid = tmp_path / "pid"
    write = f"import os, signal, time; open({str(pid)!r}, 'w').write(str(os.getpid()))"
    program = f"{write}; os.kill({os.getpid()}, signal.SIGTERM); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        interrupts.guarding(lambda: interrupts.run([sys.executable, "-c", program], os.environ) and None)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
