"""Pods run that would not be admitted again, because an object that they need was deleted.

Applies when a Deployment or StatefulSet has pods that a drain would move, and its template names a PriorityClass, a
RuntimeClass, a ServiceAccount, a NetworkAttachmentDefinition (annotation `k8s.v1.cni.cncf.io/networks`) or security
context constraints (annotation `openshift.io/required-scc`) that the cluster does not have. It also applies when a
LimitRange of its namespace refuses its pods: above the maximum, below the minimum, or a limit too high for its request;
or when such a pod was admitted by security context constraints (annotation `openshift.io/scc`) that are gone, and needs
more than the strictest ones give. ConfigMaps and Secrets are not looked at. All such workloads are one risk.

Why it matters: these objects are needed when a pod is created, not while it runs. After the drain of its node the pod
is refused, and the workload shrinks.

Remedy: recreate what is missing, or change the template; `oc rollout restart` of one such workload shows whether its
pods are admitted.

Accepting it means that these pods do not start again.

Source of the rule: kubernetes, the admission plug-ins Priority, RuntimeClass, ServiceAccount and LimitRanger; the
OpenShift documentation of managing security context constraints; the Kubernetes Network Custom Resource Definition
De-facto Standard (additional networks).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Object, Wire
from kubekit.api.pod_parts import PlacedPod
from runup.checks.catalogue.shared.limit_ranges import LIMIT_RANGES, LimitRange, refusal
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.catalogue.shared.workload_reads import (
    DEPLOYMENTS,
    STATEFUL_SETS,
    LimitedContainer,
    Workload,
    with_pods_that_move,
)
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.writing import Findings, Slim, count, declared, full_name, names, risk, slim_metadata, yield_from_all

NAME = "PodReferencesMissing"
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 1, template: {spec: {priorityClassName: important}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-6d9f-x2
  namespace: shop
  annotations: {openshift.io/scc: restricted-v2}
  ownerReferences: [{kind: ReplicaSet, name: web-6d9f, controller: true}]
spec: {nodeName: worker-0, containers: [{name: web}]}
status: {phase: Running}
---
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata: {name: restricted-v2}
"""


class _SelectedNetwork(Wire, frozen=True):
    """A network in the annotation of a pod."""

    name: str = ""
    namespace: str = ""


def _read_of_names(group: str, kind: str, plural: str, *, namespaced: bool = False) -> Slim:
    """Returns the read of the names of a kind's objects."""
    return Slim(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        type=Object,
        keep=lambda obj: Object(metadata=slim_metadata(obj)),
    )


