"""Members of etcd that are not healthy: the update restarts control plane nodes, and each takes a member away.

The etcd operator says so in conditions of its own (cluster-etcd-operator, pkg/operator/etcdmemberscontroller):
EtcdMembersDegraded while a member is unhealthy, EtcdMembersAvailable while there is a quorum. Where the kind Etcd
cannot be had, its ClusterOperator is asked, which unites all of them: healthy, it speaks for the members too; else its
reason names the controller. A hosted control plane has its etcd elsewhere.
"""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition, Object
from runup.api.config_v1 import ClusterOperator, Infrastructure
from runup.api.operator_v1 import Etcd
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.decide.wording import DOWN_PATIENCE, condition_text, severity_after
from runup.checks.writing import Applies, Context, Finding, Findings, Snapshot, Unreadable, declared, refer

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
    etcd, why = _etcd_or_reason(snapshot)
    if etcd is None:
        yield from _findings_of_operator(snapshot, context, why)
        return
    conditions = [(find(etcd.status.conditions, type_), good) for type_, good in MEMBER_CONDITIONS]
    unhealthy = [
        condition
        for condition, good in conditions
        if condition is not None and condition.status not in (good, "Unknown")
    ]
    if unhealthy:
        yield _unhealthy_finding(etcd, unhealthy[0], context)
    elif any(condition is None or condition.status == "Unknown" for condition, _ in conditions):
        yield _unknown_finding("Etcd cluster does not report EtcdMembersAvailable and EtcdMembersDegraded", etcd)


def _etcd_or_reason(snapshot: Snapshot) -> tuple[Etcd | None, str]:
    """Returns the Etcd object, or None and the reason why there is none to ask."""
    try:
        etcd = snapshot.get(Etcd, "cluster")
    except Unreadable as lacking:
        return None, str(lacking).rstrip(".")
    return etcd, "" if etcd else "the cluster has no Etcd named cluster"


def _findings_of_operator(snapshot: Snapshot, context: Context, why: str) -> Findings:
    """Yields a finding by the ClusterOperator's conditions, for clusters whose Etcd object says nothing."""
    operator = snapshot.get(ClusterOperator, "etcd")
    if operator is None:
        yield _unknown_finding(f"{why}, and no ClusterOperator etcd")
        return
    conditions = operator.status.conditions
    for type_, good in (("Available", "True"), ("Degraded", "False")):
        condition = find(conditions, type_)
        if condition is not None and condition.status not in (good, "Unknown") and CONTROLLER in condition.reason:
            yield _unhealthy_finding(operator, condition, context)
            return
    if (status_of(conditions, "Available"), status_of(conditions, "Degraded")) != ("True", "False"):
        yield _unknown_finding(
            f"{why}, and its operator, which is not healthy, does not say whether its members are", operator
        )


def _unhealthy_finding(obj: Object, condition: Condition, context: Context) -> Finding:
    """Returns the finding that the etcd operator reports an unhealthy member."""
    return Finding(
        name=NAME,
        message=f"Not every member of etcd is healthy{condition_text(condition)}",
        reason="EtcdMembers",
        severity=severity_after(
            condition.last_transition_time, context.now, patience=DOWN_PATIENCE, before="warning", after="critical"
        ),
        resources=(refer(obj),),
        remediation="Bring the member back or replace it first; `oc get etcd cluster -o yaml` names it.",
    )


def _unknown_finding(why: str, *objects: Object) -> Finding:
    """Returns the finding that the health of etcd's members is not known, and why."""
    return Finding(
        name=UNKNOWN,
        message=f"Whether every member of etcd is healthy could not be told: {why}.",
        applies=Applies.UNKNOWN,
        reason="EtcdMembersUnknown",
        resources=tuple(refer(obj) for obj in objects),
        remediation="Ask etcd itself: `oc -n openshift-etcd rsh -c etcdctl POD etcdctl endpoint health`.",
    )


CHECK = declared(
    run,
    name=NAME,
    component="etcd",
    reads=(Etcd, ClusterOperator, Infrastructure),
    by_hand=True,
    rank=60,
    severity="critical",
)
