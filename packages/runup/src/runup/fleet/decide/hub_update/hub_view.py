"""The view of a fleet update on a hub: what its controller has stored, and what a person can do next. Pure.

Nothing is decided again: counts, gates and troubles are those of the status. Only the list of clusters is read from the
works of the hub, by the functions that the controller uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find, status_of
from kubekit.error_types import InputError
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate, StageStatus
from runup.api.update_policy_v1alpha1 import GROUP, Control
from runup.fleet.decide.hub_clusters import silence
from runup.fleet.decide.hub_update.cluster_states import STATES, RunState, reason_of
from runup.fleet.decide.hub_update.observation import HubInputs, observe
from runup.fleet.decide.hub_update.stages import (
    ACKNOWLEDGED,
    DONE,
    FAILED,
    READY,
    allowed_failures,
    size_of_or_all,
    states_of,
)
from runup.fleet.decide.update_turns import EXIT_CODES, Outcome
from runup.fleet.decide.update_view import ClusterLine, FleetView, StageLine
from runup.process.lease_age import LeaseRecord, lapse
from runup.rollout.decide.gates.gate import CLOSED, Gate

# Annotation: why a person held or aborted the update.
REASON = f"{GROUP}/reason"


def hub_view(
    fleet: FleetUpdate, now: datetime, *, hub: str, unconfirmed: str = "", clusters: Sequence[ClusterLine] = ()
) -> FleetView:
    """Returns the view of a FleetUpdate. `unconfirmed`: why nobody is known to keep its status up to date."""
    status = fleet.status
    total = sum(stage.clusters for stage in status.stages)
    doubts = tuple(_doubts(fleet, unconfirmed))
    outcome = _outcome(fleet, has_doubts=bool(doubts))
    stored = {each.name: each for each in status.stages}
    stages = []
    for index, stage in enumerate(fleet.spec.stages):
        of = stored.get(stage.name, StageStatus(name=stage.name))
        closed = (Gate(name="stage", state=CLOSED, reason="StageClosed", message=of.message),) if of.message else ()
        stages.append(
            StageLine(
                name=stage.name,
                counts={state: getattr(of, state) for state in STATES},
                clusters=of.clusters,
                needed=size_of_or_all(fleet, index, of.clusters),
                closed=closed,
                phase=of.phase,
                turns=of.turns,
                round=of.round,
                rounds=stage.last_round,
                waiting_for={each.reason: each.total for each in of.waiting_for},
            )
        )
    return FleetView(
        name=fleet.metadata.name,
        namespace=fleet.metadata.namespace,
        version=fleet.spec.target.version,
        image=fleet.spec.target.image,
        observed=now,
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        failures=sum(stage.failed for stage in status.stages),
        allowed_failures=allowed_failures(fleet, total),
        stages=tuple(stages),
        clusters=tuple(clusters),
        hub=hub,
        problem=_problem(fleet),
        waits_for=status.closed,
        permit_until=status.permit_until,
        troubles=status.troubles,
        doubts=doubts,
    )


def _doubts(fleet: FleetUpdate, unconfirmed: str) -> Iterator[str]:
    """Yields why the status may not show how the update is now."""
    if not fleet.status.conditions:
        yield "The controller has not read the FleetUpdate yet."
    elif fleet.status.observed_generation != fleet.metadata.generation:
        yield "The controller has not read the newest change of the FleetUpdate yet."
    if unconfirmed and status_of(fleet.status.conditions, DONE) != "True":
        yield f"This may be out of date: {unconfirmed}."


def _problem(fleet: FleetUpdate) -> str:
    """Returns why nothing starts: of a hold or abort, the fuse, or a refusal; empty if nothing stops the update."""
    if fleet.spec.control != "Run":
        reason = fleet.metadata.annotations.get(REASON, "")
        return f"Reason: {reason}" if reason else ""
    failed, ready = (find(fleet.status.conditions, type_) for type_ in (FAILED, READY))
    if failed is not None and failed.status == "True":
        return failed.message
    return ready.message if ready is not None and ready.status != "True" else ""


def _outcome(fleet: FleetUpdate, *, has_doubts: bool) -> Outcome:
    """Returns what the update as a whole waits for, as the conditions have it."""
    status = fleet.status
    ready = find(status.conditions, READY)
    if has_doubts or ready is None or ready.status == "Unknown":
        return "Unknown"
    if status_of(status.conditions, DONE) == "True":
        return "Done"
    if fleet.spec.control == "Abort":
        return "Aborted"
    if status_of(status.conditions, FAILED) == "True":
        return "Failed"
    if ready.status == "False":
        return "Refused"
    if fleet.spec.control != "Run":
        return "Held"
    # Clusters of a stage whose gates are closed start nothing, whatever is known about them.
    open_stages = [stage for stage in status.stages if stage.phase == "Running" and not stage.message]
    if any(stage.running for stage in status.stages) or any(stage.ready for stage in open_stages):
        return "Running"
    if any(stage.unknown for stage in open_stages):
        return "Unknown"
    return "ApprovalMissing" if status.closed is not None and status.closed.type == "Approval" else "GatesClosed"


def cluster_lines(fleet: FleetUpdate, inputs: HubInputs) -> tuple[ClusterLine, ...]:
    """Returns each cluster of a FleetUpdate with its state and the reason, as its agent has reported it last."""
    hub = observe(fleet, inputs)
    lines = []
    for stage, observed in zip(fleet.spec.stages, hub.stages, strict=True):
        for name, state in states_of(fleet, observed, hub.clusters).items():
            cluster, run = hub.clusters.get(name), observed.runs.get(name)
            message = ""
            if state == "unknown":
                message = "the hub has no such ManagedCluster" if cluster is None else silence(cluster)
                message = message or "its agent has not reported the run"
            lines.append(
                ClusterLine(
                    name=name,
                    stage=stage.name,
                    state=state,
                    reason=reason_of(run or RunState(), state),
                    message=message,
                    unknown=state == "unknown",
                )
            )
    return tuple(lines)


def no_lease(place: str) -> str:
    """Returns why nobody is known to keep the status up to date where the Lease at `place` does not exist."""
    return f"Lease {place} does not exist, so no controller is known to run"


def unconfirmed(lease: LeaseRecord, now: datetime, place: str) -> str:
    """Returns why nobody is known to keep the status up to date; empty if the controller renews its Lease.

    `now` must be the API server's time.
    """
    if lease.renewed_at is None:
        return f"Lease {place} has no renewTime, so no controller is known to run"
    if lapsed := lapse(lease, now, place):
        return f"the controller does not run, or is cut off: {lapsed}"
    return ""


def control_patch(
    fleet: FleetUpdate, control: Control, *, reason: str = "", acknowledges: bool = False
) -> dict[str, Any]:
    """Returns the patch by which a person holds, resumes or aborts a FleetUpdate.

    `reason` is kept as an annotation; `acknowledges`: the person has seen why the fuse has blown. Raises InputError
    with the way out if the FleetUpdate cannot be controlled like this any more.
    """
    name, failed = fleet.metadata.name, find(fleet.status.conditions, FAILED)
    # Where minDone is less than all, the others are still updated after Done.
    if status_of(fleet.status.conditions, DONE) == "True" and all(
        stage.phase == "Over" for stage in fleet.status.stages
    ):
        raise InputError(f"FleetUpdate {name} has ended: every stage is done")
    if fleet.spec.control == "Abort" and control != "Abort":
        raise InputError(f"FleetUpdate {name} was aborted: create another one, whose runs begin again")
    annotations: dict[str, str | None] = {REASON: reason or None}
    patch = {"spec": {"control": control}, "metadata": {"annotations": annotations}}
    if control != "Run" or failed is None or failed.status != "True":
        return patch
    if not acknowledges:
        raise InputError(
            f"nothing starts, because the fuse of FleetUpdate {name} has blown: {failed.message} Fix the cause or "
            "raise spec.maxFailures, then add --acknowledge"
        )
    annotations[ACKNOWLEDGED] = timestamp(failed.last_transition_time)
    return patch


def retry_patch(fleet: FleetUpdate, name: str) -> dict[str, Any]:
    """Returns the patch that opens a stage again, for clusters that joined late or used up their rounds.

    Raises InputError with the way out if the stage has no such cluster.
    """
    stages = {stage.name: stage for stage in fleet.spec.stages}
    if name not in stages:
        raise InputError(f"there is no stage {name}; give --stage {' or '.join(stages)}")
    if fleet.spec.control != "Run":
        raise InputError(f"FleetUpdate {fleet.metadata.name} is not running: spec.control is {fleet.spec.control}")
    status = next((each for each in fleet.status.stages if each.name == name), StageStatus(name=name))
    left = status.clusters - status.done - status.skipped - status.failed
    if not left:
        failed = "; a run that failed has ended, so another FleetUpdate begins again" if status.failed else ""
        raise InputError(f"stage {name} has no cluster that could get a turn{failed}")
    if status.phase != "Over" and status.round < stages[name].last_round:
        raise InputError(f"stage {name} needs no retry: it is {status.phase}, and its clusters still get turns")
    retried = [replace(stage, retries=stage.retries + (stage.name == name)) for stage in fleet.spec.stages]
    return {"spec": {"stages": [codec.to_dict(stage) for stage in retried]}}
