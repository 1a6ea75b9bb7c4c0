"""Pods ask for a label of nodes that the target's kubeadm removes, or lack a toleration of a taint that it adds.

Applies when the update crosses Kubernetes 1.24, a node is one of kubeadm's, and the template of a Deployment,
StatefulSet, DaemonSet or CronJob demands the label `node-role.kubernetes.io/master`, by its nodeSelector or in each
term of its required node affinity. It also applies when such a template tolerates the taint
`node-role.kubernetes.io/master`, a node has it, and the template does not tolerate the taint
`node-role.kubernetes.io/control-plane`, which kubeadm 1.24 adds to these nodes. The table has the labels and taints
that kubeadm gives to nodes of the control plane; those that k3s, RKE2 and other installers give are not covered.

Why it matters: `kubeadm upgrade apply` takes the label from the nodes of the control plane and adds the taint, and no
new pod of that workload can be scheduled there.

Remedy: write `node-role.kubernetes.io/control-plane`, which these nodes have since 1.20, in place of the label, and
add a toleration of the taint of that name.

Accepting it is right where the label is set again, or where the pods need no node of the control plane.

Source of the rule: Kubernetes, CHANGELOG-1.24, Urgent Upgrade Notes (kubeadm: the label is removed, #107533); kubeadm's
sources (markcontrolplane, initconfiguration.go), as `data/kubeadm-nodes.yaml` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import Toleration
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.catalogue.shared.workload_reads import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    TemplateSpec,
    Workload,
)
from runup.checks.decide.removal_tables import Table, table
from runup.checks.decide.wording import names
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
NEW_LABEL = "node-role.kubernetes.io/control-plane"
_TABLE = "kubeadm-nodes"
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
    """Yields for each kind of workload the risk of a removed label, and the one of a missing toleration."""
    rows, source, target = table(_TABLE), context.source.minor, target_minor(context) or 0
    labels = {label: minor for minor, row in rows.between(source, target) for label in row.get("labels", ())}
    added = {
        taint: minor for minor, row in rows.added.items() if source < minor <= target for taint in row.get("taints", ())
    }
    if not labels and not added:
        return
    nodes = [node for node in snapshot.all(Node) if _KUBEADM in node.metadata.annotations]
    present = {taint.key for node in nodes for taint in node.spec.taints} & known_taints(rows)
    for label, minor in labels.items() if nodes else ():
        yield from yield_from_all(*(partial(_demanding, snapshot, kind, label=label, minor=minor) for kind in _KINDS))
    for taint, minor in added.items() if present else ():
        yield from yield_from_all(
            *(partial(_intolerant, snapshot, kind, present, taint=taint, minor=minor) for kind in _KINDS)
        )


def known_taints(rows: Table) -> frozenset[str]:
    """Returns the taints that kubeadm of a minor version of the table gives."""
    return frozenset((*rows.base["taints"], *(taint for row in rows.added.values() for taint in row.get("taints", ()))))


def _demanding(snapshot: Snapshot, kind: Slim, *, label: str, minor: int) -> Findings:
    """Yields the risk of the workloads of a kind that demand the label."""
    demanding = [*_workloads(snapshot, kind, lambda spec: demands_label(spec, label))]
    if demanding:
        yield risk(
            f"{NAME}-{kind.kind}",
            f"{count(len(demanding), kind.kind)} ({names_of(demanding)}) "
            f"{'demands' if len(demanding) == 1 else 'demand'} the node label {label}, which kubeadm 1.{minor} "
            "removes.",
            demanding,
            fix=f"Write {NEW_LABEL} in the template before the update.",
            kind=kind,
        )


def _intolerant(snapshot: Snapshot, kind: Slim, present: Collection[str], *, taint: str, minor: int) -> Findings:
    """Yields the risk of the workloads of a kind that tolerate a taint that nodes have, and not the new one."""
    lacking = [
        *_workloads(
            snapshot,
            kind,
            lambda spec: (
                any(tolerates(spec.tolerations, each) for each in present) and not tolerates(spec.tolerations, taint)
            ),
        )
    ]
    if lacking:
        yield risk(
            f"{NAME}-{kind.kind}-Toleration",
            f"{count(len(lacking), kind.kind)} ({names_of(lacking)}) "
            f"{'tolerates' if len(lacking) == 1 else 'tolerate'} {names(sorted(present))}, and not the taint {taint}, "
            f"which kubeadm 1.{minor} adds to the same nodes.",
            lacking,
            fix=f"Add a toleration of {taint} to the template before the update.",
            kind=kind,
        )


def _workloads(snapshot: Snapshot, kind: Slim, fits: Callable[[TemplateSpec], bool]) -> Iterator[Workload]:
    """Yields the workloads of a kind that have pods and a fitting template, by name."""
    for workload in sorted(snapshot.listed(kind), key=full_name):
        if workload.spec.replicas and fits(workload.spec.template.spec):
            yield workload


def demands_label(spec: TemplateSpec, label: str) -> bool:
    """Returns whether the pods can be only on nodes with the label."""
    if label in spec.node_selector:
        return True
    required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required is not None else ()
    return bool(terms) and all(
        any(rule.key == label and rule.operator in ("Exists", "In") for rule in term.match_expressions)
        for term in terms
    )


def tolerates(tolerations: Collection[Toleration], taint: str) -> bool:
    """Returns whether one of the tolerations is of the taint, which has no value and the effect NoSchedule."""
    return any(
        (each.key == taint or (not each.key and each.operator == "Exists"))
        and each.effect in ("", "NoSchedule")
        and (each.operator == "Exists" or not each.value)
        for each in tolerations
    )


CHECK = declared(
    run,
    NAME,
    "kube-scheduler",
    reads=(*_KINDS, resource_of(Node)),
    rank=625,
    clusters="Kubernetes",
)
