"""The report is untrusted input: what is no good file is a reason, never a crash and never a read of something else."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.kube.clock import ManualClock
from runup.preflight.control.report_reader import ReportReader, read_file
from runup.preflight.decide.outcome import BadReportSeen
from runup.report.report import FORMAT, Report, ReportedRisk, encode

GOOD = Report(format=FORMAT, preflight_id="id", target_version="5.2.0", execution_status="completed")


def _symlink(path: Path) -> None:
    other = path.parent / "other.json"
    other.write_bytes(encode(GOOD))
    path.symlink_to(other)


def _risks(names: list[str]) -> bytes:
    risks = tuple(ReportedRisk(name=name, message="m", url="https://example.com") for name in names)
    return encode(Report(format=FORMAT, target_version="5.2.0", execution_status="completed", risks=risks))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda p: p.write_bytes(b'{"format": "prefl'), "ReportInvalid", id="truncated JSON"),
        pytest.param(lambda p: p.write_bytes(b" " * (2 << 20)), "ReportTooLarge", id="two mebibytes"),
        pytest.param(_symlink, "ReportInvalid", id="a symbolic link to a good report"),
        pytest.param(os.mkfifo, "ReportInvalid", id="a named pipe"),
        pytest.param(Path.mkdir, "ReportInvalid", id="a folder"),
        pytest.param(lambda _: None, "ReportUnreadable", id="gone since it was seen"),
        pytest.param(lambda p: p.write_bytes(_risks([f"R{n}" for n in range(501)])), "TooManyRisks", id="501 risks"),
        pytest.param(lambda p: p.write_bytes(_risks(["no good"])), "InvalidRiskName", id="a bad name"),
        pytest.param(lambda p: p.write_bytes(b'{"format": "v2"}'), "UnknownFormat", id="an unknown format"),
    ],
)
def test_what_is_no_report_is_a_reason(tmp_path: Path, make: Callable[[Path], object], reason: str) -> None:
    """Nothing is followed, nothing hangs, nothing is read beyond the limit."""
    path = tmp_path / "report.json"
    make(path)
    seen = read_file(path, "id", ManualClock()).content
    assert isinstance(seen, BadReportSeen)
    assert seen.reason == reason


def test_a_process_without_descriptors_keeps_the_last_report(tmp_path: Path) -> None:
    """The target cannot fix that. The new report is read as soon as there is a descriptor."""
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)
    (tmp_path / "id").mkdir()
    (tmp_path / "id" / "report.json").write_bytes(encode(GOOD))
    reader.follow("id")
    (tmp_path / "id" / "report.json").write_bytes(encode(replace(GOOD, message="newer")))
    clock.jump(60)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert not reader.poll()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reader.seen is not None
    assert reader.seen.content == GOOD
    clock.jump(60)
    assert reader.poll()
    assert reader.seen.content == replace(GOOD, message="newer")


def test_an_unknown_field_is_allowed(tmp_path: Path) -> None:
    """Additive changes are read by older operators."""
    path = tmp_path / "report.json"
    path.write_bytes(encode(GOOD).replace(b"{", b'{"someday": 1,', 1))
    assert read_file(path, "id", ManualClock()).content == GOOD


def test_a_renamed_report_is_seen_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    """The reader tells a change from none, and forgets a preflight that it no longer follows."""
    reader = ReportReader(tmp_path, ManualClock(), lambda: None)
    reader.follow("id")
    assert reader.seen is None
    (tmp_path / "id").mkdir()
    new = tmp_path / "id" / "new"
    new.write_bytes(encode(GOOD))
    new.rename(tmp_path / "id" / "report.json")
    assert reader.poll()
    assert reader.seen is not None and reader.seen.content == GOOD
    assert not reader.poll()
    reader.follow("another")
    assert reader.seen is None


async def test_how_long_a_report_has_not_changed(tmp_path: Path) -> None:
    """By the reader's own clock: what is written again unchanged has changed, what goes has not."""
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)
    (tmp_path / "id").mkdir()

    def age() -> float | None:
        reader.follow("id")
        return reader.seen.unchanged_s if reader.seen else None

    def write() -> None:
        new = tmp_path / "id" / "new"
        new.write_bytes(encode(GOOD))
        new.rename(tmp_path / "id" / "report.json")

    assert age() is None
    write()
    assert age() == 0
    await clock.advance(40)
    assert age() == 40
    write()
    assert age() == 0
    await clock.advance(90)
    (tmp_path / "id" / "report.json").unlink()
    assert age() == 90


