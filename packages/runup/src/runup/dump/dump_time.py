"""Determines the time of a dump: the recorded one, else the newest time that its objects show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from pathlib import Path

from kubekit.lang.files import MIB, read_limited
from runup.api.clusterversion_json import mapping, mappings
from runup.dump.documents import JSON, identity
from runup.dump.dump_files import COLLECTED

# The kinds whose conditions give a dump its time.
_TIMED = {("config.openshift.io", "ClusterVersion"), ("config.openshift.io", "ClusterOperator")}
_GATHERED = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(\.\d{1,9})? ([+-]\d{4})")
# What `oc` adds to the newest transition in its own examples, in whole microseconds.
_MOMENT = timedelta(microseconds=368)


def gathered_at(folder: Path) -> datetime | None:
    """Returns when a must-gather ended, from the last line of its file `timestamp`, or None."""
    if not folder.is_dir():
        return None
    file = next(iter(sorted(folder.glob("timestamp")) or sorted(folder.glob("*/timestamp"))), None)
    matches = _GATHERED.findall(read_text(file)) if file else []
    if not matches:
        return None
    day, time, _fraction, zone = matches[-1]
    try:
        return _in_utc(datetime.strptime(f"{day} {time} {zone}", "%Y-%m-%d %H:%M:%S %z"))
    except ValueError:
        return None


def collected_at(folder: Path) -> datetime | None:
    """Returns when `runup dump collect` wrote the folder, from its record, or None."""
    try:
        record = json.loads(read_limited(folder / COLLECTED))
    except (OSError, ValueError, RecursionError):
        return None
    return _parse_time(record.get("collectedTime")) if isinstance(record, dict) else None


def timestamps(folder: Path) -> list[str] | None:
    """Returns the times in the file `timestamp` of `folder`, or None without such a file."""
    file = folder / "timestamp"
    if not file.is_file():
        return None
    return ["".join(match) for match in _GATHERED.findall(read_text(file))]


def read_text(file: Path) -> str:
    """Returns the text of a small file; empty if it cannot be read, or has more than a MiB."""
    try:
        return read_limited(file, MIB).decode(errors="replace")
    except OSError:
        return ""


def newest_transition(objects: Iterable[JSON]) -> datetime | None:
    """Returns a time just after the newest transition in ClusterVersion and ClusterOperators, or None."""
    times = [
        time
        for obj in objects
        if identity(obj)[:2] in _TIMED
        for condition in mappings(mapping(obj, "status"), "conditions")
        if (time := _parse_time(condition.get("lastTransitionTime")))
    ]
    return max(times) + _MOMENT if times else None


class Evidence:
    """The newest time at which somebody wrote one of the objects of a dump, which was made then or later.

    It counts heartbeats of nodes, renewals of Leases, Events, and writes in managed fields. Changes, which may be long
    past, show only that the dump is not older: of conditions, taints and containers.
    """

    def __init__(self) -> None:
        self._newest = self._newest_change = ""

    def add(self, obj: JSON) -> None:
        """Takes the times of an object into account."""
        for text in _times_of(obj):
            self._newest = _newer(text, self._newest)
        for text in _changes_of(obj):
            self._newest_change = _newer(text, self._newest_change)

    @property
    def time(self) -> datetime | None:
        """The newest time, None if the objects have none."""
        return _parse_time(self._newest)

    @property
    def newest_change(self) -> datetime | None:
        """The newest time of a change, None if the objects have none."""
        return _parse_time(self._newest_change)


_SECONDS = len("2026-01-14T09:30:00")


def _newer(text: object, newest: str) -> str:
    # RFC 3339 in UTC sorts as text; up to the second, since fractions have no fixed length.
    return text if isinstance(text, str) and text[:_SECONDS] > newest[:_SECONDS] and _parse_time(text) else newest


def _changes_of(obj: JSON) -> Iterator[object]:
    status = mapping(obj, "status")
    for condition in mappings(status, "conditions"):
        yield condition.get("lastTransitionTime")
    for taint in mappings(mapping(obj, "spec"), "taints"):
        yield taint.get("timeAdded")
    for container in mappings(status, "containerStatuses"):
        yield mapping(mapping(container, "state"), "running").get("startedAt")
        yield mapping(mapping(container, "lastState"), "terminated").get("finishedAt")


def _times_of(obj: JSON) -> Iterator[object]:
    metadata, status, spec = mapping(obj, "metadata"), mapping(obj, "status"), mapping(obj, "spec")
    for entry in mappings(metadata, "managedFields"):
        yield entry.get("time")
    for condition in mappings(status, "conditions"):
        yield condition.get("lastHeartbeatTime")
    kind = obj.get("kind")
    if kind == "Lease":
        yield spec.get("renewTime")
    elif kind == "Event":
        yield from event_times(obj)


def event_times(event: JSON) -> Iterator[object]:
    """Yields the times at which an Event was seen, as written: of its series, of core/v1, of events.k8s.io/v1."""
    yield from (mapping(event, "series").get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))


def _parse_time(text: object) -> datetime | None:
    """Returns a time with a zone in UTC, None for any other text."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return _in_utc(time) if time.tzinfo else None


def _in_utc(time: datetime) -> datetime | None:
    # Next to the first and the last year a time may have none in UTC, and none a moment later.
    return time.astimezone(UTC) if MINYEAR < time.year < MAXYEAR else None
