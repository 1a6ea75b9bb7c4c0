"""Collects the states and findings of a cluster without a ClusterVersion, as `updatestatus.decide.draft` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from kubekit.rules.version_skew import order_of
from runup.api import update_v1alpha1 as api
from runup.api.update_v1alpha1 import Insight
from runup.rules.certificate_requests import unanswered
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import health, stuck
from runup.updatestatus.decide import waiting as waits
from runup.updatestatus.decide.draft import Draft
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.kubernetes import findings as kubernetes
from runup.updatestatus.decide.kubernetes.groups import (
    ControlPlane,
    GroupState,
    assess_groups,
    control_plane_of,
    movements,
    remaining_s,
)
from runup.updatestatus.decide.kubernetes.snapshot import (
    INPUTS,
    KUBE_SYSTEM,
    KubernetesSnapshot,
    unreadable_inputs,
)
from runup.updatestatus.decide.memory import ConditionValues, PreviousStatus, same_estimate
from runup.updatestatus.decide.snapshot import readable

UID = "kubernetes"


def draft(snapshot: KubernetesSnapshot, memory: PreviousStatus, now: datetime) -> Draft:
    """Returns everything that the snapshot shows at `now`."""
    plane = control_plane_of(snapshot)
    groups = assess_groups(snapshot, plane, now)
    moments = movements(groups, plane, snapshot)
    is_updating = bool(plane.outdated) or any(_moves(group, plane) for group in groups)
    unreadable = list(unreadable_inputs(snapshot))
    findings = [
        *health.pool_findings(groups, now),
        *waits.drain_findings(
            groups,
            readable(snapshot.draining_pods),
            budgets=readable(snapshot.pod_disruption_budgets),
            memory=memory,
            now=now,
            read_nodes=snapshot.drains_read,
            pending=readable(snapshot.pending_pods),
        ),
        *waits.pending_pod_findings(readable(snapshot.pending_pods), None, now),
        *kubernetes.control_plane_findings(plane, groups, snapshot.proxies, now),
        *kubernetes.group_findings(groups, plane, now, is_updating=is_updating),
        *kubernetes.plan_findings(snapshot, groups, now),
        *kubernetes.machine_findings(snapshot, groups, now),
        *kubernetes.karpenter_findings(snapshot, groups, now),
        *_input_findings(snapshot, plane, unreadable),
    ]
    if is_updating:
        findings += _stuck_findings(snapshot, groups, memory=memory, now=now, known=findings)
        if not any(finding.impact == terms.UPDATE_STALLED for finding in findings):
            findings += kubernetes.no_progress(groups, plane, (*moments, *memory.last_movements()), now)
    unique: dict[tuple[str, str], Finding] = {}
    for finding in filter(health.is_complete, findings):
        unique.setdefault((finding.pool, terms.uid_of_finding(finding)), finding)
    stalled = {finding.pool for finding in unique.values() if finding.impact == terms.UPDATE_STALLED}
    pools = tuple(replace(group, stalled=group.layer in stalled) for group in groups)
    return Draft(
        cluster=None,
        control_plane=None,
        waiting=(),
        pools=pools,
        rows={pool.name: pool.rows() for pool in pools},
        findings=tuple(unique.values()),
        unreadable=tuple(unreadable),
        alerts_unreadable=None,
        alerts_asked=False,
        version=partial(
            _insight,
            plane,
            pools,
            moved=max(moments, default=None),
            is_updating=is_updating,
            stalled=terms.CONTROL_PLANE in stalled,
        ),
        updating=_updating(plane, pools, is_updating=is_updating),
    )


def _moves(group: GroupState, plane: ControlPlane) -> bool:
    """Returns whether the group is being updated, or is a rest of an update of the control plane.

    Where a service updates groups one by one, a group that has not begun may stay as it is on purpose.
    """
    drifted = any(node.message.startswith("Drifted") for node in group.nodes)
    return group.is_under_way or drifted or (plane.in_place and not group.is_complete and not group.paused)


def _stuck_findings(
    snapshot: KubernetesSnapshot,
    groups: Sequence[GroupState],
    *,
    memory: PreviousStatus,
    now: datetime,
    known: Sequence[Finding],
) -> Iterator[Finding]:
    """Yields what does not move and is not explained by the findings that are `known`."""
    requests = unanswered(readable(snapshot.certificate_requests), now)
    explained = {
        finding.identity or finding.resources[0].name
        for finding in known
        if finding.check in waits.OF_DRAINS or finding.check == kubernetes.STILL_CORDONED
    }
    explained |= {
        ref.name
        for finding in known
        if finding.check in (kubernetes.JOB_FAILED, kubernetes.MACHINE_STUCK)
        for ref in finding.resources
    }
    yield from (
        finding
        for group in groups
        for node in group.nodes
        for finding in stuck.stuck_node(
            node, group, None, started=group.began, requests=requests, memory=memory, now=now
        )
        if finding.check != stuck.NODE_LATE or finding.identity not in explained
    )
    yield from stuck.shared_findings(requests, snapshot.volume_attachments, now, client="kubectl")


def _input_findings(
    snapshot: KubernetesSnapshot, plane: ControlPlane, unreadable: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    """Yields a finding for each input that is not known, or known in part."""
    finding = partial(Finding, level=terms.UNKNOWN, impact=terms.UNKNOWN_IMPACT, scope=terms.SCOPE_CLUSTER)
    upper = {inputs: f"{inputs[0].upper()}{inputs[1:]}" for inputs in (*INPUTS.values(), *dict(unreadable))}
    for inputs, why in unreadable:
        yield finding(
            check=terms.UNREADABLE,
            summary=f"{upper[inputs]} could not be read, so part of the status is unknown",
            description=why or "No reason was given.",
            reference=terms.DOCS + "inputunreadable",
            identity=inputs,
        )
    for field, inputs in INPUTS.items():
        if field in snapshot.incomplete:
            yield finding(
                check=terms.INCOMPLETE,
                summary=f"{upper[inputs]} are known in part, so part of the status is unknown",
                description=snapshot.incomplete[field],
                reference=terms.DOCS + "inputincomplete",
                identity=inputs,
            )
    if not plane.servers:
        yield finding(
            check=terms.UNREADABLE,
            summary="The version of the API server is not known, so whether nodes are behind it is not known",
            description="Neither an answer to /version nor a pod of kube-apiserver is known.",
            reference=terms.DOCS + "inputunreadable",
            identity="version",
        )


def _updating(plane: ControlPlane, groups: Sequence[GroupState], *, is_updating: bool) -> ConditionValues:
    """Returns the condition Updating of the control plane's layer: of the cluster as a whole."""
    if not groups or not plane.servers:
        return (terms.UPDATING, "Unknown", "CannotDetermineUpdating", "The nodes or the API servers are not known")
    parts = [f"{len(plane.servers) - len(plane.outdated)} of {len(plane.servers)} API servers have {plane.target}"]
    parts += [f"{group.done} of {group.total} nodes of group {group.name} are updated" for group in groups]
    reason = "KubernetesUpdating" if is_updating else "KubernetesNotUpdating"
    return (terms.UPDATING, "True" if is_updating else "False", reason, terms.cut("; ".join(parts), 4096))


