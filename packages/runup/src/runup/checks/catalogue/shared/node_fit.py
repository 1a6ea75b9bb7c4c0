"""Determines on which nodes the pods of a template may be placed: by selector, required affinity, devices and taints.

Passing states (a cordon, a node that is not ready or short of memory) do not count: the check asks whether any node can
take the pods. How the scheduler decides is in its source: kubernetes, `pkg/scheduler/framework/plugins` (nodeaffinity,
tainttoleration)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import islice

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.scheduling import Toleration
from kubekit.rules.node_rules import REPELLING, is_selected, is_tolerated
from runup.checks.catalogue.shared.workload_reads import TemplateSpec

# Taints that controllers set and take back, or with which a node goes and is replaced: of the node lifecycle and the
# cloud controller (kubernetes, core/v1 well-known taints), of the cluster autoscaler and of Karpenter.
_TEMPORARY_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/",
)
PROJECT_SELECTOR = "openshift.io/node-selector"
# In the order in which admission asks for them; a namespace with one of them does not get the cluster's default.
# openshift/kubernetes, openshift-kube-apiserver/admission: scheduler/nodeenv leaves namespaces with the first to the
# plug-in PodNodeSelector, which admissionenablement turns on.
SELECTORS = ("scheduler.alpha.kubernetes.io/node-selector", PROJECT_SELECTOR)


def selector_annotation(namespace: Namespace) -> str:
    """Returns the annotation that has the node selector of the namespace, or an empty string."""
    return next((key for key in SELECTORS if key in namespace.metadata.annotations), "")


def project_selector(namespace: Namespace) -> dict[str, str]:
    """Returns the node selector that OpenShift adds to the pods of the namespace, without the cluster's default."""
    return parse_selector(namespace.metadata.annotations.get(selector_annotation(namespace), ""))


def parse_selector(text: str) -> dict[str, str]:
    """Returns the labels that a node selector such as `a=b,c=` demands."""
    pairs = (pair.strip().partition("=") for pair in text.split(",") if "=" in pair)
    return {key.strip(): value.strip() for key, _, value in pairs}


def fits_node(template: TemplateSpec, node: Node, project: Mapping[str, str]) -> bool:
    """Returns whether pods of the template may be on the node; `project` is the node selector of their project."""
    labels = node.metadata.labels
    required = template.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if not (
        project.items() <= labels.items() and is_selected(labels, node.metadata.name, template.node_selector, required)
    ):
        return False
    extended = _extended_resources(template)
    # A node that says nothing of what is allocatable may have it.
    if any(
        bool(node.status.allocatable) and node.status.allocatable.get(resource, "0") in ("", "0")
        for resource in extended
    ):
        return False
    # The API server adds these to a pod, not to its template, where the admission plug-in ExtendedResourceToleration is
    # on, which no object shows.
    devices = (Toleration(key=resource, operator="Exists", effect="NoSchedule") for resource in extended)
    tolerations = (*template.tolerations, *devices)
    return not any(
        (taint.effect in REPELLING and not taint.key.startswith(_TEMPORARY_TAINTS))
        and not is_tolerated(taint, tolerations)
        for taint in node.spec.taints
    )


class Homes:
    """Finds the first of `nodes` that pods of a template may be on; two distinguish none, one and several.

    A cluster may have thousands of nodes and tens of thousands of templates, so that not every pair is looked at:
    templates with equal demands are evaluated once, and of nodes those alone that have one of the demanded labels.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._homes: dict[Hashable, tuple[Node, ...]] = {}
        # The nodes by the value of a label, for each label that a template demands.
        self._by_label: dict[str, dict[str, list[Node]]] = {}

    def find(self, template: TemplateSpec, project: Mapping[str, str], *, at_most: int = 2) -> tuple[Node, ...]:
        """Returns so many nodes at most; `project` is the node selector of the pods' project."""
        selector, affinity, tolerations = template.node_selector, template.affinity, template.tolerations
        pairs, project_pairs = frozenset(selector.items()), frozenset(project.items())
        demands = (pairs, project_pairs, affinity, tolerations, frozenset(_extended_resources(template)), at_most)
        homes = self._homes.get(demands)
        if homes is None:
            candidates = self._candidates({**selector, **project})
            homes = tuple(islice((node for node in candidates if fits_node(template, node, project)), at_most))
            self._homes[demands] = homes
        return homes

    def _candidates(self, labels: Mapping[str, str]) -> Sequence[Node]:
        """Returns, in order, the nodes that have that one of the labels which the fewest have."""
        return min((self._with_label(key, value) for key, value in labels.items()), key=len, default=self.nodes)

    def _with_label(self, key: str, value: str) -> list[Node]:
        if key not in self._by_label:
            by_value: dict[str, list[Node]] = {}
            for node in self.nodes:
                if key in node.metadata.labels:
                    by_value.setdefault(node.metadata.labels[key], []).append(node)
            self._by_label[key] = by_value
        return self._by_label[key].get(value, [])


def _extended_resources(template: TemplateSpec) -> set[str]:
    """Returns the extended resources (`DOMAIN/NAME`) that a pod of the template asks for, such as devices."""
    container_resources = (container.resources for container in template.containers)
    return {
        key
        for resources in container_resources
        for key in (*resources.requests, *resources.limits)
        if "/" in key and key not in _BUILT_IN
    }


# Kubernetes' own, which every node has.
_BUILT_IN = frozenset({"kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"})