async def test_how_long_a_report_in_a_config_map_has_not_changed(tmp_path: Path) -> None:
    """What counts is the report, not what else happens to the object; the target's heartbeat is part of it."""
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)

    def age(beat: int, **labels: str) -> float:
        written = encode(replace(GOOD, heartbeat_time=datetime(2026, 1, 1, 0, beat, tzinfo=UTC)))
        config_map = ConfigMap(metadata=ObjectMeta(labels=labels), data={"report.json": written.decode()})
        reader.follow_map("id", config_map)
        assert reader.seen is not None
        return reader.seen.unchanged_s

    assert age(0) == 0
    await clock.advance(60)
    assert age(0, touched="yes") == 60
    assert age(1) == 0
    reader.follow_map("id", None)
    assert reader.seen is not None


class Flood:
    """A target that writes another report each time, in a file or a ConfigMap, and the reports that are taken."""

    def __init__(self, folder: Path, *, in_map: bool) -> None:
        self.clock = ManualClock()
        self.taken: list[tuple[float, str]] = []
        self.reader = ReportReader(folder, self.clock, self._take)
        self._place = None if in_map else folder / "id"
        if self._place is not None:
            self._place.mkdir()

    def write(self, message: str, status: str = "running") -> None:
        """Another report, which a watch brings at once where it is a ConfigMap."""
        data = encode(replace(GOOD, message=message, execution_status=status))
        if self._place is None:
            self.reader.follow_map("id", ConfigMap(data={"report.json": data.decode()}))
        else:
            (self._place / "new").write_bytes(data)
            (self._place / "new").rename(self._place / "report.json")
            self.reader.follow("id")
        self._take()

    async def wait(self, seconds: float) -> None:
        """Time passes, in which the reader looks."""
        running = asyncio.create_task(self.reader.run())
        await self.clock.advance(seconds)
        running.cancel()

    def _take(self) -> None:
        seen = self.reader.seen
        assert seen is not None
        assert isinstance(seen.content, Report)
        if not self.taken or self.taken[-1][1] != seen.content.message:
            self.taken.append((self.clock.monotonic(), seen.content.message))


@pytest.mark.parametrize("in_map", [pytest.param(False, id="a file"), pytest.param(True, id="a ConfigMap")])
@pytest.mark.parametrize("status", ["running", "completed"])
async def test_a_report_that_changes_each_second_is_taken_every_ten(tmp_path: Path, in_map: bool, status: str) -> None:
    """The first and four more at once, then the newest of ten; the last one is not left out."""
    flood = Flood(tmp_path, in_map=in_map)
    for second in range(60):
        flood.write(f"{second}", status)
        await flood.wait(1)
    await flood.wait(10)
    times = [at for at, _ in flood.taken]
    assert times[:5] == [0, 1, 2, 3, 4]
    assert len(times) <= 5 + 7
    assert all(later - earlier >= 9.5 for earlier, later in itertools.pairwise(times[5:]))
    assert flood.taken[-1][1] == "59"


@pytest.mark.parametrize("in_map", [pytest.param(False, id="a file"), pytest.param(True, id="a ConfigMap")])
async def test_the_first_complete_report_is_taken_at_once(tmp_path: Path, in_map: bool) -> None:
    """Whoever waits for it does not wait for a turn, nor for the effects of the first fixes; a flood does."""
    flood = Flood(tmp_path, in_map=in_map)
    for number in range(9):
        flood.write(f"partial {number}")
    flood.write("complete", "completed")
    assert flood.taken[-1] == (0, "complete")
    for number in range(9):
        flood.write(f"partial again {number}")
        flood.write(f"complete again {number}", "completed")
    assert len(flood.taken) == 1 + 4 + 1 + 4
    assert flood.taken[-1] == (0, "complete again 1")
    assert flood.reader.seen is not None
    assert flood.reader.seen.unchanged_s == 0
    flood.reader.follow_map("another", ConfigMap(data={"report.json": encode(GOOD).decode()}))
    assert flood.reader.seen.preflight_id == "another"


