"""Compiles a stage of a FleetUpdate to objects of Open Cluster Management: two replica sets and a Placement. Pure.

The replica set of runs brings the UpdateRun to all clusters of the stage at once; permits, Hold and Abort change it.
The replica set of turns brings the UpdateTurn to one cluster after another, by the stage's rollout; it never changes,
because the engine restarts the rollout of a template that changes. Its Placement is the stage's, restricted to the
clusters that claim to be ready (docs/decisions/0136).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate, Stage
from runup.api.update_policy_v1alpha1 import API_VERSION, GROUP, Control
from runup.rollout.decide.turns import CLAIM

JSON = dict[str, Any]
PLACEMENT = Resource(
    group="cluster.open-cluster-management.io",
    version="v1beta1",
    kind="Placement",
    plural="placements",
    namespaced=True,
)
REPLICA_SET = Resource(
    group="work.open-cluster-management.io",
    version="v1alpha1",
    kind="ManifestWorkReplicaSet",
    plural="manifestworkreplicasets",
    namespaced=True,
)
# Labels of the objects on the hub. The engine copies those of a replica set to its ManifestWorks since 1.2.0.
FLEET_UPDATE, STAGE, PART = (f"{GROUP}/{name}" for name in ("fleet-update", "stage", "part"))
RUNS, TURNS = "runs", "turns"
# The engine labels works with `<namespace>.<name>` of their replica set, which must be a label's value.
MAX_LABEL = 63
_MAX_OBJECT_NAME = 33
MAX_NAMESPACE = MAX_LABEL - 1 - _MAX_OBJECT_NAME
# A cluster that is not reachable, or whose API server is down for its update, must not leave the decisions: the engine
# would delete its turn. https://open-cluster-management.io/docs/concepts/content-placement/taints-and-tolerations/
TOLERATIONS = [
    {"key": f"cluster.open-cluster-management.io/{taint}", "operator": "Exists"}
    for taint in ("unreachable", "unavailable")
]


def _rule(condition: str) -> str:
    """Returns the CEL of a condition of an UpdateTurn that is True for this generation. It evaluates on any object."""
    return (
        "has(object.status) && has(object.status.conditions) && object.status.conditions.exists(c, "
        f"has(c.type) && c.type == '{condition}' && has(c.status) && c.status == 'True' && "
        "has(c.observedGeneration) && c.observedGeneration == object.metadata.generation)"
    )


# A rule that fails is False to the agent, and Progressing=False is success to the engine. So no rule may fail on a
# fresh object, and the absence of a condition is progress.
CONDITION_RULES = [
    {"condition": "Progressing", "type": "CEL", "celExpressions": [f"!({_rule('Done')})"]},
    {"condition": "Degraded", "type": "CEL", "celExpressions": [_rule("Failed")]},
]
RUN_FEEDBACK = {
    "step": ".status.step",
    "gates": '.status.conditions[?(@.type=="GatesOpen")].reason',
    "outcome": '.status.conditions[?(@.type=="Done")].reason',
    "failure": '.status.conditions[?(@.type=="Failed")].reason',
    "image": ".spec.target.image",
    "started": ".status.started",
    "gated": ".status.gated",
}
TURN_FEEDBACK = {
    "done": '.status.conditions[?(@.type=="Done")].reason',
    "failed": '.status.conditions[?(@.type=="Failed")].status',
}


def identifier(fleet: FleetUpdate) -> str:
    """Returns eight digits that differ between FleetUpdates of one name, elsewhere or earlier."""
    return hashlib.sha256(fleet.metadata.uid.encode()).hexdigest()[:8]


def run_name(fleet: FleetUpdate) -> str:
    """Returns the name of the UpdateRun in each cluster."""
    return f"{fleet.metadata.name}-{identifier(fleet)}"


def set_name(fleet: FleetUpdate, stage: int, part: str) -> str:
    """Returns the name of a replica set; `part` is `runs`, or `t` with the round of its turns.

    It is also that of the ManifestWorks in the namespaces of the clusters, so it contains the identifier.
    """
    return f"{fleet.metadata.name[:16].rstrip('-.')}-{identifier(fleet)}-{stage}-{part}"


def turns_name(fleet: FleetUpdate, stage: int, round_: int) -> str:
    """Returns the name of the replica set of turns of one round, and of its Placement."""
    return set_name(fleet, stage, f"t{round_}")


def runs_set(fleet: FleetUpdate, index: int, *, permit_until: datetime, control: Control, round_: int) -> JSON:
    """Returns the replica set that brings the UpdateRun to all clusters of a stage, and reads back how it is.

    The agent applies without force. So a value that somebody set in the cluster stays, and the permit ends if it
    differs.
    """
    stage, policy = fleet.spec.stages[index], codec.to_dict(fleet.spec.policy)
    spec: JSON = {
        "target": codec.to_dict(fleet.spec.target),
        "needsTurn": True,
        "permitUntil": timestamp(permit_until),
        "round": round_,
        "actuator": fleet.spec.policy.actuator,
        **({"control": control} if control != "Run" else {}),
        **policy,
    }
    name = run_name(fleet)
    manifest = {"apiVersion": API_VERSION, "kind": "UpdateRun", "metadata": {"name": name}, "spec": spec}
    config = {
        **_identifier("updateruns", name),
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": False}},
        "feedbackRules": _feedback(RUN_FEEDBACK),
    }
    template = _template(manifest, config, "Orphan")
    refs = [{"name": stage.placement_ref.name if stage.placement_ref else "", "rolloutStrategy": {"type": "All"}}]
    return _replica_set(fleet, index, RUNS, set_name(fleet, index, RUNS), template=template, refs=refs)


def turns_set(fleet: FleetUpdate, index: int, round_: int) -> JSON:
    """Returns the replica set that gives an UpdateTurn to one cluster after another, by the stage's rollout."""
    stage = fleet.spec.stages[index]
    name = f"{run_name(fleet)}-{round_}"
    spec = {"run": run_name(fleet), "round": round_, "placeFor": stage.place_for}
    manifest = {"apiVersion": API_VERSION, "kind": "UpdateTurn", "metadata": {"name": name}, "spec": spec}
    config = {
        **_identifier("updateturns", name),
        "conditionRules": CONDITION_RULES,
        "feedbackRules": _feedback(TURN_FEEDBACK),
    }
    placement = turns_name(fleet, index, round_)
    refs = [{"name": placement, "rolloutStrategy": stage.rollout or {"type": "All"}}]
    template = _template(manifest, config, "Foreground")
    return _replica_set(fleet, index, TURNS, placement, template=template, refs=refs)


