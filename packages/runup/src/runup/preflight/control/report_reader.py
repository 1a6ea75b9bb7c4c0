"""Reads the running preflight's report from the shared volume or from a ConfigMap, and keeps the last one read.

The file was written by another, untrusted process. So it is opened without following links, must be a regular file, and
is read only up to a limit before anything parses it.

Each report that is taken may lead to writes of ClusterVersion and of the record. So a target that changes its report
all the time is not followed at its own pace: a few changes are taken at once, then one in `INTERVAL_S`, always the
newest. An attempt's first report is taken at once, and so is its first complete one, after which a few changes are
taken at once again.

Python has no binding of inotify, whose three calls are made through ctypes. File systems of a network report only what
their own machine changes, and some report nothing. So callers that wait for an event also look from time to time.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap
from kubekit.kube.clock import Clock, run_within
from kubekit.kube.watch import Allowance
from kubekit.lang.files import remove_tree
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.attempt import is_attempt_id
from runup.preflight.decide.outcome import BadReportSeen, ReportSeen
from runup.report import report
from runup.report.report import BadReport, Report

# Seconds within which a renamed file is noticed, and between looks while no file is followed or the kernel reports
# changes. Somebody may be waiting for the effect of a fix; a stat of one file costs microseconds, and 25 of them a
# second a thousandth of a core.
POLL_S, IDLE_S = 0.04, 0.25
# Seconds from one event of the kernel to the next one that is listened to: a target may rename files all the time.
PAUSE_S = 0.01
# Changes of a report that are taken at once, and seconds until there is room for another one.
BURST = 4
INTERVAL_S = 10.0


FileFingerprint = tuple[int, ...] | str
"""A value that changes when a report does: of a file, or the text of a ConfigMap."""


class ReportReader:
    """Follows the report of one preflight at a time, and measures for how long it has not changed.

    The age is measured with this process's own clock: the report's times are the target's, and the file's are the
    node's.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        on_change: Callable[[], None],
        *,
        on_unremovable: Callable[[Path, str], None] = lambda _folder, _why: None,
    ) -> None:
        """Reads from `folder`.

        `on_change` is called for each report that `run` takes, `on_unremovable` with each folder that could not be
        removed and the reason.
        """
        self._folder = folder
        self._clock = clock
        self._on_change = on_change
        self._on_unremovable = on_unremovable
        self._id = ""
        # The report in a ConfigMap, if that is where it is.
        self._config_map_text: str | None = None
        # The fingerprint of the report that was taken last, and of the one that was noticed last.
        self._taken: FileFingerprint | None = None
        self._noticed: FileFingerprint | None = None
        self._seen: ReportSeen | None = None
        # When the noticed report last changed, by this process's clocks.
        self._changed_at, self._changed_time = clock.monotonic(), clock.now()
        self._allowance = Allowance(BURST, INTERVAL_S)
        # Whether a complete report of this preflight was taken.
        self._completed = False
        # The ID of the preflight whose folder is kept: None while it is not known, "" if no folder is kept.
        self._kept_id: str | None = None
        # Folders that `run` removes: those that existed when another preflight, or none, was followed. Later ones may
        # belong to the next preflight, which this process has started but not yet observed.
        self._obsolete_folders: tuple[Path, ...] = ()

    def clear(self) -> None:
        """Stops following any report: `run` then removes the folders of all preflights, the last one's included."""
        self.follow("")
        self._keep_only("")

    @property
    def seen(self) -> ReportSeen | None:
        """The report that was taken last; None if there was none. A report whose file vanishes counts as unchanged."""
        if self._seen is None:
            return None
        unchanged_s = self._clock.monotonic() - self._changed_at
        return replace(self._seen, unchanged_s=unchanged_s, changed_at=self._changed_time)

    def follow(self, preflight_id: str) -> None:
        """Reads this preflight's report from now on, the first time at once; an empty ID follows none."""
        self._switch_to(preflight_id)
        self._config_map_text = None
        if preflight_id:
            self._keep_only(preflight_id)
            self.poll()

    def follow_map(self, preflight_id: str, config_map: ConfigMap | None) -> None:
        """Takes this preflight's report from `config_map`, on clusters that forbid host paths."""
        self._switch_to(preflight_id)
        self._config_map_text = config_map.data.get(report.FILE_NAME) if config_map else None
        self.poll()

    def poll(self) -> bool:
        """Takes the report if it differs from the one that was taken last and may be taken; returns whether it did."""
        if not self._id:
            return False
        path = self._folder / self._id / report.FILE_NAME
        text = self._config_map_text
        if text is not None:
            return self._read_if_changed(text, lambda: parse(text.encode(), self._id, self._clock))
        try:
            fingerprint = _file_fingerprint(path)
            return fingerprint is not None and self._read_if_changed(
                fingerprint, lambda: read_file(path, self._id, self._clock)
            )
        except OSError:  # of this process alone: the next poll reads the report
            return False

    def _read_if_changed(self, fingerprint: FileFingerprint, read_report: Callable[[], ReportSeen]) -> bool:
        """Reads the report if its file changed and a read is allowed now; returns whether it was read."""
        if fingerprint == self._taken:
            return False
        is_new = fingerprint != self._noticed
        if is_new:
            self._noticed = fingerprint
            self._changed_at, self._changed_time = self._clock.monotonic(), self._clock.now()
        if self._seen is None or self._allowance.take(self._clock.monotonic()):
            self._take_report(fingerprint, read_report())
            return True
        # Read once to see whether it is the end that everybody waits for, which does not wait for its turn.
        if is_new and not self._completed and _is_complete(report_seen := read_report()):
            self._take_report(fingerprint, report_seen)
            return True
        return False

    def _take_report(self, fingerprint: FileFingerprint, report_seen: ReportSeen) -> None:
        self._taken, self._seen = fingerprint, report_seen
        if not self._completed and _is_complete(report_seen):
            self._completed = True
            # From now on the report changes because somebody fixes what it found, and waits to see the effect. The
            # progress until here has used the allowance up, so it starts full again. A target cannot abuse that: it
            # happens once in an attempt, and only a user starts an attempt.
            self._allowance = Allowance(BURST, INTERVAL_S)

    def _switch_to(self, preflight_id: str) -> None:
        """Forgets the last report if another preflight is followed from now on."""
        if preflight_id != self._id:
            self._id, self._taken, self._noticed, self._seen = preflight_id, None, None, None
            self._config_map_text, self._completed = None, False

    def _keep_only(self, preflight_id: str) -> None:
        """Marks the folders of all other preflights as obsolete; an empty ID marks all folders."""
        if self._kept_id != preflight_id:
            self._kept_id = preflight_id
            self._obsolete_folders = tuple(folders_of_others(self._folder, preflight_id))

    async def run(self) -> None:
        """Polls the report until cancelled, and calls `on_change` for each report that is taken.

        Polls when the kernel reports a change, and every `POLL_S` seconds while it has told nothing of the followed
        file, else every `IDLE_S`. Also removes the folders of other preflights once `follow` or `clear` has made them
        obsolete.
        """
        with FolderEvents() as events:
            while True:
                was_told = await self._until_next_poll(events)
                if self.poll():
                    self._on_change()
                await self._remove_obsolete_folders()
                if was_told:
                    await self._clock.sleep(PAUSE_S)

    async def _until_next_poll(self, events: FolderEvents) -> bool:
        """Waits until the kernel reports a change, or until the file is polled all the same; returns which."""
        follows_file = bool(self._id) and self._config_map_text is None
        events.watch(self._folder / self._id if follows_file else None)
        try:
            await run_within(self._clock, POLL_S if follows_file and not events.has_told else IDLE_S, events.wait())
        except TimeoutError:
            return False
        return True

    async def _remove_obsolete_folders(self) -> None:
        """Removes the folders of other preflights, if there are any."""
        obsolete, self._obsolete_folders = self._obsolete_folders, ()
        if obsolete:
            for folder, problem in await asyncio.to_thread(remove, obsolete):
                self._on_unremovable(folder, problem)


