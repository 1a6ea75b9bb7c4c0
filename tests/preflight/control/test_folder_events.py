"""A report is noticed when it is renamed, and by a poll where the kernel tells nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubekit.kube.clock import ManualClock
from runup.preflight.control.report_reader import POLL_S, FolderEvents, ReportReader
from runup.report.report import FORMAT, Report, encode

GUARD_S = 90.0
REPORT = Report(format=FORMAT, preflight_id="id", target_version="5.2.0", execution_status="completed")


def _rename_into(folder: Path, content: bytes = b"{}") -> None:
    temporary = folder / ".report.json.tmp"
    temporary.write_bytes(content)
    temporary.rename(folder / "report.json")


async def test_a_renamed_file_is_told(tmp_path: Path) -> None:
    """A file that is written under another name is not."""
    with FolderEvents() as events:
        events.watch(tmp_path)
        (tmp_path / ".report.json.tmp").write_bytes(b"{}")
        waiting = asyncio.create_task(events.wait())
        await asyncio.sleep(0)
        assert (waiting.done(), events.has_told) == (False, False)
        (tmp_path / ".report.json.tmp").rename(tmp_path / "report.json")
        async with asyncio.timeout(GUARD_S):
            await waiting
        assert events.has_told


async def test_a_folder_that_comes_later_is_watched_once_it_is_there(tmp_path: Path) -> None:
    """And after it was replaced, the one that has its name."""
    folder = tmp_path / "id"
    with FolderEvents() as events:
        events.watch(folder)
        folder.mkdir()
        for _ in range(2):
            events.watch(folder)
            assert not events.has_told
            _rename_into(folder)
            async with asyncio.timeout(GUARD_S):
                await events.wait()
            assert events.has_told
            folder.rename(folder.with_name("earlier"))
            folder.mkdir()
            for path in folder.with_name("earlier").iterdir():
                path.unlink()
            folder.with_name("earlier").rmdir()


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """The folder of an attempt is the target's, who may put a link in its place."""
    other, link = tmp_path / "other", tmp_path / "id"
    other.mkdir()
    link.symlink_to(other)
    with FolderEvents() as events:
        events.watch(link)
        _rename_into(other)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await events.wait()
        assert not events.has_told


async def test_a_report_is_taken_without_the_next_poll(tmp_path: Path) -> None:
    """The clock moves once, so that the folder is watched, and then stops."""
    clock, taken = ManualClock(), asyncio.Event()
    reader = ReportReader(tmp_path, clock, taken.set)
    (tmp_path / "id").mkdir()
    reader.follow("id")
    running = asyncio.create_task(reader.run())
    try:
        await clock.until_sleeping()
        _rename_into(tmp_path / "id", encode(REPORT))
        async with asyncio.timeout(GUARD_S):
            await taken.wait()
        assert clock.monotonic() == 0.0
        assert reader.seen is not None
        assert reader.seen.content == REPORT
    finally:
        running.cancel()


async def test_a_report_of_which_the_kernel_tells_nothing_is_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a system without inotify."""
    monkeypatch.setattr("sys.platform", "darwin")
    clock, taken = ManualClock(), asyncio.Event()
    reader = ReportReader(tmp_path, clock, taken.set)
    (tmp_path / "id").mkdir()
    reader.follow("id")
    running = asyncio.create_task(reader.run())
    try:
        await clock.until_sleeping()
        _rename_into(tmp_path / "id", encode(REPORT))
        assert not taken.is_set()
        await clock.advance(POLL_S)
        async with asyncio.timeout(GUARD_S):
            await taken.wait()
    finally:
        running.cancel()
