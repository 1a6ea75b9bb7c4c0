"""The nodes on which a template's pods may be: by a node affinity that compares numbers, and of thousands of nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.node_fit import Homes, fits_node
from runup.checks.catalogue.shared.workload_reads import TemplateSpec


# Kubernetes parses both as signed integers and compares nothing else (k8s.io/apimachinery, labels.Requirement).
@pytest.mark.parametrize(
    ("operator", "label", "bound", "expected"),
    [
        pytest.param("Gt", "4", "3", True, id="greater"),
        pytest.param("Gt", "3", "3", False, id="equal"),
        pytest.param("Lt", "-5", "-4", True, id="less, below zero"),
        pytest.param("Gt", "-5", "-4", False, id="not greater, below zero"),
        pytest.param("Gt", "\N{SUPERSCRIPT TWO}", "1", False, id="a digit that is no number"),
        pytest.param("Gt", "new", "1", False, id="a word"),
    ],
)
def test_numbers_are_compared(operator: str, label: str, bound: str, expected: bool) -> None:
    """A node fits if its label is a number on the right side of the bound."""
    term = {"matchExpressions": [{"key": "gen", "operator": operator, "values": [bound]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    template = codec.convert(TemplateSpec, {"affinity": {"nodeAffinity": required}})
    node = codec.convert(Node, {"metadata": {"name": "n", "labels": {"gen": label}}})
    assert fits_node(template, node, {}) == expected


LABELS = {"zone": ("a", "b", "c"), "disk": ("ssd", "hdd"), "host": tuple("0123456789")}


def some_labels(rand: random.Random, share: float) -> dict[str, str]:
    return {key: rand.choice(values) for key, values in LABELS.items() if rand.random() < share}


def some_template(rand: random.Random) -> TemplateSpec:
    """A template that demands labels, a zone by affinity, a device, or nothing."""
    template: dict[str, Any] = {"nodeSelector": some_labels(rand, 0.3)}
    if rand.random() < 0.3:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [rand.choice("abcd")]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        template["affinity"] = {"nodeAffinity": required}
    if rand.random() < 0.3:
        template["containers"] = [{"resources": {"limits": {"example.com/gpu": "1"}}}]
    if rand.random() < 0.5:
        template["tolerations"] = [{"key": "team", "operator": "Exists"}]
    return codec.convert(TemplateSpec, template)


def some_node(rand: random.Random, name: str) -> Node:
    """A node with some of the labels, perhaps a device, perhaps a taint."""
    spec = {"taints": [{"key": "team", "effect": "NoSchedule"}]} if rand.random() < 0.3 else {}
    status = {"allocatable": {"cpu": "1"} | ({"example.com/gpu": "1"} if rand.random() < 0.3 else {})}
    return codec.convert(
        Node, {"metadata": {"name": name, "labels": some_labels(rand, 0.7)}, "spec": spec, "status": status}
    )


@pytest.mark.parametrize("seed", range(5))
def test_two_homes_are_found_as_if_every_node_were_looked_at(seed: int) -> None:
    """The first two nodes that fit, for each of many templates, whichever were looked for before."""
    rand = random.Random(seed)
    nodes = [some_node(rand, f"n{number}") for number in range(rand.randrange(12))]
    homes = Homes(nodes)
    numbers = set()
    for _ in range(200):
        template, project = some_template(rand), some_labels(rand, 0.1)
        expected = [node for node in nodes if fits_node(template, node, project)][:2]
        assert list(homes.find(template, project)) == expected
        numbers.add(len(expected))
    assert not nodes or numbers == {0, 1, 2}
