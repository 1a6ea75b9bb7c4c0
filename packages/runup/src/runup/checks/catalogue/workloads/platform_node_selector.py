"""A node selector from outside the pods keeps the platform's pods from nodes.

Applies when Scheduler `cluster` has a defaultNodeSelector that some nodes do not have, and a namespace of the platform
has no annotation openshift.io/node-selector; or when that annotation of such a namespace selects only some nodes. The
annotation scheduler.alpha.kubernetes.io/node-selector replaces both. Namespaces without pods, such as openshift-config,
are left out.

Why it matters: the API server adds the selector to each new pod of the namespace. A release brings new pods, and
creates namespaces: pods of components stay Pending, DaemonSets lose nodes, and the update stops.

Remedy: `oc annotate namespace NAME openshift.io/node-selector=` lets the pods of a namespace run on every node. The
operator keeps annotations that its manifests do not have. `oc get pods -A --field-selector status.phase=Pending` then
lists none of the platform.

Accepting it is right where the selected nodes can run all pods of these namespaces.

Source of the rule: openshift/kubernetes, `openshift-kube-apiserver/admission/scheduler/nodeenv`
(a namespace's annotation, also an empty one, replaces the default) and `admissionenablement` (PodNodeSelector is on);
cluster-network-operator#2848.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubekit.api.core_v1 import Namespace, Node
from kubekit.lang.text import count
from runup.api.cluster_settings_v1 import Scheduler
from runup.checks.catalogue.shared.node_fit import PROJECT_SELECTOR, parse_selector, selector_annotation
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, resource_of, risk
from runup.rules.platform_namespaces import is_system

NAME = "PlatformNodeSelector"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Scheduler
metadata: {name: cluster}
spec: {defaultNodeSelector: node-role.kubernetes.io/app=}
---
apiVersion: v1
kind: Namespace
metadata: {name: openshift-network-console}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
"""
_WITHOUT_PODS = frozenset(
    {
        "kube-node-lease",
        "kube-public",
        "openshift",
        "openshift-config",
        "openshift-config-managed",
        "openshift-infra",
        "openshift-node",
        "openshift-operators",
    }
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for the default selector, and one for each selector of platform namespaces themselves."""
    platform = [
        namespace
        for namespace in sorted(snapshot.all(Namespace), key=lambda each: each.metadata.name)
        if is_system(namespace.metadata.name) and namespace.metadata.name not in _WITHOUT_PODS
    ]
    by_selector: dict[tuple[str, str], list[Namespace]] = {}
    for namespace in platform:
        key = selector_annotation(namespace)
        by_selector.setdefault((key, namespace.metadata.annotations.get(key, "")), []).append(namespace)
    for (key, text), chosen in sorted(by_selector.items()):
        selector = parse_selector(text)
        if selector and (outside := _nodes_without(snapshot, selector)):
            yield risk(
                NAME,
                f"Pods of {_names(chosen)} get the node selector {text} of their namespace, which {outside} not have.",
                chosen,
                fix=f"Run `oc annotate namespace NAME {key}= --overwrite`.",
            )
    for scheduler in snapshot.all_or_none(Scheduler):
        text = scheduler.spec.default_node_selector
        affected = [namespace for namespace in platform if not selector_annotation(namespace)]
        if affected and (selector := parse_selector(text)) and (outside := _nodes_without(snapshot, selector)):
            yield risk(
                NAME,
                f"Scheduler cluster has the defaultNodeSelector {text}, which {outside} not have. Pods of "
                f"{_names(affected)} get it, because these namespaces have no annotation {PROJECT_SELECTOR}.",
                [scheduler, *affected],
                fix=f"Run `oc annotate namespace NAME {PROJECT_SELECTOR}=` for these namespaces.",
            )


def _nodes_without(snapshot: Snapshot, selector: Mapping[str, str]) -> str:
    """Returns in words how many nodes lack the labels, "" if none does. Raises Unreadable."""
    nodes = snapshot.all(Node)
    lacking = [node for node in nodes if not selector.items() <= node.metadata.labels.items()]
    return f"{len(lacking)} of {count(len(nodes), 'node')} {'does' if len(lacking) == 1 else 'do'}" if lacking else ""


def _names(namespaces: list[Namespace]) -> str:
    return names([namespace.metadata.name for namespace in namespaces])


CHECK = declared(run, NAME, "kube-apiserver", reads=(Scheduler, resource_of(Namespace), Node, DEFINITIONS), rank=615)
