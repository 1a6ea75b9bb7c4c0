"""The records of accepted risks in our own ConfigMap: why, by whom and until when a risk is accepted. Pure.

The API has only the list of names, which decides: a record without its name accepts nothing. A record can only end an
acceptance: once its time is over, or if it cannot be read, the name does not count any more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubekit.lang.text import count
from runup.report.changes import Objects, added

if TYPE_CHECKING:
    from runup.api.config_v1 import ClusterVersion

NAME = "accepted-risks"
# The operator watches ConfigMaps of its namespace with this label.
LABELS = {"app": "cluster-version-operator-preflight"}
MAX_REASON = 1024
# How many objects of an accepted risk a record names: all records share one ConfigMap.
MAX_OBJECTS = 100
# How many objects a message names.
_MAX_SHOWN_OBJECTS = 5
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")
# How similar a known name must be to be suggested in place of an unknown one (difflib's ratio).
_MIN_SIMILARITY = 0.6


class Acceptance(NamedTuple):
    """The record of one accepted risk. `problem` says why a record cannot be read; it then counts as ended.

    `objects` are what the risk was about when it was accepted, as people write them (`Node worker-1`), at most
    `MAX_OBJECTS` of `total`; both are empty if that was not known.
    """

    name: str
    reason: str = ""
    by: str = ""
    at: datetime | None = None
    until: datetime | None = None
    problem: str = ""
    objects: tuple[str, ...] = ()
    total: int = 0

    def covering(self, objects: Collection[str]) -> Acceptance:
        """Returns the record with `objects` as what the risk is accepted for."""
        return self._replace(objects=tuple(sorted(objects))[:MAX_OBJECTS], total=len(objects))

    def ended(self, now: datetime) -> bool:
        """Returns whether the name does not count any more."""
        # An unreadable record might have ended, so it counts as ended: that is the safe assumption.
        return bool(self.problem) or (self.until is not None and self.until <= now)


# The accepted risk names that count -> the record of the acceptance.
Accepted = Mapping[str, Acceptance]


class Growth(NamedTuple):
    """Growth of a known risk: what it covers now that it did not when it was accepted, or in a baseline.

    `added` are the objects that were not there, `more` counts those that cannot be named; `since`: when the first of
    them was found, None if that is not known. `accepted_for` counts the objects of then. `baseline` names the baseline
    that has the risk, empty for an acceptance.
    """

    added: tuple[str, ...]
    more: int = 0
    since: datetime | None = None
    accepted_for: int = 0
    at: datetime | None = None
    baseline: str = ""

    @property
    def text(self) -> str:
        """The growth as a clause for messages."""
        since_text = f" since {stamp(self.since)}" if self.since else ""
        then = f" at {stamp(self.at)}" if self.at else ""
        known = f"accepted for {self.accepted_for}"
        if self.baseline:
            known = f"in the baseline {self.baseline} with {count(self.accepted_for, 'object')}"
        return f"{known}{then}, and has grown{since_text}: {self.listed}"

    @property
    def listed(self) -> str:
        """The first of the added objects, and the number of the others."""
        shown_objects = list(self.added[:_MAX_SHOWN_OBJECTS])
        omitted_count = len(self.added) - len(shown_objects) + self.more
        omitted_text = f"{omitted_count} more" if shown_objects else f"{omitted_count} objects"
        return ", ".join([*shown_objects, *([omitted_text] if omitted_count else [])])


def growth(record: Acceptance | None, objects: Mapping[str, datetime | None]) -> Growth | None:
    """Returns the growth of `objects` (each with the time since which it is named) beyond the record, None if none."""
    if record is None or not record.total:
        return None
    names, more = added(Objects(record.objects, record.total - len(record.objects)), Objects(objects))
    if not names and not more:
        return None
    since = min((time for name in names if (time := objects[name]) is not None), default=None)
    return Growth(added=names, more=more, since=since, accepted_for=record.total, at=record.at)


def read(data: Mapping[str, str]) -> dict[str, Acceptance]:
    """Returns the records in the ConfigMap's `data`, by the name of the risk."""
    return {record.name: record for record in (_record(key, text) for key, text in sorted(data.items()))}


def record_of(name: str, records: Mapping[str, Acceptance]) -> Acceptance | None:
    """Returns the record of a risk, or None. A record without a name belongs to the risk of its key."""
    return records.get(name) or records.get(key_of(name))


