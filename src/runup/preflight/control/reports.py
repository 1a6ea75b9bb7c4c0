"""Reads the running preflight's report from the shared volume, or from a ConfigMap; what was read last is observed.

What lies there was written by another process with other interests: it is opened without following links, must be a
regular file, and is read up to a limit before anything looks at it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap
from kubekit.kube.clock import Clock
from runup.preflight.decide import report, workloads
from runup.preflight.decide.attempt import is_attempt_id
from runup.preflight.decide.outcome import BadReportSeen, ReportSeen
from runup.preflight.decide.report import BadReport

# A rename is seen within this; a stat of one file costs microseconds.
POLL_S = 0.25


class ReportReader:
    """Follows the report of one preflight at a time, and how long it has not been seen to change.

    That is told by this process's own clock: the report's times are the target's, and the file's are the node's.
    """

    def __init__(self, folder: Path, clock: Clock, on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._clock = clock
        self._on_change = on_change
        self._id = ""
        self._signature: tuple[int, ...] | str | None = None
        self._seen: ReportSeen | None = None
        self._changed_at = clock.monotonic()
        # Whose folder stays: None while that is not known, nothing where nobody writes any more.
        self._keep: str | None = None
        # Folders for `run` to remove: those that were there when it was seen that another preflight is followed, or
        # none. What comes later may be the next one's, which this process has begun and not yet seen.
        self._over: tuple[Path, ...] = ()

    def clear(self) -> None:
        """Nobody writes a report any more: `run` removes what preflights left, the last one's included."""
        self.follow("")
        self._stay("")

    @property
    def seen(self) -> ReportSeen | None:
        """What was read last; None while there was none. A report that vanishes is one that does not change."""
        if self._seen is None:
            return None
        return replace(self._seen, unchanged_s=self._clock.monotonic() - self._changed_at)

    def follow(self, preflight_id: str) -> None:
        """Read this preflight's report from now on; an empty ID follows none. Reads at once."""
        self._turn_to(preflight_id)
        if preflight_id:
            self._stay(preflight_id)
            self.poll()

    def follow_map(self, preflight_id: str, config_map: ConfigMap | None) -> None:
        """Take this preflight's report from `config_map`, for clusters that forbid host paths."""
        self._turn_to(preflight_id)
        text = config_map.data.get(report.FILE_NAME) if config_map else None
        if text is not None and text != self._signature:
            self._take(text, parse(text.encode(), preflight_id, self._clock))

    def poll(self) -> bool:
        """Read the file if it is not the one that was read last; says whether it changed."""
        if not self._id:
            return False
        path = self._folder / self._id / report.FILE_NAME
        signature = _signature(path)
        if signature is None or signature == self._signature:
            return False
        self._take(signature, read_file(path, self._id, self._clock))
        return True

    def _turn_to(self, preflight_id: str) -> None:
        if preflight_id != self._id:
            self._id, self._signature, self._seen = preflight_id, None, None

    def _stay(self, preflight_id: str) -> None:
        if self._keep != preflight_id:
            self._keep = preflight_id
            self._over = tuple(folders_of_others(self._folder, preflight_id))

    def _take(self, signature: tuple[int, ...] | str, seen: ReportSeen) -> None:
        self._signature, self._seen, self._changed_at = signature, seen, self._clock.monotonic()

    async def run(self) -> None:
        """Poll until cancelled; remove what earlier preflights left once another one is followed, or none."""
        while True:
            await self._clock.sleep(POLL_S)
            if self.poll():
                self._on_change()
            if self._over:
                over, self._over = self._over, ()
                await asyncio.to_thread(remove, over)


def folders_of_others(folder: Path, preflight_id: str) -> Iterator[Path]:
    """What other preflights than this one left in `folder`; what no preflight made is not among it."""
    return (path for path in sorted(folder.glob("*")) if path.name != preflight_id and is_attempt_id(path.name))


def remove(folders: Iterable[Path]) -> None:
    """Remove `folders`; what is a link stays, and what cannot be removed is in nobody's way."""
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


def read_file(path: Path, preflight_id: str, clock: Clock) -> ReportSeen:
    """The report in `path`, or why it is none."""
    try:
        data = _read(path)
    except OSError as error:
        text = f"the report could not be read: {error.strerror or error}"
        return ReportSeen(preflight_id, BadReportSeen("ReportUnreadable", text), clock.now())
    except BadReport as error:
        return ReportSeen(preflight_id, BadReportSeen(error.reason, error.message), clock.now())
    return parse(data, preflight_id, clock)


def names_of(config_maps: Iterable[ConfigMap]) -> Iterator[str]:
    """The names of those that hold a report."""
    names = (config_map.metadata.name for config_map in config_maps)
    return (name for name in names if name.startswith(workloads.REPORT_MAP_PREFIX))


def parse(data: bytes, preflight_id: str, clock: Clock) -> ReportSeen:
    """The report in `data`, or why it is none."""
    try:
        return ReportSeen(preflight_id, report.read(data), clock.now())
    except BadReport as error:
        return ReportSeen(preflight_id, BadReportSeen(error.reason, error.message), clock.now())


def _read(path: Path) -> bytes:
    """The file's bytes, one more than the limit at most. Neither the folder nor the file may be a symbolic link."""
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
        return _read_up_to(handle, report.MAX_BYTES + 1)
    finally:
        os.close(handle)


def _read_up_to(handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(handle, limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _signature(path: Path) -> tuple[int, ...] | None:
    """What changes when the file does; None where there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode
