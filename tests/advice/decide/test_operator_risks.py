"""Risks of ClusterOperators: what they say, and that nobody knows what those say that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import cluster_operator, cluster_version

from kubekit.api.codec import Undecodable
from runup.advice.decide.risks.cluster_state import Cluster, docs_url
from runup.advice.decide.risks.cluster_state import operator_risks as risks


def risk_texts(**changes: Any) -> list[tuple[str, str, str]]:
    """Names, messages and Applies of the risks, none of which acceptance lifts."""
    assert not any(each.acceptable for each in risks(Cluster(version=cluster_version(), **changes)))
    return [
        (each.name, each.message, each.evaluated().applies.status)
        for each in risks(Cluster(version=cluster_version(), **changes))
    ]


def operator_upgradeable(status: Any, message: str = "", reason: str = "") -> Any:
    """Condition Upgradeable of an operator."""
    return cluster_operator(upgradeable=status, reason=reason, message=message)


NAME = "ClusterOperatorUpgradeable-etcd"


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        pytest.param((), [], id="none"),
        pytest.param((operator_upgradeable("True", "m"),), [], id="upgradeable"),
        pytest.param((operator_upgradeable("Unknown", "m"),), [], id="unknown"),
        pytest.param((operator_upgradeable("False", "m", "R"),), [(NAME, "m", "True")], id="not, with a message"),
        pytest.param((operator_upgradeable("False", "", "R"),), [(NAME, "R", "True")], id="not, with a reason"),
        pytest.param(
            (operator_upgradeable("False"),),
            [(NAME, "The operator says that it is not upgradeable.", "True")],
            id="not, without a word",
        ),
    ],
)
def test_operators_that_are_not_upgradeable(operators: Any, found: list[tuple[str, str, str]]) -> None:
    """In their own words."""
    assert risk_texts(operators=operators) == found


def test_operators_that_could_not_be_listed() -> None:
    """One risk for all of them."""
    text = "Failed to retrieve ClusterOperators to check Upgradeable conditions: forbidden"
    assert risk_texts(operators=None, unreadable="forbidden") == [("ClusterOperatorUpgradeableUnknown", text, "True")]


def test_an_operator_that_is_not_as_it_should_be() -> None:
    """It is reported by its name, next to those that can be read."""
    bad = Undecodable("", "dns", "status is a text")
    text = f"Failed to check its Upgradeable condition: ClusterOperator {bad}"
    found = risk_texts(operators=(operator_upgradeable("False", "m"),), unread=(bad,))
    assert found == [
        ("ClusterOperatorUpgradeable-dns", text, "True"),
        (NAME, "m", "True"),
    ]


@pytest.mark.parametrize(
    ("version", "minor"), [("5.1.0", "5.1"), ("4.22.9-rc.1", "4.22"), ("", "latest"), ("five", "five")]
)
def test_where_the_documentation_is(version: str, minor: str) -> None:
    """That of the running minor version."""
    where = "https://docs.redhat.com/en/documentation/openshift_container_platform"
    assert docs_url(version, "page#part") == f"{where}/{minor}/html/updating_clusters/page#part"
