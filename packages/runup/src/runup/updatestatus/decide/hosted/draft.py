"""Collects the states and findings of a hosted cluster, as `updatestatus.decide.draft` does for other clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.rules.version_skew import order_of
from runup.api import update_v1alpha1 as api
from runup.api.update_v1alpha1 import Insight
from runup.updatestatus.decide import control_plane as plane
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import health, insights
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.draft import Draft
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.hosted import findings as hosted
from runup.updatestatus.decide.hosted.pools import HostedPoolState, pools_of
from runup.updatestatus.decide.hosted.snapshot import HOSTED, INPUTS, HostedSnapshot
from runup.updatestatus.decide.memory import ConditionValues, PreviousStatus
from runup.updatestatus.decide.snapshot import readable

UID = "hosted-cluster"
_NOT_READ = "ClusterOperators, nodes and drains of the hosted side are not read"
_WELL = {"Available": "True", "Degraded": "False"}


def draft(snapshot: HostedSnapshot, memory: PreviousStatus, now: datetime) -> Draft:
    """Returns everything that the snapshot shows at `now`."""
    cluster, version = snapshot.cluster, snapshot.as_cluster_version()
    pools = pools_of(snapshot, now)
    state = None
    if isinstance(snapshot.operators, tuple):
        operators = plane.assess_operators(snapshot.operators, version.status.desired.version, None)
        state = plane.assess_control_plane(version, operators, now)
    moves = _control_plane_moves(snapshot)
    is_updating = moves or any(pool.moving or (pool.asked and not pool.is_complete) for pool in pools)
    unreadable = tuple((INPUTS[f], v.why) for f in INPUTS if isinstance(v := getattr(snapshot, f), Unreadable))
    target = version.status.desired.version
    found = [
        *hosted.cluster_findings(cluster, now, is_updating=is_updating),
        *(health.cluster_version_findings(version, now) if find(version.status.conditions, "Failing") else ()),
        *(health.operator_findings(state.operators, now) if state is not None else ()),
        *health.history_findings(version, control_plane_done=not moves),
        *hosted.component_findings(readable(snapshot.components), target, now, is_updating=moves),
        *hosted.pod_findings(snapshot, now),
        *hosted.pool_findings(pools, readable(snapshot.pools), _running(snapshot), now),
        *hosted.machine_findings(snapshot, pools, now),
        *hosted.drain_findings(snapshot, pools, memory, now),
        *_input_findings(unreadable),
    ]
    if is_updating and not any(each.impact == terms.UPDATE_STALLED for each in found):
        found += hosted.no_progress(cluster, pools, (*_moments(snapshot), *memory.last_movements()), now)
    unique: dict[tuple[str, str], Finding] = {}
    for finding in filter(health.is_complete, found):
        unique.setdefault((finding.pool, terms.uid_of_finding(finding)), finding)
    stalled = {finding.pool for finding in unique.values() if finding.impact == terms.UPDATE_STALLED}
    shown = tuple(replace(pool, stalled=pool.layer in stalled) for pool in pools)
    updating = _updating(snapshot, pools, is_updating=is_updating)
    return Draft(
        cluster=None,
        control_plane=state,
        waiting=(),
        pools=shown,
        rows={pool.name: pool.rows() for pool in shown},
        findings=tuple(unique.values()),
        unreadable=unreadable,
        alerts_unreadable=None,
        alerts_asked=False,
        version=partial(
            _insight, snapshot, state, moves=moves, stalled=terms.CONTROL_PLANE in stalled, updating=updating
        ),
        updating=updating,
        side=HOSTED,
        resource=hosted.cluster_ref(cluster),
        hosted_side=_hosted_side(snapshot),
    )


def _hosted_side(snapshot: HostedSnapshot) -> ConditionValues:
    """Returns the condition that says whether objects of the hosted side were read."""
    operators = snapshot.operators
    if operators is None:
        text = f"{_NOT_READ}: {snapshot.why_not_read}" if snapshot.why_not_read else _NOT_READ
        return (terms.HOSTED_SIDE, "Unknown", "NotRead", terms.cut(text, 4096))
    if isinstance(operators, Unreadable):
        return (terms.HOSTED_SIDE, "False", "CannotRead", terms.cut(operators.why or _NOT_READ, 4096))
    return (terms.HOSTED_SIDE, "True", "AsExpected", "")


def _control_plane_moves(snapshot: HostedSnapshot) -> bool:
    """Returns whether the control plane is being updated: its newest release is not completed, or is yet to come."""
    status, spec = snapshot.cluster.status, snapshot.cluster.spec
    newest = status.version.history[0] if status.version.history else None
    wanted = (spec.control_plane_release or spec.release).image
    if newest is None:
        return True
    behind = bool(wanted) and spec.control_plane_release is None and wanted != newest.image
    return newest.state != "Completed" or behind


def _running(snapshot: HostedSnapshot) -> str:
    """Returns the last version that the control plane completed."""
    history = snapshot.cluster.status.version.history
    return next((entry.version for entry in history if entry.state == "Completed"), "")


def _input_findings(unreadable: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    for inputs, why in unreadable:
        yield Finding(
            check=terms.UNREADABLE,
            level=terms.UNKNOWN,
            impact=terms.UNKNOWN_IMPACT,
            summary=f"{inputs} could not be read, so their state is unknown",
            description=why or "No reason was given.",
            reference=terms.DOCS + "inputunreadable",
            scope=terms.SCOPE_CLUSTER,
            identity=inputs,
        )


def _moments(snapshot: HostedSnapshot) -> Iterator[datetime]:
    """Yields the times at which something of the update is known to have moved."""
    status = snapshot.cluster.status
    for entry in status.version.history[:1]:
        yield from (moment for moment in (entry.started_time, entry.completion_time) if moment)
    conditions = [
        *(each for pool in readable(snapshot.pools) for each in pool.status.conditions),
        *(each for component in readable(snapshot.components) for each in component.status.conditions),
        *(each for machine in readable(snapshot.machines) for each in machine.status.conditions),
    ]
    yield from (each.last_transition_time for each in conditions if each.last_transition_time)
    for obj in readable(snapshot.machines):
        yield from (moment for moment in (obj.metadata.creation_timestamp, obj.metadata.deletion_timestamp) if moment)
    for operator in readable(snapshot.operators):
        progressing = find(operator.status.conditions, "Progressing")
        if progressing is not None and progressing.last_transition_time:
            yield progressing.last_transition_time


def _updating(snapshot: HostedSnapshot, pools: Sequence[HostedPoolState], *, is_updating: bool) -> ConditionValues:
    """Returns the condition Updating of the control plane's layer: of the hosted cluster as a whole."""
    if not snapshot.cluster.status.version.history:
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "The HostedCluster has no history of versions")
    if isinstance(snapshot.pools, Unreadable):
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "NodePools could not be read")
    parts = [f"The control plane runs {_running(snapshot) or 'no release yet'}"]
    parts += [f"{pool.done} of {pool.total} Machines of pool {pool.name} have {pool.target}" for pool in pools]
    reason = "HostedClusterUpdating" if is_updating else "HostedClusterNotUpdating"
    return (terms.UPDATING, "True" if is_updating else "False", reason, terms.cut("; ".join(parts), 4096))