PRIORITIES = _read_of_names("scheduling.k8s.io", "PriorityClass", "priorityclasses")
RUNTIMES = _read_of_names("node.k8s.io", "RuntimeClass", "runtimeclasses")
ACCOUNTS = _read_of_names("", "ServiceAccount", "serviceaccounts", namespaced=True)
CONSTRAINTS = _read_of_names("security.openshift.io", "SecurityContextConstraints", "securitycontextconstraints")
NETWORKS = _read_of_names(
    "k8s.cni.cncf.io", "NetworkAttachmentDefinition", "network-attachment-definitions", namespaced=True
)
# The API server makes these itself (kubernetes, pkg/apis/scheduling).
_SYSTEM_PRIORITIES = frozenset({"system-cluster-critical", "system-node-critical"})
_Moving = tuple[Workload, list[PlacedPod], Slim]


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields the findings of workloads whose evicted pods would refer to objects that are no longer there."""
    moving: list[_Moving] = []

    def read(kind: Slim) -> Findings:
        moving.extend((workload, pods, kind) for workload, pods in with_pods_that_move(snapshot, kind))
        yield from ()

    def findings_of(lacking: Callable[[], Iterator[tuple[Workload, str, Slim]]]) -> Findings:
        """Yields a finding for each kind of workload; raises before the first one if something could not be read."""
        found = list(lacking())
        for kind in (DEPLOYMENTS, STATEFUL_SETS):
            if of_kind := [(workload, why) for workload, why, its_kind in found if its_kind is kind]:
                yield risk(
                    NAME,
                    f"New pods of {count(len(of_kind), kind.kind)} would not be admitted: "
                    f"{names([f'{full_name(workload)} ({why})' for workload, why in of_kind])}.",
                    [workload for workload, _ in of_kind],
                    fix="Recreate what is missing, or change the template; `oc rollout restart` shows whether pods "
                    "are admitted.",
                    kind=kind,
                )

    def missing(referred: Slim, names_of: Callable[[Workload], Iterable[str]]) -> Iterator[tuple[Workload, str, Slim]]:
        """Yields the workloads that refer to an object of the kind that does not exist, by name or NAMESPACE/NAME."""
        references = [(workload, name, kind) for workload, _, kind in moving for name in names_of(workload)]
        if not references:
            return
        optional = referred in (NETWORKS, CONSTRAINTS)
        existing = snapshot.listed_or_none(referred) if optional else snapshot.listed(referred)
        if referred is CONSTRAINTS and not existing:
            return  # no OpenShift, whose admission alone reads the annotation
        existing_names = {full_name(obj) for obj in existing}
        for workload, name, kind in references:
            namespace = workload.metadata.namespace if referred.namespaced else ""
            if (f"{namespace}/{name}" if namespace and not optional else name) not in existing_names:
                # One that is not in the list may be there.
                snapshot.require_all(referred, namespace)
                yield workload, f"there is no {referred.kind} {name}", kind

    def of_template(field: str, without: Collection[str]) -> Callable[[Workload], Iterable[str]]:
        return lambda workload: {getattr(workload.spec.template.spec, field)} - {"", *without}

    yield from yield_from_all(
        partial(read, DEPLOYMENTS),
        partial(read, STATEFUL_SETS),
        *(
            partial(findings_of, lacking)
            for lacking in (
                partial(missing, PRIORITIES, of_template("priority_class_name", _SYSTEM_PRIORITIES)),
                partial(missing, RUNTIMES, of_template("runtime_class_name", ())),
                # Each namespace has a ServiceAccount called default, which its controller recreates.
                partial(missing, ACCOUNTS, of_template("service_account_name", ("default",))),
                partial(missing, NETWORKS, _additional_networks),
                partial(
                    missing, CONSTRAINTS, lambda each: {each.spec.template.metadata.annotations.required_scc} - {""}
                ),
                partial(_over_limit_ranges, snapshot, moving),
                partial(_missing_constraints, snapshot, moving),
            )
        ),
    )


def _additional_networks(workload: Workload) -> list[str]:
    """Returns NAMESPACE/NAME of each additional network of the workload's pods (multi-network specification)."""
    text = workload.spec.template.metadata.annotations.networks.strip()
    if text.startswith("["):
        try:
            selected = msgspec.json.decode(text, type=list[_SelectedNetwork])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            # Multus refuses the pod then, which this check does not evaluate.
            return []
        return [f"{selection.namespace or workload.metadata.namespace}/{selection.name}" for selection in selected]
    networks = []
    # NAMESPACE/NAME@INTERFACE, of which only NAME must be there.
    for part in filter(None, (item.strip() for item in text.split(","))):
        namespace, _, name = part.partition("@")[0].rpartition("/")
        networks.append(f"{namespace or workload.metadata.namespace}/{name}")
    return networks


def _over_limit_ranges(snapshot: Snapshot, moving: list[_Moving]) -> Iterator[tuple[Workload, str, Slim]]:
    """Yields the workloads whose pods a LimitRange of their namespace refuses."""
    by_namespace: dict[str, list[LimitRange]] = {}
    for limit_range in snapshot.listed(LIMIT_RANGES) if moving else ():
        by_namespace.setdefault(limit_range.metadata.namespace, []).append(limit_range)
    for workload, _, kind in moving:
        spec = workload.spec.template.spec
        for limit_range in by_namespace.get(workload.metadata.namespace, ()):
            containers, initial = map(_resources, (spec.containers, spec.init_containers))
            if why := refusal(limit_range, containers, initial):
                yield workload, f"LimitRange {limit_range.metadata.name}: {why}", kind
                break


def _resources(containers: Iterable[LimitedContainer]) -> list[dict[str, Any]]:
    return [{"requests": each.resources.requests, "limits": each.resources.limits} for each in containers]


def _missing_constraints(snapshot: Snapshot, moving: list[_Moving]) -> Iterator[tuple[Workload, str, Slim]]:
    """Yields the workloads whose pods were admitted by a SecurityContextConstraints that is gone."""
    # What keeps to the strictest level of the standards is admitted by the constraints that everybody may use.
    demanding = [
        (workload, pod.metadata.annotations.scc, kind)
        for workload, pods, kind in moving
        for pod in pods
        if pod.metadata.annotations.scc and pod.demands.violations
    ]
    if not demanding:
        return
    existing = {constraint.metadata.name for constraint in snapshot.listed_or_none(CONSTRAINTS)}
    missing = {full_name(each[0]): each for each in demanding if each[1] not in existing}
    for _, (workload, scc, kind) in sorted(missing.items()):
        snapshot.require_all(CONSTRAINTS)
        yield workload, f"there is no {CONSTRAINTS.kind} {scc}", kind


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(
        DEPLOYMENTS,
        STATEFUL_SETS,
        PODS,
        PRIORITIES,
        RUNTIMES,
        ACCOUNTS,
        NETWORKS,
        LIMIT_RANGES,
        CONSTRAINTS,
        DEFINITIONS,
    ),
    rank=613,
    clusters="both",
)
