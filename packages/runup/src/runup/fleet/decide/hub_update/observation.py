"""Assembles what a FleetUpdate is decided on from the objects of a hub. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.api.update_policy_v1alpha1 import UpdateCalendar
from runup.fleet.decide.hub_update import engine_objects
from runup.fleet.decide.hub_update.cluster_states import RunState, StageObserved, TurnState, run_state, turn_state
from runup.fleet.decide.hub_update.refusals import Refusal
from runup.fleet.decide.hub_update.stages import HubObserved
from runup.rollout.decide.approvals import FoundApprovals

JSON = dict[str, Any]
# The first release in which the conditions Progressing and Degraded of a work decide, instead of Available.
# https://github.com/open-cluster-management-io/ocm/pull/1207
OLDEST_ENGINE = (1, 2)
GATE = "ManifestWorkReplicaSet"
# The engine writes the status of a replica set within seconds.
_ANSWERS_WITHIN = timedelta(minutes=5)
_TAG = re.compile(r":v?([0-9]{1,4})\.([0-9]{1,4})(?:[.-]|$)")


class HubInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a hub, and its time.

    `placements` are the Placements by name, `decisions` the clusters that each of them chooses, `sets` our
    ManifestWorkReplicaSets, and `works` the ManifestWorks that the engine made of them. `manager` is the
    ClusterManager, or None. `serves_sets`: the hub serves ManifestWorkReplicaSets.
    """

    now: datetime
    fleets: Sequence[FleetUpdate] = ()
    clusters: Sequence[ManagedCluster] = ()
    placements: Mapping[str, JSON] = {}
    decisions: Mapping[str, tuple[str, ...]] = {}
    sets: Sequence[JSON] = ()
    works: Sequence[ManifestWork] = ()
    manager: JSON | None = None
    serves_sets: bool = True
    approvals: FoundApprovals = FoundApprovals()
    calendars: Sequence[UpdateCalendar] = ()


def observe(fleet: FleetUpdate, inputs: HubInputs) -> HubObserved:
    """Returns what a FleetUpdate is decided on."""
    sets = frozenset(str(each["metadata"]["name"]) for each in inputs.sets)
    works: dict[str, list[ManifestWork]] = defaultdict(list)
    for work in inputs.works:
        works[work.metadata.name].append(work)
    stages = []
    for index, stage in enumerate(fleet.spec.stages):
        name = stage.placement_ref.name if stage.placement_ref is not None else ""
        placement = inputs.placements.get(name)
        runs_name = engine_objects.set_name(fleet, index, engine_objects.RUNS)
        turn_names = {
            engine_objects.turns_name(fleet, index, round_): round_ for round_ in range(1, stage.last_round + 1)
        }
        runs: dict[str, RunState] = {each.metadata.namespace: run_state(each) for each in works.get(runs_name, ())}
        turns: dict[int, dict[str, TurnState]] = {
            round_: {each.metadata.namespace: turn_state(each) for each in works[turn_name]}
            for turn_name, round_ in turn_names.items()
            if turn_name in works
        }
        stages.append(
            StageObserved(
                members=None if placement is None else tuple(sorted(inputs.decisions.get(name, ()))),
                placement=None if placement is None else placement.get("spec") or {},
                runs=runs,
                turns=turns,
                sets=sets & {runs_name, *turn_names},
            )
        )
    return HubObserved(
        clusters={each.metadata.name: each for each in inputs.clusters},
        stages=stages,
        approvals=inputs.approvals,
        calendars=inputs.calendars,
        engine=engine_refusal(inputs),
    )


def engine_refusal(inputs: HubInputs) -> Refusal | None:
    """Returns why the hub's engine cannot carry out a rollout; None if nothing is known against it."""
    if not inputs.serves_sets:
        text = "The hub does not serve ManifestWorkReplicaSet: install Open Cluster Management 1.2.0 or newer."
        return Refusal("EngineMissing", text)
    if inputs.manager is not None:
        spec = inputs.manager.get("spec") or {}
        gates = (spec.get("workConfiguration") or {}).get("featureGates") or ()
        if not any(each.get("feature") == GATE and each.get("mode") == "Enable" for each in gates):
            text = (
                f"Feature gate {GATE} is not enabled. Add it with mode Enable to "
                "spec.workConfiguration.featureGates of ClusterManager cluster-manager."
            )
            return Refusal("FeatureGateDisabled", text)
        image = str(spec.get("workImagePullSpec") or "")
        version = _TAG.search(image)
        if version is not None and (int(version[1]), int(version[2])) < OLDEST_ENGINE:
            text = (
                f"{image} is older than 1.2.0, and counts an update as done as soon as its run exists: update Open "
                "Cluster Management."
            )
            return Refusal("EngineTooOld", text)
    for each in inputs.sets:
        created = datetime.fromisoformat(str(each["metadata"].get("creationTimestamp") or inputs.now.isoformat()))
        if not (each.get("status") or {}).get("conditions") and inputs.now - created > _ANSWERS_WITHIN:
            name = each["metadata"]["name"]
            text = f"ManifestWorkReplicaSet {name} has no status after 5 minutes: is feature gate {GATE} enabled?"
            return Refusal("EngineNotAnswering", text, unknown=True)
    return None