def folders_of_others(folder: Path, preflight_id: str) -> Iterator[Path]:
    """Returns the folders in `folder` that other preflights made; other names are not included."""
    return (path for path in sorted(folder.glob("*")) if path.name != preflight_id and is_attempt_id(path.name))


def remove(folders: Iterable[Path]) -> list[tuple[Path, str]]:
    """Removes `folders`; returns those that could not be removed completely, with the reason. Links are kept.

    A target may fill a folder so that it cannot be removed: the others are removed all the same.
    """
    return [(path, problem) for path in folders if (problem := remove_tree(path))]


# No descriptors or no memory: nothing that the target could fix.
_OWN_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def read_file(path: Path, preflight_id: str, clock: Clock) -> ReportSeen:
    """Returns the report in `path`, or why it cannot be used.

    Raises OSError if this process lacks what reading needs.
    """
    try:
        data = _read(path)
    except OSError as error:
        if error.errno in _OWN_SHORTAGES:
            raise
        text = f"the report could not be read: {error.strerror or error}"
        return ReportSeen(
            preflight_id=preflight_id, content=BadReportSeen("ReportUnreadable", text), read_at=clock.now()
        )
    except BadReport as error:
        return ReportSeen(
            preflight_id=preflight_id, content=BadReportSeen(error.reason, error.message), read_at=clock.now()
        )
    return parse(data, preflight_id, clock)