def _insight(
    plane: ControlPlane,
    groups: Sequence[GroupState],
    memory: PreviousStatus,
    text: int,
    *,
    moved: datetime | None,
    is_updating: bool,
    stalled: bool,
) -> Insight:
    """Returns the insight of the cluster's version; `text` limits versions, in characters."""
    old = memory.cluster_version(UID)
    if old is not None and (old.versions is None or old.versions.target.version != _cut(plane.target, text)):
        # It is about another update.
        old = None
    started = old.started_at if old is not None else None
    if started is None and is_updating:
        started = _began(plane, groups)
    left = remaining_s(groups) if is_updating else None
    end = memory.stamp + timedelta(seconds=left) if left is not None else None
    assessment = ("Stalled" if stalled else "Progressing") if plane.outdated else "Completed"
    total = len(plane.servers)
    completed = None
    if not is_updating and old is not None and old.started_at is not None:
        completed = old.completed_at or memory.stamp
    member = api.KubernetesVersionInsight(
        resource=api.ResourceRef(resource="namespaces", name=KUBE_SYSTEM),
        assessment=assessment if total else "Unknown",
        completion=(total - len(plane.outdated)) * 100 // total if total else 0,
        versions=_versions(plane, groups, old, text) if plane.target else None,
        started_at=started,
        completed_at=completed,
        estimated_completed_at=same_estimate(end, old.estimated_completed_at if old else None),
        last_observed_progress=moved,
        conditions=memory.conditions(old.conditions if old else (), _updating(plane, groups, is_updating=is_updating)),
        distribution=plane.distribution.name,
        api_servers=tuple(
            api.ApiServerVersion(name=server.node or "kube-apiserver", version=_cut(server.version, text))
            for server in plane.servers[:_MOST_SERVERS]
        ),
    )
    return memory.settled(terms.CONTROL_PLANE, UID, member)


_MOST_SERVERS = 64


def _began(plane: ControlPlane, groups: Sequence[GroupState]) -> datetime | None:
    """Returns when the first node, or the first API server, of the present update moved."""
    moments = [group.began for group in groups if group.began is not None and not group.is_complete]
    if plane.outdated:
        moments += [server.since for server in plane.servers if server.since and server not in plane.outdated]
    return min(moments, default=None)


def _versions(
    plane: ControlPlane, groups: Sequence[GroupState], old: api.ClusterVersionInsight | None, text: int
) -> api.Versions:
    """Returns the target, and the oldest version that a node or an API server still has, or had before."""
    outdated = [node.version for group in groups for node in group.nodes if not node.updated and order_of(node.version)]
    outdated += [server.version for server in plane.outdated]
    before = min(outdated, key=order_of, default="")
    if not before and old is not None and old.versions is not None:
        before = old.versions.previous.version
    target = _cut(plane.target, text)
    return api.Versions(
        previous=api.Version(version=_cut(before, text) if before else target), target=api.Version(version=target)
    )


def _cut(version: str, text: int) -> str:
    return version[: terms.limit_or_unbounded(terms.VERSION_LIMIT, text)] or terms.UNKNOWN_VERSION
