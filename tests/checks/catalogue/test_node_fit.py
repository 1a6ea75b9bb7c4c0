"""The nodes on which a template's pods may be, by a node affinity that compares numbers."""

from __future__ import annotations

import pytest

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.node_fit import fits_node
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
