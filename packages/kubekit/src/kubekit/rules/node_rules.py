"""Determines whether a node is ready, and whether its labels, taints and cordon admit a pod.

As kube-scheduler does: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/; its source:
kubernetes, `pkg/scheduler/framework/plugins` (nodeunschedulable, nodeaffinity, tainttoleration).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kubekit.api.conditions import status_of
from kubekit.api.core_v1 import Node, Taint
from kubekit.api.meta_v1 import LabelSelectorRequirement
from kubekit.api.scheduling import NodeSelector, NodeSelectorTerm, Toleration

# The node controller puts this taint on a cordoned node; the scheduler looks at the field as well.
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
REPELLING = ("NoSchedule", "NoExecute")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def is_ready(node: Node) -> bool:
    """Returns whether the kubelet reports the node as ready; a node without the condition counts as ready."""
    return status_of(node.status.conditions, "Ready") in ("True", None)


def takes_pods(node: Node) -> bool:
    """Returns whether pods can be placed on the node, taints apart."""
    return not node.spec.unschedulable and is_ready(node)


def is_windows(labels: Mapping[str, str]) -> bool:
    """Returns whether a node with these labels runs Windows."""
    return labels.get("kubernetes.io/os") == "windows"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Returns whether one of the tolerations is for the taint."""
    return any(
        toleration.effect in ("", taint.effect)
        # Exists without a key tolerates every taint.
        and (toleration.key == taint.key if toleration.key else toleration.operator == "Exists")
        and (toleration.operator == "Exists" or toleration.value == taint.value)
        for toleration in tolerations
    )


def first_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Returns the first taint that keeps the pod away, or None. PreferNoSchedule is only a preference."""
    for taint in taints:
        if taint.effect in REPELLING and not is_tolerated(taint, tolerations):
            return taint
    return None


def is_selected(
    labels: Mapping[str, str], name: str, selector: Mapping[str, str], affinity: NodeSelector | None
) -> bool:
    """Returns whether a node has what a pod's `nodeSelector` and its required node affinity demand."""
    if not selector.items() <= labels.items():
        return False
    return affinity is None or any(matches_term(labels, name, term) for term in affinity.node_selector_terms)


def names_demanded(affinity: NodeSelector | None) -> frozenset[str]:
    """Returns the names of the only nodes that the scheduler looks at for a pod with this required node affinity.

    Empty if it looks at all nodes: a term does not name any by `matchFields`, or no node can have all names demanded
    (kubernetes, `pkg/scheduler/framework/plugins/nodeaffinity`, `PreFilter`).
    """
    names: set[str] = set()
    for term in affinity.node_selector_terms if affinity is not None else ():
        named = [
            set(field.values) for field in term.match_fields if (field.key, field.operator) == ("metadata.name", "In")
        ]
        if not named:
            return frozenset()
        names |= set.intersection(*named)
    return frozenset(names)


def matches_term(labels: Mapping[str, str], name: str, term: NodeSelectorTerm) -> bool:
    """Returns whether the node `name` matches the term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_satisfies(labels, expression) for expression in term.match_expressions) and all(
        _satisfies({"metadata.name": name}, expression) for expression in term.match_fields
    )


def _satisfies(labels: Mapping[str, str], requirement: LabelSelectorRequirement) -> bool:
    """Returns whether labels meet one requirement of a node selector; an unknown operator is never met."""
    present, value = requirement.key in labels, labels.get(requirement.key, "")
    match requirement.operator:
        case "In":
            return present and value in requirement.values
        case "NotIn":
            return not present or value not in requirement.values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt":
            return present and _compares_as_demanded(value, requirement)
    # An operator that is not known is taken for satisfied: nothing is claimed because of it.
    return True


def _compares_as_demanded(value: str, requirement: LabelSelectorRequirement) -> bool:
    """Reports whether an integer label value satisfies Gt or Lt, as node affinity compares it."""
    texts = (value, *requirement.values[:1])
    if len(texts) < 2 or not all(_INTEGER.fullmatch(text) for text in texts):
        return False
    difference = int(texts[0]) - int(texts[1])
    return difference > 0 if requirement.operator == "Gt" else difference < 0
