"""Which Kubernetes a cluster runs, as the checks of removed APIs and flags need it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import cluster_operator, context, node, read_as, snapshot

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import ClusterOperator, OperandVersion
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.shared.kubernetes_versions import source_minor
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Snapshot, Unreadable


def api_server(**versions: str) -> ClusterOperator:
    """Its operator, which shows versions of all that it runs."""
    found = cluster_operator("kube-apiserver")
    shown = tuple(OperandVersion(name=name.replace("_", "-"), version=text) for name, text in versions.items())
    return replace(found, status=replace(found.status, versions=shown))


OLD, NEW = node("a", kubelet="v1.35.9"), node("b", kubelet="v1.36.1")


@pytest.mark.parametrize(
    ("objects", "minor"),
    [
        pytest.param(
            (api_server(audit="1.20.0", kube_apiserver="1.37.2", operator="5.0.0", z="1.90.0"), OLD),
            37,
            id="as it says",
        ),
        pytest.param(
            (api_server(audit="1.20.0", operator="5.0.0"), OLD, NEW), 36, id="it does not say: newest kubelet"
        ),
        pytest.param((api_server(kube_apiserver="soon"), NEW, OLD), 36, id="it says nothing that can be read"),
        pytest.param((cluster_operator("etcd"), OLD), 35, id="another operator alone"),
        pytest.param((node(kubelet=""),), None, id="a kubelet that does not say"),
        pytest.param((), None, id="nothing"),
    ],
)
def test_the_cluster_s_kubernetes(objects: tuple[Any, ...], minor: int | None) -> None:
    """The API server's operator says it; kubelets are never newer."""
    assert source_minor(snapshot(*objects), context()) == minor


@pytest.mark.parametrize(
    ("objects", "unreadable", "minor"),
    [
        pytest.param((OLD,), (ClusterOperator,), 35, id="operators are not: the kubelet's"),
        pytest.param((api_server(kube_apiserver="1.37.2"),), (Node,), 37, id="nodes are not: the operator's"),
        pytest.param((), (ClusterOperator, Node), "ClusterOperator", id="neither: the first is named"),
        pytest.param((api_server(),), (Node,), "Node", id="nodes are not, and the operator does not say"),
    ],
)
def test_what_is_not_readable(objects: tuple[Any, ...], unreadable: tuple[Any, ...], minor: Any) -> None:
    """A version that one source knows is reported."""
    found = snapshot(*objects, unreadable=dict.fromkeys(unreadable, "no rights"))
    if isinstance(minor, int):
        assert source_minor(found, context()) == minor
    else:
        with pytest.raises(Unreadable) as raised:
            source_minor(found, context())
        assert raised.value.resource.kind == minor


@pytest.mark.parametrize(
    ("nodes", "kubernetes", "whose"),
    [
        pytest.param((OLD,), "", "the target ships", id="the target does not say"),
        pytest.param((), "1.37.0", "the cluster runs", id="the cluster does not say"),
        pytest.param((), "", "the target ships", id="neither does"),
    ],
)
def test_whose_kubernetes_is_not_known(nodes: tuple[Any, ...], kubernetes: str, whose: str) -> None:
    """A webhook that may be asked about nothing any more: it depends on both versions."""
    check = next(check for check in CHECKS if check.name == "WebhookRemovedVersion")
    snapshot_, _ = check_page.example(check)
    objects = {**snapshot_.objects, read_as(Node): nodes}
    (finding,) = run_check(check, Snapshot(objects=objects), context("5.0.0", "5.1.0", kubernetes)).findings
    assert f"which Kubernetes {whose} is not known" in finding.message
