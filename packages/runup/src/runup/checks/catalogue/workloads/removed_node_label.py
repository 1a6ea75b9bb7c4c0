"""Pods ask for a label of nodes that the target's kubeadm removes.

Applies when the update crosses Kubernetes 1.24, a node is one of kubeadm's, and the template of a Deployment,
StatefulSet, DaemonSet or CronJob demands the label `node-role.kubernetes.io/master`, by its nodeSelector or in each
term of its required node affinity.

Why it matters: `kubeadm upgrade apply` takes the label from the nodes of the control plane, and no new pod of that
workload can be scheduled.

Remedy: write `node-role.kubernetes.io/control-plane`, which these nodes have since 1.20.

Accepting it is right where the label is set again.

Source of the rule: Kubernetes, CHANGELOG-1.24, Urgent Upgrade Notes (kubeadm: the label is removed, #107533).
"""

from __future__ import annotations

from functools import partial

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.catalogue.shared.workload_reads import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    TemplateSpec,
)
from runup.checks.writing import (
    Context,
    Findings,
    Slim,
    Snapshot,
    count,
    declared,
    full_name,
    names_of,
    resource_of,
    risk,
    yield_from_all,
)

NAME = "RemovedNodeLabel"
LABEL, NEW_LABEL = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
_REMOVED_IN = 24
_KUBEADM = "kubeadm.alpha.kubernetes.io/cri-socket"
_KINDS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, CRON_JOBS)
EXAMPLE = """
update: {from: 1.23.9, to: 1.24.0}
---
apiVersion: v1
kind: Node
metadata: {name: cp-0, annotations: {kubeadm.alpha.kubernetes.io/cri-socket: /run/containerd/containerd.sock}}
status: {nodeInfo: {kubeletVersion: v1.23.9}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: backup, namespace: ops}
spec: {replicas: 1, template: {spec: {nodeSelector: {node-role.kubernetes.io/master: ""}}}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each kind of workload that demands the label."""
    if not context.source.minor < _REMOVED_IN <= (target_minor(context) or 0):
        return
    if any(_KUBEADM in node.metadata.annotations for node in snapshot.all(Node)):
        yield from yield_from_all(*(partial(_of_kind, snapshot, kind) for kind in _KINDS))


def _of_kind(snapshot: Snapshot, kind: Slim) -> Findings:
    """Yields the risk of the workloads of a kind."""
    demanding = [
        workload
        for workload in sorted(snapshot.listed(kind), key=full_name)
        if workload.spec.replicas and _demands(workload.spec.template.spec)
    ]
    if demanding:
        yield risk(
            f"{NAME}-{kind.kind}",
            f"{count(len(demanding), kind.kind)} ({names_of(demanding)}) "
            f"{'demands' if len(demanding) == 1 else 'demand'} the node label {LABEL}, which kubeadm 1.{_REMOVED_IN} "
            "removes.",
            demanding,
            fix=f"Write {NEW_LABEL} in the template before the update.",
            kind=kind,
        )


def _demands(spec: TemplateSpec) -> bool:
    """Returns whether the pods can be only on nodes with the label."""
    if LABEL in spec.node_selector:
        return True
    required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required is not None else ()
    return bool(terms) and all(
        any(rule.key == LABEL and rule.operator in ("Exists", "In") for rule in term.match_expressions)
        for term in terms
    )


CHECK = declared(
    run,
    NAME,
    "kube-scheduler",
    reads=(*_KINDS, resource_of(Node)),
    rank=625,
    clusters="Kubernetes",
)
