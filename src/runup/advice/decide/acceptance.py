"""Why, by whom and until when a risk is accepted: one ConfigMap of ours beside the API's list of names. Pure.

The API knows names only, and they stay the authority: a record without its name accepts nothing. A record can only
take away: once its time is over, or where it cannot be read, the name does not count any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubekit.lang.pattern import Pattern

NAME = "accepted-risks"
# The operator watches the ConfigMaps of its namespace that carry it.
LABELS = {"app": "cluster-version-operator-preflight"}
MAX_REASON = 1024
_KEY = Pattern(r"[A-Za-z0-9._-]{1,253}")
_NEAR = 0.6


class Acceptance(NamedTuple):
    """What is recorded of one accepted risk. `problem` says why a record cannot be read; then it counts as ended."""

    name: str
    reason: str = ""
    by: str = ""
    at: datetime | None = None
    until: datetime | None = None
    problem: str = ""

    def ended(self, now: datetime) -> bool:
        """Whether the name does not count any more."""
        return bool(self.problem) or (self.until is not None and self.until <= now)


def read(data: Mapping[str, str]) -> dict[str, Acceptance]:
    """The records of the ConfigMap's `data`, by the name of the risk."""
    return {record.name: record for record in (_record(key, text) for key, text in sorted(data.items()))}


def key_of(name: str) -> str:
    """The ConfigMap's key for a risk; what no key can be is told by a hash, since its name is in the value."""
    return name if _KEY.fullmatch(name) else f"sha256.{hashlib.sha256(name.encode()).hexdigest()}"


def encoded(record: Acceptance) -> str:
    """The value of the ConfigMap's key."""
    told = {"name": record.name, "reason": record.reason, "by": record.by, "at": stamp(record.at)}
    value = {**told, "until": stamp(record.until)}
    import json

    return json.dumps({key: part for key, part in value.items() if part}, ensure_ascii=False)


def counting(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> frozenset[str]:
    """Those of `names` whose time is not over."""
    return frozenset(name for name in names if name not in records or not records[name].ended(now))


def next_end(names: Iterable[str], records: Mapping[str, Acceptance], now: datetime) -> datetime | None:
    """When the next of `names` stops counting."""
    ends = (records[name].until for name in names if name in records and not records[name].ended(now))
    return min((end for end in ends if end is not None), default=None)


def unused(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Those of `names` that no update carries now, each with the nearest name that one does (or empty)."""
    carried = sorted(set(known))
    return {name: nearest(name, carried) for name in names if name not in carried}


def nearest(name: str, known: Iterable[str]) -> str:
    """The name among `known` that was probably meant, or empty."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=_NEAR)), "")


def stamp(moment: datetime | None) -> str:
    """A time as Kubernetes writes it, or nothing."""
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
    found = value.get(key, "")
    if not isinstance(found, str):
        raise TypeError(f"{key} is no text")
    return found


def _moment(value: Mapping[str, Any], key: str) -> datetime | None:
    text = _text(value, key)
    if not text:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{key} {text!r} has no zone")
    return found.astimezone(UTC)
