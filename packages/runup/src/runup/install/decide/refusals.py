"""Finds reasons against an installation: another operator keeps the same objects, or an API is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from runup.install.decide.component import (
    KERNEL_MODULES,
    OPERATOR,
    UPDATE_POLICY,
    Certificates,
    Component,
    Options,
    Platform,
)
from runup.install.decide.component_objects import GROUP as MONITORING_GROUP
from runup.install.decide.inventory import Inventory, set_id
from runup.release.decide.manifest import Identity

_CRD = "apiextensions.k8s.io"
CLUSTER_VERSION = Identity(_CRD, "CustomResourceDefinition", "", "clusterversions.config.openshift.io")
VALIDATIONS = Identity(_CRD, "CustomResourceDefinition", "", "preflightvalidationsocp.kmm.sigs.x-k8s.io")
OPERATOR_DEPLOYMENT = "cluster-version-operator"
OPERATOR_PLACE = Identity("", "Namespace", "", OPERATOR.namespace)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment that exists. `part_of` is the ID of its ApplySet, or ""."""

    namespace: str
    name: str
    image: str = ""
    replicas: int = 0
    part_of: str = ""

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name} ({self.image})"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the cluster, before anything is applied.

    `owners` has each definition and namespace of the component that exists, with the ID of its set or "". `workloads`
    are the Deployments that have the component's name, anywhere. `version` is that of Kubernetes.
    """

    version: tuple[int, int]
    groups: frozenset[str]
    owners: Mapping[Identity, str] = msgspec.field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()
    installed: tuple[Inventory, ...] = ()
    api_ports: tuple[int, ...] = (443, 6443)
    user_reads_workloads: bool = True

    @property
    def platform(self) -> Platform:
        """OpenShift, where its security context constraints are served; ClusterVersion alone is ours as well."""
        return Platform.OPENSHIFT if "security.openshift.io" in self.groups else Platform.KUBERNETES


def refusals(cluster: Cluster, component: Component, options: Options, *, take_over: bool) -> tuple[str, ...]:
    """Returns why `component` is not installed, each with the way out; empty if nothing speaks against it."""
    reasons = []
    if cluster.version < component.kubernetes:
        version_text, oldest = (".".join(map(str, version)) for version in (cluster.version, component.kubernetes))
        reasons.append(f"the cluster is Kubernetes {version_text}; {oldest} is the oldest that is supported")
    elsewhere = [inventory for inventory in cluster.installed if inventory.namespace != options.namespace]
    reasons += [
        f"{component.name} is installed in namespace {inventory.namespace}: upgrade it there with "
        f"--namespace {inventory.namespace}, or uninstall it first"
        for inventory in elsewhere
    ]
    if options.monitoring and MONITORING_GROUP not in cluster.groups:
        reasons.append(
            f"the cluster does not serve {MONITORING_GROUP}: install a Prometheus operator first, or use "
            "--monitoring=off"
        )
    if options.certificates is Certificates.CERT_MANAGER and "cert-manager.io" not in cluster.groups:
        reasons.append(
            "the cluster does not serve cert-manager.io: install cert-manager first, or use --certificates=own"
        )
    # The objects belong to the set of that other namespace: what follows would take them for somebody else's.
    if elsewhere:
        return tuple(reasons)
    own_set = set_id(component.name, options.namespace)
    if component == UPDATE_POLICY and not {CLUSTER_VERSION, OPERATOR_PLACE} <= cluster.owners.keys():
        reasons.append(
            f"{component.name} needs ClusterVersion and namespace {OPERATOR.namespace}, where the operator keeps the "
            "reports of preflights; on a cluster without an operator `runup install operator` creates both"
        )
    if component == OPERATOR:
        reasons += _refusals_of_operator(cluster, own_set, take_over=take_over)
    elif not take_over:
        for workload in cluster.workloads:
            if (workload.namespace, workload.name) == (
                options.namespace,
                component.deployment,
            ) and workload.part_of != own_set:
                reasons.append(
                    f"{workload} was not made by `runup install`; to keep it with runup from now on, add --take-over"
                )
        if component == KERNEL_MODULES and cluster.owners.get(VALIDATIONS, own_set) != own_set:
            reasons.append(
                "the cluster has PreflightValidationOCPs of somebody else: KMM's operator has a controller for them, "
                "and two would write the same statuses. Scale that one down, then add --take-over"
            )
    return tuple(reasons)


def _refusals_of_operator(cluster: Cluster, own_set: str, *, take_over: bool) -> Iterator[str]:
    """Yields why the managing operator is not replaced: two of them would write one ClusterVersion."""
    other_operators = [
        workload
        for workload in cluster.workloads
        if workload.name == OPERATOR_DEPLOYMENT and workload.part_of != own_set
    ]
    running = [workload for workload in other_operators if workload.replicas]
    is_foreign = cluster.owners.get(CLUSTER_VERSION, own_set) != own_set
    if not cluster.user_reads_workloads:
        yield (
            "whether another operator keeps ClusterVersion is unknown: you may not list Deployments in all "
            "namespaces; ask somebody who may"
        )
    elif running:
        yield (
            f"{running[0]} keeps this cluster's ClusterVersion, and two operators would fight over it. These work "
            "next to it: `runup install update-status`, `runup install kernel-modules`, `runup preflight run`. To "
            f"replace it all the same: kubectl -n {running[0].namespace} scale deployment/{running[0].name} "
            "--replicas=0, then add --take-over"
        )
    elif (is_foreign or other_operators) and not take_over:
        reason = (
            str(other_operators[0])
            if other_operators
            else "an operator outside of the cluster, as of a hosted control plane, or a former one,"
        )
        yield (
            f"{reason} keeps this cluster's ClusterVersion, which was not made by `runup install`; to replace it, see "
            "that it does not run, and add --take-over"
        )