def names_of(config_maps: Iterable[ConfigMap]) -> Iterator[str]:
    """Returns the names of the ConfigMaps that hold a report."""
    names = (config_map.metadata.name for config_map in config_maps)
    return (name for name in names if name.startswith(preflight_deployment.REPORT_MAP_PREFIX))


def parse(data: bytes, preflight_id: str, clock: Clock) -> ReportSeen:
    """Returns the report in `data`, or why it cannot be used."""
    try:
        return ReportSeen(preflight_id=preflight_id, content=report.read(data, for_request=True), read_at=clock.now())
    except BadReport as error:
        return ReportSeen(
            preflight_id=preflight_id, content=BadReportSeen(error.reason, error.message), read_at=clock.now()
        )


def _read(path: Path) -> bytes:
    """Returns the file's bytes, one more than the limit at most, so that the caller can tell that it is too large.

    Neither the folder nor the file may be a symbolic link. Raises OSError, or BadReport if the file is not a regular
    file.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # O_NONBLOCK: opening a named pipe must not hang the operator.
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadReport("the report is a symbolic link", reason="ReportInvalid") from error
        raise
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadReport("the report is not a regular file", reason="ReportInvalid")
        # One byte more than the limit, so that a report that is too large is recognised as such.
        return read_up_to(handle, report.MAX_BYTES + 1)
    finally:
        os.close(handle)


def read_up_to(handle: int, limit: int) -> bytes:
    """Returns at most `limit` bytes of a file, fewer only at its end."""
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(handle, limit)):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def _is_complete(report_seen: ReportSeen) -> bool:
    return isinstance(report_seen.content, Report) and report_seen.content.execution_status == "completed"


def _file_fingerprint(path: Path) -> FileFingerprint | None:
    """Returns a value that changes when the file does; None if there is no file."""
    try:
        file_status = path.lstat()
    except OSError:
        return None
    # The inode changes with every rename, even if time and size stay the same.
    return file_status.st_ino, file_status.st_mtime_ns, file_status.st_size, file_status.st_mode


# <sys/inotify.h>
_IN_MOVED_TO = 0x80
_IN_ONLYDIR, _IN_DONT_FOLLOW = 0x01000000, 0x02000000
_MASK = _IN_MOVED_TO | _IN_ONLYDIR | _IN_DONT_FOLLOW
# Events that are read together; those that are left over are reported at the next `wait`.
_READ_BYTES = 1 << 16


class FolderEvents:
    """A context manager that watches one folder at a time, and follows no link to it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._handle = -1
        # The watch of the folder in the kernel, negative for none.
        self._watch = -1
        self.has_told = False
        """Whether there was any event in the folder that is watched."""

    def __enter__(self) -> Self:
        if self._libc is not None:
            self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def watch(self, folder: Path | None) -> None:
        """Watches `folder` and no other; one that does not exist yet is watched when this is called again."""
        if self._libc is None or self._handle < 0:
            return
        watch = -1
        if folder is not None:
            # Again each time: there may be another folder of this name by now. For the same one it is the same watch.
            watch = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _MASK)
        if watch == self._watch:
            return
        if self._watch >= 0:
            # An error if the folder is gone: then the kernel has removed the watch.
            self._libc.inotify_rm_watch(self._handle, self._watch)
        self._watch, self.has_told = watch, False

    async def wait(self) -> None:
        """Waits for an event in the folder; for ever where there is no inotify."""
        happened = asyncio.Event()
        if self._handle < 0:
            await happened.wait()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._handle, happened.set)
        try:
            await happened.wait()
        finally:
            loop.remove_reader(self._handle)
        self.has_told = True
        with suppress(BlockingIOError):
            os.read(self._handle, _READ_BYTES)
