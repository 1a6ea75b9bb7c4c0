"""Decides whether a FleetUpdate can be carried out on this hub: the reasons of condition Ready. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import msgspec

from kubekit.error_types import InputError
from kubekit.lang.text import cut, printable
from runup.api.fleet_update_v1alpha1 import FleetUpdate, Stage
from runup.api.hub_v1 import ManagedCluster
from runup.fleet.decide.hub_update.cluster_states import StageObserved, is_own_cluster
from runup.fleet.decide.hub_update.engine_objects import MAX_NAMESPACE, settings_of, size_of
from runup.rollout.decide.durations import parse

SHORTEST_PERMIT, LONGEST_PERMIT = timedelta(minutes=10), timedelta(hours=24)
TYPES = ("All", "Progressive", "ProgressivePerGroup")


class Refusal(msgspec.Struct, frozen=True):
    """Why nothing starts, as the reason and the message of a condition. `unknown`: it could not be determined."""

    reason: str
    message: str
    unknown: bool = False


def refusal(
    fleet: FleetUpdate,
    stages: Sequence[StageObserved],
    clusters: Mapping[str, ManagedCluster],
    engine: Refusal | None,
) -> Refusal | None:
    """Returns the first reason why the FleetUpdate is not carried out, or None. `engine` is one of the hub's engine."""
    found = next(_of_spec(fleet), None) or engine
    if found is None:
        found = next(_of_members(fleet, stages, clusters), None)
    return msgspec.structs.replace(found, message=cut(printable(found.message), 1024)) if found else None


def _of_spec(fleet: FleetUpdate) -> Iterator[Refusal]:
    """Yields what is wrong with the FleetUpdate itself."""
    spec = fleet.spec
    if len(fleet.metadata.namespace) > MAX_NAMESPACE:
        text = (
            f"The namespace of a FleetUpdate must have at most {MAX_NAMESPACE} characters: the engine labels with it."
        )
        yield Refusal("NamespaceTooLong", text)
    if spec.mutexes:
        text = "spec.mutexes counts only without a hub: remove it, and give a stage maxConcurrency 1 instead."
        yield Refusal("MutexesOnHub", text)
    try:
        permit_for = parse(spec.permit_for, "spec.permitFor")
        if not SHORTEST_PERMIT <= permit_for <= LONGEST_PERMIT:
            yield Refusal("InvalidSpec", f"spec.permitFor must be between 10m and 24h, not {spec.permit_for}.")
        size_of(spec.max_failures, 1)
        for stage in spec.stages:
            yield from _of_stage(fleet, stage)
    except InputError as error:
        yield Refusal("InvalidSpec", f"{error.message}.")
    except ValueError as error:
        yield Refusal("InvalidSpec", f"spec.maxFailures and minDone must be a number or a percentage, not {error}.")


def _of_stage(fleet: FleetUpdate, stage: Stage) -> Iterator[Refusal]:
    """Yields what is wrong with a stage. Raises InputError for a duration, ValueError for a number."""
    where = f"Stage {stage.name}"
    if stage.placement_ref is None or stage.selector is not None:
        text = f"{where} needs placementRef, and must not have selector: a Placement chooses the clusters on a hub."
        yield Refusal("PlacementMissing", text)
    size_of(stage.min_done, 1)
    for gate in (*stage.before, *stage.after):
        parse(gate.expires, f"{where}: expires")
        if gate.type == "Soak":
            parse(gate.for_, f"{where}: for")
    place_for = parse(stage.place_for, f"{where}: placeFor")
    type_, settings = str(stage.rollout.get("type") or "All"), settings_of(stage)
    if type_ not in TYPES:
        yield Refusal("InvalidRollout", f"{where}: rollout.type must be {', '.join(TYPES)}, not {type_}.")
    if str(settings.get("minSuccessTime") or "0") not in ("0", "0s"):
        text = f"{where}: rollout must not have minSuccessTime. spec.policy.soak does the same by the cluster's clock."
        yield Refusal("MinSuccessTime", text)
    policy = fleet.spec.policy
    needed = place_for + parse(policy.deadline, "spec.policy.deadline") + parse(policy.soak, "spec.policy.soak")
    deadline = settings.get("progressDeadline")
    if type_ != "All" and deadline in (None, "", "None"):
        text = (
            f"{where}: rollout.progressDeadline is missing, so a cluster that fails would keep its place forever. "
            f"It must be at least {_hours(needed)}: placeFor, spec.policy.deadline and spec.policy.soak together."
        )
        yield Refusal("NoProgressDeadline", text)
    elif type_ != "All" and parse(str(deadline), f"{where}: rollout.progressDeadline") < needed:
        text = (
            f"{where}: rollout.progressDeadline {deadline} must be at least {_hours(needed)}: placeFor, "
            "spec.policy.deadline and spec.policy.soak together. A shorter one gives a place away that is still used."
        )
        yield Refusal("ProgressDeadlineShort", text)


def _of_members(
    fleet: FleetUpdate, stages: Sequence[StageObserved], clusters: Mapping[str, ManagedCluster]
) -> Iterator[Refusal]:
    """Yields what is wrong with the clusters that the Placements choose."""
    seen: dict[str, str] = {}
    last = len(stages) - 1
    for index, (stage, observed) in enumerate(zip(fleet.spec.stages, stages, strict=True)):
        if observed.members is None:
            name = stage.placement_ref.name if stage.placement_ref else ""
            text = f"Placement {name} of stage {stage.name} does not exist in namespace {fleet.metadata.namespace}."
            yield Refusal("PlacementMissing", text)
            continue
        for name in observed.members:
            if name in seen:
                yield Refusal("ClusterInTwoStages", f"Cluster {name} is in stages {seen[name]} and {stage.name}.")
            seen[name] = stage.name
            cluster = clusters.get(name)
            if cluster is not None and is_own_cluster(cluster) and (index < last or len(observed.members) > 1):
                text = (
                    f"Cluster {name} is the hub itself: it must be alone in the last stage, not in stage {stage.name}."
                )
                yield Refusal("HubNotLast", text)
        max_failures = settings_of(stage).get("maxFailures", 0)
        try:
            is_above = observed.members and size_of(max_failures, len(observed.members)) > len(observed.members)
        except (ValueError, TypeError):
            yield Refusal(
                "InvalidRollout", f"Stage {stage.name}: rollout.maxFailures must be a number or a percentage."
            )
            continue
        if is_above:
            text = (
                f"Stage {stage.name}: rollout.maxFailures {max_failures} is above its number of clusters, "
                f"{len(observed.members)}. The engine would use 0 instead."
            )
            yield Refusal("MaxFailuresAboveSize", text)
    try:
        if seen and size_of(fleet.spec.max_failures, len(seen)) > len(seen):
            text = f"spec.maxFailures {fleet.spec.max_failures} is above the number of clusters, {len(seen)}."
            yield Refusal("MaxFailuresAboveSize", text)
    except ValueError:
        return


def _hours(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
