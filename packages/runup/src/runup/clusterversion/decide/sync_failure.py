"""The conditions of ClusterVersion while passes fail repeatedly (docs/reference/upstream.md 6.1, generic sync failure).

They keep users from relying on a status that is no longer updated. A pass that cannot be decided also sets
Available=False, as upstream does. A rejected write is reported as Failing and leaves Available as it was: what is
written besides the status are a preflight's objects, and those change nothing (docs/decisions/0063).

A status that the API server rejected is reported, the rest of it is written, and it is never resent unchanged.
Everything written fits the definition that our releases carry; the installed one may be older, or somebody's own.
`RejectedFields` lives as long as the process: another operator comes with another definition and may try again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import Conditions, find, without_condition
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.lang.text import cut, printable
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus
from runup.clusterversion.decide import size_limits, status
from runup.clusterversion.decide import status as statuses
from runup.process.plan import PatchStatus, Plan

REPORT_AFTER_FAILURES = 15
"""Consecutive failures before they are reported."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A cause of failing passes: `error` for people, `reason` for a condition. `decided`: only the execution failed."""

    error: str
    reason: str = ""
    decided: bool = True


def conditions(failure: Failure | None, stored_conditions: Conditions) -> tuple[Condition, ...]:
    """Returns the conditions that report `failure`, none without a failure; Progressing keeps its status."""
    if failure is None:
        return ()
    progressing = find(stored_conditions, "Progressing")
    text = f"Error ensuring the cluster version is up to date: {failure.error}"
    failing = (
        Condition(type="Failing", status="True", reason=failure.reason, message=failure.error),
        Condition(
            type="Progressing",
            status=progressing.status if progressing is not None else "False",
            reason=failure.reason,
            message=text,
        ),
    )
    return failing if failure.decided else (Condition(type="Available", status="False"), *failing)


def plan(version: ClusterVersion, failure: Failure, now: datetime) -> Plan[object]:
    """Returns the patch that reports `failure` if nothing else could be decided; empty if it is reported already."""
    current = version.status.conditions
    reporting = status.with_conditions(current, conditions(failure, current), (), now=now)
    new_conditions = size_limits.status(replace(version.status, conditions=reporting)).conditions
    # A status without a desired release lacks required fields, and the API server would reject the patch.
    if new_conditions == current or not version.status.desired.version:
        return Plan()
    fields = {"conditions": [codec.to_dict(condition) for condition in new_conditions]}
    key = NamespacedName("", version.metadata.name)
    patch = PatchStatus(
        resource=resource_of(ClusterVersion),
        key=key,
        fields=fields,
        gone=(),
        resource_version=version.metadata.resource_version,
        fresh=False,
    )
    return Plan((patch,))


JSON = dict[str, Any]
TYPE = "StatusWriteRefused"
_MAX_MESSAGE = 1000
_MAX_REMEMBERED = 200
_FIELD = re.compile(r"status\.([a-zA-Z]+)")
_ATTRIBUTES = {
    "desired": "desired",
    "history": "history",
    "observedGeneration": "observed_generation",
    "versionHash": "version_hash",
    "capabilities": "capabilities",
    "conditions": "conditions",
    "availableUpdates": "available_updates",
    "conditionalUpdates": "conditional_updates",
    "conditionalUpdateRisks": "conditional_update_risks",
}


@dataclass(frozen=True, slots=True)
class RejectedFields:
    """Digests of the field values that were rejected, and the API server's latest message."""

    values: frozenset[tuple[str, str]] = frozenset()
    message: str = ""

    def and_also(self, fields: JSON, causes: Iterable[str], message: str) -> RejectedFields:
        """Adds a rejection: of the `fields` sent those that `causes` (paths) name, else all but the conditions."""
        # Without a named field all are suspects but the conditions, which are needed to report this.
        rejected_names = {match[1] for cause in causes if (match := _FIELD.match(cause))} & fields.keys()
        rejected_names = rejected_names or (fields.keys() - {"conditions"}) or set(fields)
        new = {(name, _digest(fields[name])) for name in rejected_names}
        # Forgetting all of them costs one more attempt each, and bounds the memory.
        remembered = self.values if len(self.values) < _MAX_REMEMBERED else frozenset()
        return RejectedFields(remembered | new, message)


def keep_rejected_fields(
    stored: ClusterVersionStatus, wanted_status: ClusterVersionStatus, refused: RejectedFields, *, now: datetime
) -> ClusterVersionStatus:
    """Returns `wanted_status` with the rejected fields as in `stored`, and a condition that reports the rejection."""
    rejected_fields = _fields_rejected_again(stored, wanted_status, refused)
    if not rejected_fields:
        return wanted_status
    without_rejected = replace(
        wanted_status, **{_ATTRIBUTES[name]: getattr(stored, _ATTRIBUTES[name]) for name in rejected_fields}
    )
    before = find(stored.conditions, TYPE)
    text = (
        f"The API server refuses what {', '.join(sorted(rejected_fields))} should say, "
        f"so it is as before: {refused.message}"
    )
    condition = Condition(
        type=TYPE,
        status="True",
        reason="StatusInvalid",
        message=cut(printable(text), _MAX_MESSAGE),
        last_transition_time=before.last_transition_time if before else now,
    )
    reporting = replace(without_rejected, conditions=(*without_condition(without_rejected.conditions, TYPE), condition))
    # The report itself was rejected: nothing more can be said in the status.
    if "conditions" in _fields_rejected_again(stored, reporting, refused):
        return replace(without_rejected, conditions=stored.conditions)
    return reporting


def _fields_rejected_again(
    stored: ClusterVersionStatus, wanted_status: ClusterVersionStatus, refused: RejectedFields
) -> list[str]:
    """Returns the fields whose value is the one that the API server has rejected before."""
    if not refused.values:
        return []
    fields, _gone = statuses.patch(stored, wanted_status, fresh=False)
    return [name for name, value in fields.items() if (name, _digest(value)) in refused.values]


def _digest(value: Any) -> str:
    """Returns a digest that ignores times: they change often, and do not change why a value was rejected."""
    return hashlib.sha256(json.dumps(_without_times(value), sort_keys=True, default=str).encode()).hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if not key.endswith("Time")}
    return [_without_times(item) for item in value] if isinstance(value, list | tuple) else value
