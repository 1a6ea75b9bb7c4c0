"""Members of etcd that are not healthy: the update restarts control plane nodes, and each takes a member away.

The etcd operator reports it in separate conditions (cluster-etcd-operator, pkg/operator/etcdmemberscontroller):
EtcdMembersDegraded while a member is unhealthy, EtcdMembersAvailable while there is a quorum. Where the kind Etcd
cannot be had, its ClusterOperator is asked, which unites all of them: healthy, it speaks for the members too; else its
reason names the controller. A hosted control plane has its etcd elsewhere."""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition, Object
from runup.api.config_v1 import ClusterOperator, Infrastructure
from runup.api.operator_v1 import Etcd
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.decide.model import Applies, Context, Finding, Snapshot, Unreadable
from runup.checks.writing import DOWN_PATIENCE, Findings, condition_text, declared, risk, severity_after

NAME = "EtcdMembersUnhealthy"
UNKNOWN = f"{NAME}Unknown"
# The conditions about members, each with its healthy status.
MEMBER_CONDITIONS = (("EtcdMembersAvailable", "True"), ("EtcdMembersDegraded", "False"))
# How the ClusterOperator's reason names the controller: `EtcdMembers_UnhealthyMembers`, several joined by `::`.
CONTROLLER = "EtcdMembers_"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding if an etcd member is unhealthy, or Unknown if that is not reported."""
    # The etcd of a hosted control plane runs in another cluster.
    if control_plane(snapshot) == "External":
        return
    why = "the cluster has no Etcd named cluster"
    try:
        etcd = snapshot.get(Etcd, "cluster")
    except Unreadable as lacking:
        etcd, why = None, str(lacking).rstrip(".")
    if etcd is not None:
        conditions = [(find(etcd.status.conditions, type_), good) for type_, good in MEMBER_CONDITIONS]
        for condition, good in conditions:
            if condition is not None and condition.status not in (good, "Unknown"):
                yield _unhealthy_finding(etcd, condition, context)
                return
        if any(condition is None or condition.status == "Unknown" for condition, _ in conditions):
            yield _unknown_finding("Etcd cluster does not report EtcdMembersAvailable and EtcdMembersDegraded", etcd)
        return
    operator = snapshot.get(ClusterOperator, "etcd")
    if operator is None:
        yield _unknown_finding(f"{why}, and no ClusterOperator etcd")
        return
    healthy = (("Available", "True"), ("Degraded", "False"))
    for type_, good in healthy:
        condition = find(operator.status.conditions, type_)
        if condition is not None and condition.status not in (good, "Unknown") and CONTROLLER in condition.reason:
            yield _unhealthy_finding(operator, condition, context)
            return
    if any(status_of(operator.status.conditions, type_) != good for type_, good in healthy):
        yield _unknown_finding(
            f"{why}, and its operator, which is not healthy, does not say whether its members are", operator
        )


def _unhealthy_finding(obj: Object, condition: Condition, context: Context) -> Finding:
    """Returns the finding that the etcd operator reports an unhealthy member."""
    since = condition.last_transition_time
    return risk(
        NAME,
        f"Not every member of etcd is healthy{condition_text(condition)}",
        [obj],
        severity=severity_after(since, context.now, patience=DOWN_PATIENCE, before="warning", after="critical"),
        fix="Bring the member back or replace it first; `oc get etcd cluster -o yaml` names it.",
        reason="EtcdMembers",
    )


def _unknown_finding(why: str, *objects: Object) -> Finding:
    """Returns the finding that the health of etcd's members is not known, and why."""
    return risk(
        UNKNOWN,
        f"Whether every member of etcd is healthy is unknown: {why}.",
        objects,
        fix="Ask etcd itself: `oc -n openshift-etcd rsh -c etcdctl POD etcdctl endpoint health`.",
        reason="EtcdMembersUnknown",
        applies=Applies.UNKNOWN,
    )


CHECK = declared(
    run, NAME, "etcd", reads=(Etcd, ClusterOperator, Infrastructure), by_hand=True, rank=60, severity="critical"
)
