"""FleetUpdates and hubs for tests: valid by default, so that a test states only what matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kubekit.api import codec
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster
from runup.fleet.decide.hub_update.cluster_states import RunState, StageObserved

JSON = dict[str, Any]
IMAGE = "example.com/release@sha256:" + "5" * 64
PLACEMENT: JSON = {"clusterSets": ["all"]}
START = "2026-11-30T10:00:00Z"


def rollout(concurrency: int | str = 3, **changes: Any) -> JSON:
    """A progressive rollout whose deadline suits the defaults of a stage and a policy."""
    settings = {"maxConcurrency": concurrency, "progressDeadline": "30h", "maxFailures": 0, **changes}
    return {"type": "Progressive", "progressive": settings}


def stage(name: str = "canary", **changes: Any) -> JSON:
    """A stage of the clusters that the Placement of its name chooses."""
    return {"name": name, "placementRef": {"name": name}, "rollout": rollout(), **changes}


def fleet_update(*stages: JSON, status: JSON | None = None, metadata: JSON | None = None, **spec: Any) -> FleetUpdate:
    """A FleetUpdate with these stages."""
    wanted = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": [*stages] or [stage()], **spec}
    identity = {"name": "five-one", "namespace": "runup-fleet", "uid": "u-1", "creationTimestamp": START}
    return codec.convert(
        FleetUpdate, {"metadata": {**identity, **(metadata or {})}, "spec": wanted, "status": status or {}}
    )


def managed_cluster(
    name: str, *, available: str = "True", claim: str = "", since: str = START, **labels: str
) -> ManagedCluster:
    """A cluster of the hub, whose availability last changed at `since`."""
    condition = {"type": "ManagedClusterConditionAvailable", "status": available, "message": "", "reason": "Test"}
    condition["lastTransitionTime"] = since
    claims = [{"name": "ready.update.runup.dev", "value": claim}] if claim else []
    status = {"conditions": [condition], "clusterClaims": claims}
    metadata = {"name": name, "labels": labels}
    body = {"metadata": metadata, "spec": {"hubAcceptsClient": True}, "status": status}
    return codec.convert(ManagedCluster, body)


def clusters(*names: str) -> dict[str, ManagedCluster]:
    """Available clusters by name."""
    return {name: managed_cluster(name) for name in names}


def run(step: str = "Waiting", **changes: Any) -> RunState:
    """The state of a run; one that has begun started behind its gates."""
    begun = step not in ("Waiting", "Committing", "Superseded")
    outcome = {"Done": "Succeeded"}.get(step, "NotYet")
    fields = {"is_current": True, "step": step, "gates": "NoTurn", "outcome": outcome, "image": IMAGE}
    return RunState(**{**fields, "begun": begun, "gated": begun, **changes})


def observed(
    members: Iterable[str] | None, runs: Mapping[str, RunState] | None = None, **changes: Any
) -> StageObserved:
    """A stage with these members and the runs of some of them."""
    chosen = None if members is None else tuple(members)
    placement = None if members is None else PLACEMENT
    return StageObserved(members=chosen, placement=placement, runs=runs or {}, **changes)


def at(text: str) -> datetime:
    """A time of the day on which these tests play."""
    return datetime.fromisoformat(f"2026-11-30T{text}:00+00:00")
