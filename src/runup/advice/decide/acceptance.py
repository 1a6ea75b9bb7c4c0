"""The records of accepted risks in our own ConfigMap: why, by whom and until when a risk is accepted. Pure.

The API has only the list of names, which decides: a record without its name accepts nothing. A record can only end an
acceptance: once its time is over, or if it cannot be read, the name does not count any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubekit.lang.pattern import Pattern

NAME = "accepted-risks"
# The operator watches ConfigMaps of its namespace with this label.
LABELS = {"app": "cluster-version-operator-preflight"}
MAX_REASON = 1024
_KEY = Pattern(r"[A-Za-z0-9._-]{1,253}")
_NEAR = 0.6


class Acceptance(NamedTuple):
    """The record of one accepted risk. `problem` says why a record cannot be read; it then counts as ended."""

    name: str
    reason: str = ""
    by: str = ""
    at: datetime | None = None
    until: datetime | None = None
    problem: str = ""

    def ended(self, now: datetime) -> bool:
        """Returns whether the name does not count any more."""
        # An unreadable record might have ended, so it counts as ended: that is the safe assumption.
        return bool(self.problem) or (self.until is not None and self.until <= now)


def read(data: Mapping[str, str]) -> dict[str, Acceptance]:
    """Returns the records in the ConfigMap's `data`, by the name of the risk."""
    return {record.name: record for record in (_record(key, text) for key, text in sorted(data.items()))}


def key_of(name: str) -> str:
    """Returns the ConfigMap's key for a risk: its name, or a hash if the name is not a valid key.

    The record's value has the name in any case.
    """
    return name if _KEY.fullmatch(name) else f"sha256.{hashlib.sha256(name.encode()).hexdigest()}"


def encoded(record: Acceptance) -> str:
    """Returns the value of the ConfigMap's key."""
    fields = {"name": record.name, "reason": record.reason, "by": record.by, "at": stamp(record.at)}
    value = {**fields, "until": stamp(record.until)}
    import json

    return json.dumps({key: part for key, part in value.items() if part}, ensure_ascii=False)


def counting(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> frozenset[str]:
    """Returns those of `names` whose acceptance has not ended."""
    return frozenset(name for name in names if name not in records or not records[name].ended(now))


def next_end(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> datetime | None:
    """Returns the time at which the next of `names` stops counting, or None."""
    ends = (records[name].until for name in names if name in records and not records[name].ended(now))
    return min((end for end in ends if end is not None), default=None)


def unused(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Returns those of `names` that no update carries now, each with the most similar name that one does (or empty)."""
    carried = sorted(set(known))
    return {name: nearest(name, carried) for name in names if name not in carried}


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the name among `known` that was probably meant, or an empty string."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=_NEAR)), "")


def stamp(moment: datetime | None) -> str:
    """Returns a time as Kubernetes writes it, or an empty string for None."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _record(key: str, text: str) -> Acceptance:
    import json

    try:
        value = json.loads(text)
        name = _text(value, "name") or key
        at, until = _moment(value, "at"), _moment(value, "until")
        return Acceptance(name, _text(value, "reason"), _text(value, "by"), at, until)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return Acceptance(key, problem=f"key {key} of ConfigMap {NAME} cannot be read: {error}")


def _text(value: Mapping[str, Any], key: str) -> str:
    member = value.get(key, "")
    if not isinstance(member, str):
        raise TypeError(f"{key} is no text")
    return member


def _moment(value: Mapping[str, Any], key: str) -> datetime | None:
    text = _text(value, key)
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    # A time without a zone would be compared with the operator's UTC times.
    if moment.tzinfo is None:
        raise ValueError(f"{key} {text!r} has no zone")
    return moment.astimezone(UTC)