def turns_placement(fleet: FleetUpdate, index: int, round_: int, spec: JSON) -> JSON:
    """Returns the Placement of the clusters that may get a turn: that of the stage (`spec`), with a selector of claims.

    Claims of later rounds count as well: a cluster must not leave the decisions of a round.
    """
    stage = fleet.spec.stages[index]
    copied = {key: value for key, value in spec.items() if key not in ("tolerations", "predicates")}
    copied["tolerations"] = [*(spec.get("tolerations") or ()), *TOLERATIONS]
    predicates = list(spec.get("predicates") or [{}])
    if stage.ready == "Claim":
        values = [f"{run_name(fleet)}.{each}" for each in range(round_, stage.last_round + 1)]
        requirement = {"key": CLAIM, "operator": "In", "values": values}
        predicates = [_with_claim(each, requirement) for each in predicates]
    copied["predicates"] = predicates
    body = {"apiVersion": PLACEMENT.api_version, "kind": PLACEMENT.kind, "spec": copied}
    return {**body, "metadata": _metadata(fleet, index, TURNS, turns_name(fleet, index, round_))}


def _with_claim(predicate: JSON, requirement: JSON) -> JSON:
    selector = predicate.get("requiredClusterSelector") or {}
    claims = selector.get("claimSelector") or {}
    wanted = {"matchExpressions": [*(claims.get("matchExpressions") or ()), requirement]}
    return {**predicate, "requiredClusterSelector": {**selector, "claimSelector": wanted}}


def _template(manifest: JSON, config: JSON, propagation: str) -> JSON:
    return {
        "workload": {"manifests": [manifest]},
        "manifestConfigs": [config],
        "deleteOption": {"propagationPolicy": propagation},
    }


def _identifier(plural: str, name: str) -> JSON:
    return {"resourceIdentifier": {"group": GROUP, "resource": plural, "name": name, "namespace": ""}}


def _feedback(paths: dict[str, str]) -> list[JSON]:
    return [{"type": "JSONPaths", "jsonPaths": [{"name": name, "path": path} for name, path in paths.items()]}]


def _replica_set(fleet: FleetUpdate, index: int, part: str, name: str, *, template: JSON, refs: list[JSON]) -> JSON:
    body: JSON = {"apiVersion": REPLICA_SET.api_version, "kind": REPLICA_SET.kind}
    spec = {"manifestWorkTemplate": template, "placementRefs": refs, "cascadeDeletionPolicy": "Foreground"}
    return {**body, "metadata": _metadata(fleet, index, part, name), "spec": spec}


def _metadata(fleet: FleetUpdate, index: int, part: str, name: str) -> JSON:
    owner = {
        "apiVersion": API_VERSION,
        "kind": "FleetUpdate",
        "name": fleet.metadata.name,
        "uid": fleet.metadata.uid,
        "controller": True,
    }
    labels = {FLEET_UPDATE: fleet.metadata.uid, STAGE: fleet.spec.stages[index].name, PART: part}
    return {"name": name, "namespace": fleet.metadata.namespace, "labels": labels, "ownerReferences": [owner]}


def size_of(value: int | str, total: int) -> int:
    """Returns a number, or a percentage of `total`, rounded up as the engine does. Raises ValueError.

    sdk-go calculateRolloutSize, https://github.com/open-cluster-management-io/sdk-go
    """
    if isinstance(value, int):
        number = value
    elif value.endswith("%"):
        number = -(-int(value[:-1]) * total // 100)
    else:
        number = int(value)
    if number < 0:
        raise ValueError(value)
    return number


def settings_of(stage: Stage) -> JSON:
    """Returns the settings of the stage's rollout: those of its type."""
    type_ = str(stage.rollout.get("type") or "All")
    found = stage.rollout.get(type_[:1].lower() + type_[1:])
    return found if isinstance(found, dict) else {}