def key_of(name: str) -> str:
    """Returns the ConfigMap's key for a risk: its name, or a hash if the name is not a valid key.

    The record's value has the name in any case.
    """
    return name if _KEY.fullmatch(name) else f"sha256.{hashlib.sha256(name.encode()).hexdigest()}"


def encode_record(record: Acceptance) -> str:
    """Returns the record as JSON, for its key in the ConfigMap."""
    fields = {"name": record.name, "reason": record.reason, "by": record.by, "at": stamp(record.at)}
    value: dict[str, Any] = {**fields, "until": stamp(record.until)}
    value |= {"objects": list(record.objects), "count": record.total} if record.total else {}
    import json

    return json.dumps({key: part for key, part in value.items() if part}, ensure_ascii=False)


def names_that_count(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> frozenset[str]:
    """Returns those of `names` whose acceptance has not ended."""
    return frozenset(name for name in names if (record := record_of(name, records)) is None or not record.ended(now))


def next_end(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> datetime | None:
    """Returns the time at which the next of `names` stops counting, or None."""
    ends = (records[name].until for name in names if name in records and not records[name].ended(now))
    return min((end for end in ends if end is not None), default=None)


def unused_names(names: Iterable[str], known_names: Iterable[str]) -> dict[str, str]:
    """Returns those of `names` that no update carries now, each with the most similar name that one does (or empty)."""
    carried = sorted(set(known_names))
    return {name: nearest(name, carried) for name in names if name not in carried}


def nearest(name: str, known_names: Iterable[str]) -> str:
    """Returns the name among `known_names` that was probably meant, or an empty string."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known_names), n=1, cutoff=_MIN_SIMILARITY)), "")


def stamp(moment: datetime | None) -> str:
    """Returns a time as Kubernetes writes it, or an empty string for None."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _record(key: str, text: str) -> Acceptance:
    """Returns the acceptance under one key of the ConfigMap; one that cannot be read has a `problem`."""
    import json

    try:
        value = json.loads(text)
        name = _text_member(value, "name") or key
        at, until = _time_member(value, "at"), _time_member(value, "until")
        # They only inform, so that one that cannot be read does not end the acceptance.
        names = value.get("objects", [])
        objects = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
        total = value.get("count") if isinstance(value.get("count"), int) else 0
        acceptance = Acceptance(
            name=name, reason=_text_member(value, "reason"), by=_text_member(value, "by"), at=at, until=until
        )
        return acceptance._replace(objects=objects, total=max(total or 0, len(objects)))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        return Acceptance(name=key, problem=f"key {key} of ConfigMap {NAME} cannot be read: {error}")


def _text_member(value: Mapping[str, Any], key: str) -> str:
    member = value.get(key, "")
    if not isinstance(member, str):
        raise TypeError(f"{key} is not a text")
    return member


def _time_member(value: Mapping[str, Any], key: str) -> datetime | None:
    """Returns the time under `key` in UTC, None if it is empty. Raises ValueError if it has no zone."""
    text = _text_member(value, key)
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    # A time without a zone would be compared with the operator's UTC times.
    if moment.tzinfo is None:
        raise ValueError(f"{key} {text!r} has no zone")
    return moment.astimezone(UTC)


def accepted_names(cluster: ClusterVersion) -> frozenset[str]:
    """Returns the names in `spec.desiredUpdate.acceptRisks`."""
    desired = cluster.spec.desired_update
    return frozenset(desired.accepted_names) if desired else frozenset()


def accepted(
    cluster: ClusterVersion, acceptance_records: Mapping[str, str] | None = None, now: datetime | None = None
) -> Accepted:
    """Returns the accepted names that count, each with its record (with nothing but the name if it does not exist).

    `acceptance_records` is the data of ConfigMap `accepted-risks`. For a dump `now` is None, and the newest time is
    used.
    """
    names = accepted_without_records(cluster)
    if not (names and acceptance_records):
        return names
    condition_times = [condition.last_transition_time for condition in cluster.status.conditions]
    as_of = now or max((time for time in condition_times if time), default=None)
    records = read(acceptance_records)
    counting = names_that_count(names, records, as_of) if as_of else names
    return {name: record_of(name, records) or record for name, record in names.items() if name in counting}


def accepted_without_records(cluster: ClusterVersion) -> Accepted:
    """Returns every accepted name, for which no record was read."""
    return {name: Acceptance(name=name) for name in sorted(accepted_names(cluster))}
