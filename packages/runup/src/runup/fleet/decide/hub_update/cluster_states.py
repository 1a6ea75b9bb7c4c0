"""Reads from ManifestWorks, ManagedClusters and Placements how the clusters of a fleet update are. Pure.

Values that an agent reports are not trusted: they are shortened, and one that is not known counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from kubekit.api.conditions import find
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import cut, printable
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.fleet.decide.hub_clusters import AVAILABLE, silence

State = Literal["waiting", "ready", "running", "done", "skipped", "failed", "unknown"]
STATES: tuple[State, ...] = ("waiting", "ready", "running", "done", "skipped", "failed", "unknown")
SUCCEEDED = frozenset({"Succeeded", "SucceededUngated", "AlreadyThere"})
ENDED_BADLY = frozenset({"Failed", "Aborted", "Superseded"})
_STEPS = ENDED_BADLY | {
    "Planned",
    "Checking",
    "Waiting",
    "Preparing",
    "Committing",
    "ControlPlane",
    "BetweenHops",
    "Pools",
    "Soaking",
    "Done",
}
_OPEN = frozenset({"NoTurn", "AllOpen"})
_MAX_VALUE = 1200


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The UpdateRun of one cluster, as its agent has reported it last. `is_current`: the newest template is applied."""

    is_current: bool = False
    step: str = ""
    gates: str = ""
    outcome: str = ""
    failure: str = ""
    image: str = ""
    begun: bool = False
    gated: bool = False

    @property
    def is_finished(self) -> bool:
        """Reports whether the run has ended."""
        return self.step == "Done" or self.step in ENDED_BADLY

    @property
    def is_running(self) -> bool:
        """Reports whether the update has begun and not ended."""
        return self.begun and not self.is_finished


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
    """The UpdateTurn of one cluster; `counts_as_done` and `counts_as_failed` are the engine's view.

    `done` is the reason of condition Done, empty if the agent has reported none. `since` is the time at which the
    engine's view last changed, by the cluster's clock.
    """

    counts_as_done: bool = False
    counts_as_failed: bool = False
    done: str = ""
    since: datetime | None = None

    @property
    def has_succeeded(self) -> bool:
        """Reports whether the run of this turn ended as the engine counts it."""
        return self.counts_as_done and self.done in SUCCEEDED | {"Skipped"}


class StageObserved(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as it is on the hub.

    `members` are the clusters that its Placement chooses, `placement` the Placement's `spec`; both are None if there is
    no Placement. `turns` are the turns of the rounds that exist, by round and cluster. `sets` are the names of its
    replica sets.
    """

    members: tuple[str, ...] | None = None
    placement: dict[str, object] | None = None
    runs: Mapping[str, RunState] = {}
    turns: Mapping[int, Mapping[str, TurnState]] = {}
    sets: frozenset[str] = frozenset()


def run_state(work: ManifestWork) -> RunState:
    """Returns the state of the run that a ManifestWork brought."""
    values = _feedback(work)
    started = values.get("started", "")
    return RunState(
        is_current=_is_true(work, "Applied"),
        step=values.get("step", "") or ("Waiting" if values.get("gates") else ""),
        gates=values.get("gates", ""),
        outcome=values.get("outcome", ""),
        failure=values.get("failure", ""),
        image=values.get("image", ""),
        begun=bool(started),
        gated=values.get("gated") == "true",
    )


def turn_state(work: ManifestWork) -> TurnState:
    """Returns the state of a turn, and how the engine counts it.

    Source: ocm 1.2.0, manifestworkreplicaset_deploy_reconcile.go, clusterRolloutStatusFunc.
    """
    values = _feedback(work)
    progressing = find(work.status.conditions, "Progressing")
    is_observed = (
        _is_true(work, "Applied")
        and progressing is not None
        and progressing.observed_generation == work.metadata.generation
    )
    is_done = is_observed and progressing is not None and progressing.status == "False"
    return TurnState(
        counts_as_done=is_done,
        counts_as_failed=is_observed and not is_done and _is_true(work, "Degraded"),
        done=values.get("done", ""),
        since=progressing.last_transition_time if progressing is not None else None,
    )


def state_of(run: RunState | None, cluster: ManagedCluster | None, image: str) -> State:
    """Returns the state in which a cluster is counted. A cluster that is not heard of is unknown until it is done."""
    if run is None or run.step not in _STEPS or not is_same_image(run.image, image):
        return "unknown"
    if run.step == "Done":
        return "skipped" if run.outcome == "Skipped" else "done" if run.outcome in SUCCEEDED else "unknown"
    if run.step in ENDED_BADLY:
        return "failed"
    if cluster is None or silence(cluster):
        return "unknown"
    if run.begun:
        return "running"
    if not run.is_current:
        return "unknown"
    return "ready" if run.gates in _OPEN else "waiting"


def reason_of(run: RunState, state: State) -> str:
    """Returns why a cluster is in its state: the reason of its first gate that is not open, its step, or how it ended.

    Empty for a cluster that is unknown.
    """
    if state == "failed":
        return run.failure if run.step == "Failed" else run.step
    if state in ("waiting", "ready"):
        return run.gates or run.step
    return {"running": run.step, "done": run.outcome, "skipped": run.outcome}.get(state, "")


def heard_since(cluster: ManagedCluster | None) -> datetime | None:
    """Returns since when the hub has heard of a cluster; None if it does not."""
    available = find(cluster.status.conditions, AVAILABLE) if cluster is not None else None
    return available.last_transition_time if available is not None and available.status == "True" else None


def is_own_cluster(cluster: ManagedCluster) -> bool:
    """Reports whether a ManagedCluster is the hub itself."""
    return cluster.metadata.labels.get("local-cluster") == "true"


def _is_true(work: ManifestWork, type_: str) -> bool:
    condition = find(work.status.conditions, type_)
    return (
        condition is not None
        and condition.status == "True"
        and condition.observed_generation == work.metadata.generation
    )


def _feedback(work: ManifestWork) -> dict[str, str]:
    """Returns the values of the first manifest of a work, shortened."""
    found = {}
    for manifest in work.status.resource_status.manifests[:1]:
        for value in manifest.status_feedback.values[:32]:
            of = value.field_value
            text = ("true" if of.boolean else "false") if of.type == "Boolean" else of.string
            found[value.name] = cut(printable(text), _MAX_VALUE)
    return found
