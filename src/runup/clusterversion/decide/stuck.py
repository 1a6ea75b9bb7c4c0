"""Passes that fail again and again: what ClusterVersion says meanwhile (cvo-behaviour 6.1, generic sync failure).

Whoever waits for the operator must not read a status that nobody keeps any more. A pass that cannot be decided takes
Available along, as upstream's does; a write that is refused is told as a failure, and the cluster stays as available as
it was: what is written besides the status are a preflight's objects, and those change nothing (decision record 63).
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
from runup.clusterversion.decide import fit
from runup.clusterversion.decide.status import with_conditions
from runup.process.plan import PatchStatus, Plan

AFTER = 15
"""Failures in a row until they are told."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why passes fail: `error` for people, `reason` for a condition. `decided`: what failed is carrying them out."""

    error: str
    reason: str = ""
    decided: bool = True


def conditions(failure: Failure | None, found: Conditions) -> tuple[Condition, ...]:
    """What is said because of `failure`, nothing where there is none; Progressing keeps its status."""
    if failure is None:
        return ()
    progressing = find(found, "Progressing")
    text = f"Error ensuring the cluster version is up to date: {failure.error}"
    said = (
        Condition(type="Failing", status="True", reason=failure.reason, message=failure.error),
        Condition(
            type="Progressing",
            status=progressing.status if progressing is not None else "False",
            reason=failure.reason,
            message=text,
        ),
    )
    return said if failure.decided else (Condition(type="Available", status="False"), *said)


def plan(version: ClusterVersion, failure: Failure, now: datetime) -> Plan:
    """The one patch that says so, where nothing else could be decided; no action where it is said already."""
    found = version.status.conditions
    told = with_conditions(found, conditions(failure, found), (), now=now)
    wanted = fit.status(replace(version.status, conditions=told)).conditions
    if wanted == found or not version.status.desired.version:
        return Plan()
    fields = {"conditions": [codec.to_dict(condition) for condition in wanted]}
    key = NamespacedName("", version.metadata.name)
    patch = PatchStatus(resource_of(ClusterVersion), key, fields, (), version.metadata.resource_version, fresh=False)
    return Plan((patch,))