async def test_a_flood_is_no_silence(tmp_path: Path) -> None:
    """A report that waits for its turn has changed all the same."""
    flood = Flood(tmp_path, in_map=False)
    for number in range(6):
        flood.write(f"{number}")
    await flood.clock.advance(3)
    flood.write("newest")
    seen = flood.reader.seen
    assert seen is not None
    assert (seen.unchanged_s, seen.content.message) == (0, "4")


async def test_folders_of_earlier_preflights_are_removed(tmp_path: Path) -> None:
    """Only what a preflight made: neither the current one's, nor a stranger's folder, nor what a link leads to."""
    old, new = "preflight-3-0123456789", "preflight-4-abcdef0123"
    for name in (old, new, "lost+found", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_bytes(encode(GOOD))
    (tmp_path / "preflight-2-0123456789").symlink_to(tmp_path / "elsewhere")
    (tmp_path / old / "link").symlink_to(tmp_path / "elsewhere")
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)
    running = asyncio.create_task(reader.run())
    try:
        await clock.advance(1)
        assert (tmp_path / old).exists(), "nothing is followed yet, so nothing is known to be over"
        reader.follow(new)
        async with asyncio.timeout(90):
            while (tmp_path / old).exists():
                await clock.advance(1)
    finally:
        running.cancel()
    assert _names(tmp_path) == {new, "lost+found", "elsewhere", "preflight-2-0123456789"}
    assert _names(tmp_path / "elsewhere") == {"report.json"}


async def test_a_preflight_that_came_and_went_between_two_looks_leaves_nothing(tmp_path: Path) -> None:
    """Before it and after it nobody writes: that is the same twice, and yet there is something to remove."""
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)
    running = asyncio.create_task(reader.run())
    try:
        for name in ("preflight-1-0123456789", "preflight-2-0123456789"):
            (tmp_path / name).mkdir()
            reader.follow(name)
            reader.clear()
            async with asyncio.timeout(90):
                while _names(tmp_path):
                    await clock.advance(1)
    finally:
        running.cancel()


async def test_a_folder_that_is_too_deep_for_a_path_is_removed_with_the_others(tmp_path: Path) -> None:
    """A target can fill its folder as it likes; what follows it in the order is removed all the same."""
    deep = tmp_path / "preflight-1-0123456789"
    deep.mkdir()
    handle = os.open(deep, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    (tmp_path / "preflight-2-0123456789").mkdir()
    (tmp_path / "preflight-0-0123456789").write_text("in a folder's place")
    clock, reported = ManualClock(), list[tuple[Path, str]]()
    reader = ReportReader(tmp_path, clock, lambda: None, on_unremovable=lambda *left: reported.append(left))
    running = asyncio.create_task(reader.run())
    try:
        reader.clear()
        async with asyncio.timeout(90):
            while not reported or len(_names(tmp_path)) > 1:
                await clock.advance(1)
    finally:
        running.cancel()
        # Where it is still there: Python's own removal, by which later runs clear up, recurses.
        await (await asyncio.create_subprocess_exec("rm", "-rf", deep)).wait()
    assert reported == [(tmp_path / "preflight-0-0123456789", "Not a directory")]


async def test_the_folder_of_a_preflight_that_is_begun_and_not_yet_seen_stays(tmp_path: Path) -> None:
    """The clearing up comes later than the decision: what was made in between is the next one's."""
    old, current, begun = "preflight-1-0123456789", "preflight-2-0123456789", "preflight-3-0123456789"
    (tmp_path / old).mkdir()
    clock = ManualClock()
    reader = ReportReader(tmp_path, clock, lambda: None)
    running = asyncio.create_task(reader.run())
    try:
        reader.follow(current)
        (tmp_path / begun).mkdir()
        async with asyncio.timeout(90):
            while (tmp_path / old).exists():
                await clock.advance(1)
    finally:
        running.cancel()
    assert _names(tmp_path) == {begun}


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
