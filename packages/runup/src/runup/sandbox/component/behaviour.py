"""The behaviours of a component's operator, and the status that it reports for each. Pure.

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
# Components of a real cluster take minutes, which is too long for a sandbox that somebody watches.
_AT_LEAST_S = 0.5


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A behaviour: one of KINDS; `seconds` is the minimum duration of an update."""

    kind: str = "well"
    seconds: float = _AT_LEAST_S


@dataclass(frozen=True, slots=True)
class Expected:
    """The desired state of an operator: its version, those of its operands by name, and its behaviour."""

    version: str
    operands: tuple[tuple[str, str], ...] = ()
    behaviour: Behaviour = Behaviour()

    @property
    def versions(self) -> list[JSON]:
        """The versions as ClusterOperator's status lists them."""
        return [{"name": name, "version": version} for name, version in (("operator", self.version), *self.operands)]


def parse(text: str) -> Behaviour:
    """Returns the behaviour that a manifest names; raises ValueError that lists the valid ones."""
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
    """Returns the new status of the ClusterOperator, or None if it needs no change.

    `now` is its status; `running_s` is how long (seconds) this version of the operator has run. The status of an
    operator that is at its version and well is not touched, so that what a scenario sets (Upgradeable, messages) stays.
    """
    behaviour = expected.behaviour
    at_version = now.get("versions") == expected.versions
    is_done = at_version or (running_s >= behaviour.seconds and operand_ready and behaviour.kind != "stuck")
    new_conditions = [
        _available(now, expected, is_done=is_done),
        _progressing_condition(expected, is_done=is_done),
        _degraded_condition(expected, is_done=is_done),
    ]
    conditions = _merge_conditions(now.get("conditions") or (), new_conditions, at)
    new_status = {"versions": expected.versions if is_done else now.get("versions") or [], "conditions": conditions}
    unchanged = new_status["versions"] == (now.get("versions") or []) and conditions == list(
        now.get("conditions") or ()
    )
    return None if unchanged else new_status


def _version_of(now: JSON) -> str:
    return next((str(version["version"]) for version in now.get("versions") or () if version["name"] == "operator"), "")


def _available(now: JSON, expected: Expected, *, is_done: bool) -> JSON:
    """Returns condition Available: a new cluster's component is not available yet, and its release waits for it."""
    version = expected.version if is_done else _version_of(now)
    if not version:
        return _condition("Available", "False", "Installing", f"{expected.version} is being installed")
    return _condition("Available", "True", "AsExpected", f"Available at {version}")


def _progressing_condition(expected: Expected, *, is_done: bool) -> JSON:
    if is_done:
        return _condition("Progressing", "False", "AsExpected", "")
    return _condition("Progressing", "True", "Updating", f"Working towards {expected.version}")


def _degraded_condition(expected: Expected, *, is_done: bool) -> JSON:
    if is_done and expected.behaviour.kind == "degraded":
        return _condition("Degraded", "True", "OperandFailing", "The operand fails its health checks since the update.")
    return _condition("Degraded", "False", "AsExpected", "")


def _condition(kind: str, value: str, reason: str, message: str) -> JSON:
    return {"type": kind, "status": value, "reason": reason} | ({"message": message} if message else {})


def _merge_conditions(before: Iterable[JSON], new_conditions: list[JSON], at: datetime) -> list[JSON]:
    """Returns the conditions with `new_conditions` in them; other types stay, and so does one of unchanged status.

    An unchanged status with a reason other than AsExpected gets the new message.
    """
    conditions = {str(condition["type"]): condition for condition in before}
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in new_conditions:
        current = conditions.get(condition["type"])
        same = current is not None and current.get("status") == condition["status"]
        if not same:
            conditions[condition["type"]] = condition | {"lastTransitionTime": stamp}
        elif (
            current is not None
            and condition["reason"] != "AsExpected"
            and current.get("message") != condition.get("message")
        ):
            conditions[condition["type"]] = condition | {"lastTransitionTime": current.get("lastTransitionTime", stamp)}
    return list(conditions.values())
