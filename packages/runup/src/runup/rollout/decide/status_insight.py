"""Decides what the controller reports in UpdateStatus: one Info insight that says why no update starts. Pure.

The status is the update-status controller's. It keeps the entries of other informers, so the entry is added to what is
stored, and removed once an update may start.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find
from runup.api.update_policy_v1alpha1 import GROUP, UpdatePolicyStatus, UpdateRun
from runup.api.update_v1alpha1 import ControlPlane, Informer, ResourceRef, UpdateStatusStatus
from runup.rollout.decide.policy import active_run
from runup.rollout.decide.run_steps import BEFORE_START, GATES_OPEN
from runup.updatestatus.decide import insights
from runup.updatestatus.decide.finding import INFO, NO_IMPACT, SCOPE_CLUSTER, Finding
from runup.updatestatus.decide.memory import PreviousStatus

JSON = dict[str, Any]
INFORMER = "update-controller"
CHECK = "UpdateDoesNotStart"
REFERENCE = "https://docs.runup.example/update-policy#gates"
# Characters of a description.
_MAX_TEXT = 2048


def why_nothing_starts(policy: UpdatePolicyStatus | None, runs: Sequence[UpdateRun]) -> Finding | None:
    """Returns why the run that waits does not start, or why the policy starts none; None if neither is the case."""
    run = active_run(runs)
    if run is not None:
        condition = find(run.status.conditions, GATES_OPEN)
        if run.status.step not in BEFORE_START or condition is None or condition.status == "True":
            return None
        summary = f"The update to {run.spec.target.version} does not start: {condition.reason}"
        about = ResourceRef(group=GROUP, resource="updateruns", name=run.metadata.name)
        return _finding(summary, condition.message, about)
    conditions = policy.conditions if policy is not None else ()
    ready, paused = find(conditions, "Ready"), find(conditions, "Paused")
    about = ResourceRef(group=GROUP, resource="updatepolicies", name="cluster")
    if ready is not None and ready.status != "True":
        return _finding(f"The update policy starts no update: {ready.reason}", ready.message, about)
    if paused is not None and paused.status == "True":
        return _finding(f"The update policy starts no update: {paused.reason}", paused.message, about)
    return None


def _finding(summary: str, description: str, about: ResourceRef) -> Finding:
    return Finding(
        check=CHECK,
        level=INFO,
        impact=NO_IMPACT,
        summary=summary,
        description=description,
        reference=REFERENCE,
        scope=SCOPE_CLUSTER,
        resources=(about,),
    )


def informer_operations(status: JSON | None, finding: Finding | None, now: datetime) -> list[JSON]:
    """Returns the operations of a JSON patch after which the stored status has the insight; none if it has it already.

    A status without a control plane gets no entry: its own controller has not written it yet.
    """
    layer = (status or {}).get("controlPlane")
    if not isinstance(layer, dict):
        return []
    stored = [each for each in layer.get("informers") or () if isinstance(each, dict)]
    place = next((number for number, each in enumerate(stored) if each.get("name") == INFORMER), None)
    path = "/status/controlPlane/informers"
    if finding is None:
        return [] if place is None else [{"op": "remove", "path": f"{path}/{place}"}]
    previous = _previous(stored[place]) if place is not None else None
    insight = insights.health(finding, PreviousStatus(previous, now.replace(microsecond=0)), _MAX_TEXT)
    entry = codec.to_dict(Informer(name=INFORMER, insights=(insight,)))
    if place is not None:
        return [] if stored[place] == entry else [{"op": "replace", "path": f"{path}/{place}", "value": entry}]
    if not stored:
        return [{"op": "add", "path": path, "value": [entry]}]
    return [{"op": "add", "path": f"{path}/-", "value": entry}]


def _previous(entry: JSON) -> UpdateStatusStatus | None:
    """Returns the stored entry, whose times are kept; None if it cannot be read."""
    try:
        informer = codec.convert(Informer, entry)
    except codec.DecodeError:
        return None
    return UpdateStatusStatus(control_plane=ControlPlane(informers=(informer,)))