def _insight(
    snapshot: HostedSnapshot,
    state: plane.ControlPlaneState | None,
    memory: PreviousStatus,
    text: int,
    *,
    moves: bool,
    stalled: bool,
    updating: ConditionValues,
) -> Insight:
    """Returns the insight of the HostedCluster; `text` limits messages, in characters."""
    cluster, version = snapshot.cluster, snapshot.as_cluster_version()
    uid = terms.uid_of_object(UID, cluster.metadata.name)
    old = memory.cluster_version(uid)
    assessment = "Completed"
    if not cluster.status.version.history:
        assessment = "Unknown"
    elif moves:
        assessment = "Stalled" if stalled else "Progressing"
    newest = cluster.status.version.history[0] if cluster.status.version.history else None
    bad = [each for each in cluster.status.conditions if each.type in _WELL and each.status != _WELL[each.type]]
    healthy: ConditionValues = (terms.HEALTHY, "True", "AsExpected", "")
    if bad:
        healthy = (terms.HEALTHY, "False", bad[0].type, terms.cut(bad[0].message, text))
    elif find(cluster.status.conditions, "Available") is None:
        healthy = (terms.HEALTHY, "Unknown", "CannotDetermine", "The HostedCluster has no condition Available")
    member = api.HostedClusterInsight(
        resource=hosted.cluster_ref(cluster),
        assessment=assessment,
        completion=_completion(snapshot, state, moves=moves),
        versions=insights.versions_of(version, text),
        started_at=newest.started_time if newest is not None else None,
        completed_at=newest.completion_time if newest is not None and not moves else None,
        conditions=memory.conditions(old.conditions if old else (), updating, healthy),
    )
    return memory.settled(terms.CONTROL_PLANE, uid, member)


def _completion(snapshot: HostedSnapshot, state: plane.ControlPlaneState | None, *, moves: bool) -> int:
    """Returns the percentage of the control plane's components that run the release; 100 only when it is completed."""
    if not moves:
        return 100
    target = order_of(snapshot.cluster.status.version.desired.version)
    components = readable(snapshot.components)
    if components:
        done = sum(
            order_of(each.status.version) == target
            and (rollout := find(each.status.conditions, "RolloutComplete")) is not None
            and rollout.status == "True"
            for each in components
        )
        return min(99, done * 100 // len(components))
    return min(99, state.completion) if state is not None and state.operators else 0
