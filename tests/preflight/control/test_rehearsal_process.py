"""The process of a rehearsal: what is reported when it does not come to its end, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runup.checks.decide.rehearsed_outcomes import NOT_RUN
from runup.target.rehearsal_process import TOO_LARGE, RehearsalOrder, RehearsalProcess

ENDS: dict[str, tuple[float, dict[str, Any], str]] = {
    "no release": (240.0, {}, "its process ended with code 1: --release-dir nowhere: there is no such folder"),
    "too little time": (0.001, {}, "it took more than 0.001 s; raise `timeout` of the settings"),
    "an image without it": (240.0, {"module": "nowhere.at.all"}, "the image of the release does not carry it"),
    "another program's text": (240.0, {"module": "this"}, "JSON is malformed"),
    "another program's data": (240.0, {"module": "json.tool"}, "Expected `array`, got `object`"),
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary ones are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(("limit_s", "more", "shown"), ENDS.values(), ids=ENDS)
async def test_what_is_told_of_a_process_that_comes_to_nothing(
    limit_s: float, more: dict[str, Any], shown: str, scratch: Path
) -> None:
    """Why there is no rehearsal is Unknown, with the way out; whoever waits is woken, and no folder is left."""
    woken: list[bool] = []
    process = RehearsalProcess(RehearsalOrder(release_dir="nowhere"), limit_s, lambda: woken.append(True), **more)
    await process.run()
    assert process.outcomes is not None
    (outcome,) = process.outcomes
    (finding,) = outcome.findings
    assert (outcome.result, finding.name, shown in finding.message) == ("Unknown", NOT_RUN, True), finding.message
    assert (woken, os.listdir(scratch)) == ([True], [])  # noqa: PTH208 -- of a few entries, in a test


@pytest.mark.slow
async def test_what_a_crash_left(scratch: Path) -> None:
    """A container that is started again has processes of the same numbers; the next rehearsal removes the copy."""
    left = scratch / f"runup-rehearse-{os.getpid()}" / "runup-rehearse-x" / "server"
    left.mkdir(parents=True)
    (left / "objects").write_text("everything")
    process = RehearsalProcess(RehearsalOrder(release_dir="nowhere"), 240.0, lambda: None)
    await process.run()
    assert (process.outcomes is not None, os.listdir(scratch)) == (True, [])  # noqa: PTH208 -- of a few entries, in a test


async def test_another_s_folder_is_not_used(scratch: Path, tmp_path: Path) -> None:
    """What cannot be removed and recreated may be read by somebody else."""
    (tmp_path / "another's").mkdir()
    (scratch / f"runup-rehearse-{os.getpid()}").symlink_to(tmp_path / "another's")
    process = RehearsalProcess(RehearsalOrder(release_dir="nowhere"), 240.0, lambda: None)
    await process.run()
    (outcome,) = process.outcomes or ()
    assert "File exists" in outcome.message
    assert os.listdir(tmp_path / "another's") == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", "its process was ended by signal 9", id="killed"),
        pytest.param(
            f"sys.exit({TOO_LARGE})", "needs more than the 7 MiB that it may have; raise `memory", id="memory"
        ),
        pytest.param("sys.exit(4)", "its process ended with code 4: it said nothing", id="without a word"),
        pytest.param("sys.exit('one\\ntwo')", "its process ended with code 1: two", id="with two lines"),
    ],
)
async def test_how_a_process_ended(ends: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its exit code, with the last line that it wrote."""
    (tmp_path / "ending.py").write_text(f"import os, signal, sys\n{ends}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    process = RehearsalProcess(
        RehearsalOrder(release_dir="nowhere", memory_mib=7), 240.0, lambda: None, module="ending"
    )
    await process.run()
    (outcome,) = process.outcomes or ()
    assert shown in outcome.message


STUBBORN = """
import os, pathlib, signal
folder = pathlib.Path({folder!r})
signal.signal(signal.SIGTERM, lambda *_: (folder / "asked").touch())
(folder / "fifo").write_text(str(os.getpid()))
while True:
    signal.pause()
"""


async def test_a_process_is_ended_at_once(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is asked to stop may be cut off itself before a process has ended that was only asked to."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "stubborn.py").write_text(STUBBORN.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    process = RehearsalProcess(RehearsalOrder(release_dir="nowhere"), 240.0, lambda: None, module="stubborn")
    running = asyncio.create_task(process.run())
    pid = int(await asyncio.to_thread((tmp_path / "fifo").read_text))
    assert process.outcomes is None
    running.cancel()
    await asyncio.wait([running])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert ((tmp_path / "asked").exists(), os.listdir(scratch)) == (False, [])  # noqa: PTH208
