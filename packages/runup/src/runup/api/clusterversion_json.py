"""Reads from a ClusterVersion's JSON what `upgrade`, `recommend`, `channel` and `rollback` need. Pure.

It uses plain values and no wire types: these commands also read files, and importing a decoder takes longer than
decoding them. Malformed values (a dump may hold any text) count as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

JSON = dict[str, Any]


class Condition(msgspec.Struct, frozen=True):
    """A condition, without its time."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class Release(msgspec.Struct, frozen=True):
    """A release as update advice names it."""

    version: str = ""
    image: str = ""
    url: str = ""


class Risk(msgspec.Struct, frozen=True):
    """A risk of an update."""

    name: str
    message: str


class Update(msgspec.Struct, frozen=True):
    """An offered update; one without risks is recommended whatever its conditions say."""

    release: Release
    risks: tuple[Risk, ...] = ()
    recommended: Condition | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a ClusterVersion that update advice needs. `json` is the whole object as it was read."""

    json: JSON
    channel: str
    upstream: str
    desired: Release
    channels: tuple[str, ...]
    conditions: tuple[Condition, ...]
    available: tuple[Release, ...]
    conditional: tuple[Update, ...]
    history: tuple[Release, ...]

    def condition(self, type_: str) -> Condition | None:
        """Returns the first condition of this type."""
        return first_condition(self.conditions, type_)

    @property
    def not_recommended(self) -> list[tuple[Update, Condition]]:
        """The conditional updates whose Recommended exists and is not True, each with that condition."""
        pairs = ((update, update.recommended) for update in self.conditional)
        return [
            (update, condition) for update, condition in pairs if condition is not None and condition.status != "True"
        ]


def read(document: JSON) -> Facts:
    """Returns the facts of the ClusterVersion `document`."""
    spec, status = mapping(document, "spec"), mapping(document, "status")
    desired = mapping(status, "desired")
    return Facts(
        json=document,
        channel=text(spec, "channel"),
        upstream=text(spec, "upstream"),
        desired=_release(desired),
        channels=tuple(channel for channel in _items_of(desired, "channels") if isinstance(channel, str)),
        conditions=conditions_of(status),
        available=tuple(_release(release) for release in mappings(status, "availableUpdates")),
        conditional=tuple(_update(update) for update in mappings(status, "conditionalUpdates")),
        history=tuple(_release(entry) for entry in mappings(status, "history")),
    )


def first_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Returns the first of `conditions` of this type, as every client of ClusterVersion reads it."""
    return next((condition for condition in conditions if condition.type == type_), None)


def conditions_of(holder: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Returns the conditions of a status. One without a status gets Unknown."""
    return tuple(
        # metav1.Condition requires a status, so that a missing one can only be unknown.
        Condition(
            text(condition, "type"),
            text(condition, "status") or "Unknown",
            text(condition, "reason"),
            text(condition, "message"),
        )
        for condition in mappings(holder, "conditions")
    )


def text(holder: Mapping[str, Any], key: str) -> str:
    """Returns the string at `key`, empty if it does not exist."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def mapping(holder: Mapping[str, Any], key: str) -> JSON:
    """Returns the object at `key`, empty if it does not exist."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def texts(holder: Mapping[str, Any] | None, key: str) -> dict[str, str]:
    """Returns the string fields of the object at `key`, empty if it does not exist."""
    return {name: value for name, value in mapping(holder or {}, key).items() if isinstance(value, str)}


def mappings(holder: Mapping[str, Any], key: str) -> list[JSON]:
    """Returns the objects in the list at `key`."""
    return [item for item in _items_of(holder, key) if isinstance(item, dict)]


def _items_of(holder: Mapping[str, Any], key: str) -> list[Any]:
    value = holder.get(key)
    return value if isinstance(value, list) else []


def _release(value: Mapping[str, Any]) -> Release:
    return Release(text(value, "version"), text(value, "image"), text(value, "url"))


def _update(value: Mapping[str, Any]) -> Update:
    risks = tuple(Risk(text(risk, "name"), text(risk, "message")) for risk in mappings(value, "risks"))
    return Update(_release(mapping(value, "release")), risks, first_condition(conditions_of(value), "Recommended"))


def newest_transition(document: JSON) -> datetime | None:
    """Returns the newest transition time in ClusterVersion, which serves as the current time for files."""
    times = [text(condition, "lastTransitionTime") for condition in mappings(mapping(document, "status"), "conditions")]
    try:
        # Files were written once: relative to the current time, everything in them would be old.
        return max((datetime.fromisoformat(time) for time in times if time), default=None)
    except (ValueError, TypeError):
        return None
