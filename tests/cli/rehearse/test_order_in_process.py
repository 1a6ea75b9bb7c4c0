"""A rehearsal as a preflight orders it, in this process: its outcomes, its errors, and the signals that end it."""

from __future__ import annotations

import asyncio
import errno
import io
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.rehearse.rehearsed_world import STATUS
from tests.servers import Server

from kubekit.error_types import InputError, Terminal
from runup.checks.decide.rehearsed_outcomes import decode_outcomes
from runup.cli.errors import CommandError
from runup.process.ending_signals import exit_on_signal
from runup.rehearse.control.ordered_rehearsal import answer_order, is_want_of_memory, message_of
from runup.rehearse.control.releases import run_on_copy, run_until_signal
from runup.target.rehearsal_process import RehearsalOrder

RELEASE = Path(__file__).parents[3] / "examples" / "rehearsal" / "release"


@pytest.mark.parametrize(
    ("base", "url"),
    [("https://docs.own.example/5.1", "https://docs.own.example/5.1/"), ("", "https://docs.runup.example/")],
    ids=["the release's own", "the usual one"],
)
def test_an_order_is_answered(server: Server, base: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the outcomes of the rehearsal, whose pages are where the order says."""
    server.set_cluster_version(status=STATUS)
    answer = io.BytesIO()
    order = RehearsalOrder(release_dir=str(RELEASE), kubeconfig=str(server.kubeconfig), documentation_base=base)
    assert (answer_order(order, answer), capsys.readouterr().err) == (0, "")
    findings = {each.name: each for outcome in decode_outcomes(answer.getvalue()) for each in outcome.findings}
    assert "RehearsalKindNotServed-ClusterOperator-b" in findings
    assert {each.url.startswith(url) for each in findings.values()} == {True}


def test_an_order_that_cannot_be_carried_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr, and nothing where the outcomes would be."""
    answer = io.BytesIO()
    order = RehearsalOrder(release_dir=str(tmp_path / "none"), kubeconfig=str(tmp_path / "kubeconfig"))
    assert (answer_order(order, answer), answer.getvalue()) == (1, b"")
    assert capsys.readouterr().err == f"--release-dir {tmp_path}/none: there is no such folder\n"


@pytest.mark.parametrize(
    ("error", "memory", "message"),
    [
        pytest.param(OSError(errno.ENOMEM, "Cannot allocate memory"), True, "[Errno 12] Cannot allocate memory"),
        pytest.param(OSError(errno.ENOENT, "No such file"), False, "[Errno 2] No such file"),
        pytest.param(MemoryError(), True, None),
        pytest.param(RuntimeError("can't start new thread"), True, None),
        pytest.param(RuntimeError("no running event loop"), False, None),
        pytest.param(ImportError("x.so: failed to map segment from shared object"), True, None),
        pytest.param(SystemError("error return without exception set"), True, None),
        pytest.param(SystemError("bad argument"), False, None),
        pytest.param(ImportError("No module named x"), False, None),
        pytest.param(ValueError("can't start new thread"), False, None),
        pytest.param(Terminal("too\nlong", reason="RehearsalTooLong"), False, "too\\nlong"),
        pytest.param(CommandError("--image x: is none"), False, "--image x: is none"),
    ],
)
def test_what_an_error_is(error: Exception, memory: bool, message: str | None) -> None:
    """Want of memory, something that a user can fix and is reported in one line, or a bug of runup's."""
    assert (is_want_of_memory(error), message_of(error)) == (memory, message)


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize(
    ("number", "raised", "code"),
    [(signal.SIGTERM, SystemExit, 143), (signal.SIGINT, KeyboardInterrupt, None), (signal.SIGHUP, SystemExit, 129)],
    ids=["SIGTERM", "SIGINT", "SIGHUP"],
)
def test_a_signal_cancels_what_is_done(number: int, raised: type[BaseException], code: int | None) -> None:
    """It cleans up first, and the command ends as by the signal."""
    shown: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            shown.append("cleaned up")

    with pytest.raises(raised) as error:
        run_until_signal(work())
    assert (shown, getattr(error.value, "code", None)) == (["cleaned up"], code)


def test_what_no_signal_ends() -> None:
    """The result is returned, and the previous SIGTERM handler is restored."""

    async def work() -> str:
        return "done"

    before = signal.getsignal(signal.SIGTERM)
    with exit_on_signal():
        assert run_until_signal(work()) == "done"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_block_is_left_by_a_signal(number: signal.Signals, code: int) -> None:
    """By an exception, so that what it holds is removed."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as error, exit_on_signal():
        signal.raise_signal(number)
    assert (error.value.code, signal.getsignal(number)) == (code, before)


def test_a_block_goes_on_after_the_terminal_under_nohup() -> None:
    """Who ignores the signal has said so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with exit_on_signal():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the copy of the cluster could not be made: [Errno 28] No space left on device",
        ),
        (
            MemoryError(),
            "the copy of the cluster needs more memory than there is: some 150 MiB for each 10,000 objects; rehearse "
            "on another machine",
        ),
    ],
    ids=["no room", "no memory"],
)
def test_a_copy_that_cannot_be_made(error: Exception, says: str) -> None:
    """Is an error with the way out, and no bug of runup's."""

    async def work() -> Any:
        raise error

    with pytest.raises(InputError) as shown:
        run_on_copy(work())
    assert shown.value.message == says
