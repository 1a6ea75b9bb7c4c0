"""The conditions of ClusterVersion while passes fail repeatedly (docs/upstream-behaviour.md 6.1, generic sync failure).

They keep users from relying on a status that is no longer updated. A pass that cannot be decided also sets
Available=False, as upstream does. A rejected write is reported as Failing and leaves Available as it was: what is
written besides the status are a preflight's objects, and those change nothing (docs/decisions/0063).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import Conditions, find
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.scheme import resource_of
from runup.api.config_v1 import ClusterVersion
from runup.clusterversion.decide import size_limits
from runup.clusterversion.decide.status import with_conditions
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
    reporting = with_conditions(current, conditions(failure, current), (), now=now)
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
