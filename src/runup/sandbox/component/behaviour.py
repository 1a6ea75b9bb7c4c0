"""How a component's operator behaves, and what it says of itself because of that. Pure.

well         at the new version as soon as its operand is           stuck     progressing, for ever
slow:SECONDS the same, so many seconds later                        crash     its process ends with an error
degraded     at the new version, and Degraded
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

JSON = dict[str, Any]

KINDS = ("well", "slow", "degraded", "stuck", "crash")
# Components of a real cluster take minutes; nobody wants to watch a sandbox for so long.
_AT_LEAST_S = 0.5


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One of KINDS; `seconds` is how long an update takes at least."""

    kind: str = "well"
    seconds: float = _AT_LEAST_S


@dataclass(frozen=True, slots=True)
class Expected:
    """What an operator has to come to: its version, those of its operands by name, and its behaviour."""

    version: str
    operands: tuple[tuple[str, str], ...] = ()
    behaviour: Behaviour = Behaviour()

    @property
    def versions(self) -> list[JSON]:
        """As ClusterOperator's status has them."""
        return [{"name": name, "version": version} for name, version in (("operator", self.version), *self.operands)]


def parse(text: str) -> Behaviour:
    """A behaviour as a manifest gives it; raises ValueError that names it and those there are."""
    kind, _, seconds = text.partition(":")
    if kind not in KINDS or (seconds and kind != "slow"):
        raise ValueError(f"there is no behaviour {text!r}; choose one of {', '.join(KINDS)} (slow:SECONDS)")
    if kind != "slow":
        return Behaviour(kind)
    try:
        return Behaviour(kind, float(seconds))
    except ValueError as error:
        raise ValueError(f"behaviour {text!r} needs a number of seconds, such as slow:20") from error


def status(now: JSON, expected: Expected, *, running_s: float, operand_ready: bool, at: datetime) -> JSON | None:
    """What ClusterOperator's status is to be, or None where it is so already.

    `now` is its status; `running_s` says for how long this version of the operator has run. Of an operator that is at
    its version and well nothing is touched, so that what a scenario says of it (Upgradeable, messages) stays.
    """
    behaviour = expected.behaviour
    arrived = now.get("versions") == expected.versions
    done = arrived or (running_s >= behaviour.seconds and operand_ready and behaviour.kind != "stuck")
    wanted = [
        _available(now, expected, done=done),
        _progressing(expected, done=done),
        _degraded(expected, done=done),
    ]
    conditions = _merged(now.get("conditions") or (), wanted, at)
    found = {"versions": expected.versions if done else now.get("versions") or [], "conditions": conditions}
    same = found["versions"] == (now.get("versions") or []) and conditions == list(now.get("conditions") or ())
    return None if same else found


def _version_of(now: JSON) -> str:
    return next((str(each["version"]) for each in now.get("versions") or () if each["name"] == "operator"), "")


def _available(now: JSON, expected: Expected, *, done: bool) -> JSON:
    """Of a new cluster's component there is nothing yet, and its release waits for it."""
    version = expected.version if done else _version_of(now)
    if not version:
        return _condition("Available", "False", "Installing", f"{expected.version} is being installed")
    return _condition("Available", "True", "AsExpected", f"Available at {version}")


def _progressing(expected: Expected, *, done: bool) -> JSON:
    if done:
        return _condition("Progressing", "False", "AsExpected", "")
    return _condition("Progressing", "True", "Updating", f"Working towards {expected.version}")


def _degraded(expected: Expected, *, done: bool) -> JSON:
    if done and expected.behaviour.kind == "degraded":
        return _condition("Degraded", "True", "OperandFailing", "The operand fails its health checks since the update.")
    return _condition("Degraded", "False", "AsExpected", "")


def _condition(kind: str, value: str, reason: str, message: str) -> JSON:
    return {"type": kind, "status": value, "reason": reason} | ({"message": message} if message else {})


def _merged(before: Iterable[JSON], wanted: list[JSON], at: datetime) -> list[JSON]:
    """Conditions of other types as they are; one whose status is as wanted stays as well, unless it is trouble."""
    kept = {str(each["type"]): each for each in before}
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    for each in wanted:
        have = kept.get(each["type"])
        same = have is not None and have.get("status") == each["status"]
        if not same:
            kept[each["type"]] = each | {"lastTransitionTime": stamp}
        elif have is not None and each["reason"] != "AsExpected" and have.get("message") != each.get("message"):
            kept[each["type"]] = each | {"lastTransitionTime": have.get("lastTransitionTime", stamp)}
    return list(kept.values())
