"""Checks of nodes on a cluster without a ClusterVersion: Kubernetes' own limits, and groups instead of pools."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import context, node, snapshot

from kubekit.api.core_v1 import Node
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Finding
from runup.rules.node_groups import nodes_by_group


def labelled(name: str, kubelet: str = "v1.34.0", **labels: str) -> Node:
    """A node with these labels; `__` represents what no name may have."""
    found = node(name, kubelet=kubelet)
    own = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return with_fields(found, metadata=with_fields(found.metadata, labels=own))


def findings_of(check: str, target: str, *nodes: Node) -> tuple[Finding, ...]:
    """What a check finds on the way from 1.34."""
    update = with_fields(context("1.34.2", target, target), cluster=ClusterKind.KUBERNETES)
    (which,) = [each for each in CHECKS if each.name == check]
    return run_check(which, snapshot(*nodes), update).findings


@pytest.mark.parametrize(
    ("kubelet", "target", "names"),
    [
        pytest.param("v1.32.9", "1.35.0", [], id="three behind"),
        pytest.param("v1.31.9", "1.35.0", ["KubeletSkew"], id="four behind"),
        pytest.param("v1.33.0+k3s1", "1.36.0", [], id="of a distribution, three behind"),
        pytest.param("v1.36.0", "1.35.0", ["KubeletSkew"], id="newer than the API server"),
        pytest.param("soon", "1.35.0", ["KubeletSkewUnknown"], id="no version"),
    ],
)
def test_kubelets(kubelet: str, target: str, names: list[str]) -> None:
    """Kubernetes' own policy: three minor versions (https://kubernetes.io/releases/version-skew-policy/#kubelet)."""
    findings = findings_of("KubeletSkew", target, node("a", kubelet=kubelet))
    assert [each.name for each in findings] == names
    for each in findings:
        assert f"the API server of {target}" in each.message
        assert "(Kubernetes" not in each.message
        assert "pool" not in each.remediation


def test_kubelets_of_before_125() -> None:
    """They may be two minor versions behind."""
    old = with_fields(context("1.26.0", "1.27.0", "1.27.0"), cluster=ClusterKind.KUBERNETES)
    (check,) = [each for each in CHECKS if each.name == "KubeletSkew"]
    assert [each.name for each in run_check(check, snapshot(node("a", kubelet="v1.24.17")), old).findings] == [
        "KubeletSkew"
    ]
    assert run_check(check, snapshot(node("a", kubelet="v1.25.16")), old).findings == ()


def test_groups() -> None:
    """As the service names them, else the control plane and the others."""
    nodes = [
        labelled("eks", eks_amazonaws_com__nodegroup="blue"),
        labelled("k", karpenter_sh__nodepool="gpu"),
        labelled("cp", **{"node-role_kubernetes_io__control-plane": ""}),
        labelled("plain"),
    ]
    assert {group: [each.metadata.name for each in members] for group, members in nodes_by_group(nodes).items()} == {
        "blue": ["eks"],
        "gpu": ["k"],
        "control-plane": ["cp"],
        "workers": ["plain"],
    }


def test_releases_that_are_mixed() -> None:
    """Within a group; the control plane is another one."""
    role = {"node-role_kubernetes_io__control-plane": ""}
    apart = (labelled("cp", "v1.34.2", **role), labelled("a", "v1.33.1"), labelled("b", "v1.33.1"))
    assert findings_of("NodeReleasesMixed", "1.35.0", *apart) == ()
    (finding,) = findings_of("NodeReleasesMixed", "1.35.0", *apart, labelled("c", "v1.32.0"))
    assert (finding.name, finding.severity) == ("NodeReleasesMixed-workers", "warning")
    assert "node group workers" in finding.message


@pytest.mark.parametrize(
    ("one", "other", "mixed"),
    [
        pytest.param("v1.30.4-eks-a737599", "v1.30.4-eks-36e4d13", False, id="images of EKS"),
        pytest.param("v1.30.4-eks-a737599", "v1.30.5-eks-a737599", True, id="patches of EKS"),
        pytest.param("v1.34.2+k3s1", "v1.34.2+k3s2", False, id="builds"),
        pytest.param("v1.33.5-gke.1080000", "v1.33.5-gke.1162000", True, id="patches of GKE"),
    ],
)
def test_builds_of_one_version(one: str, other: str, mixed: bool) -> None:
    """A distribution's build suffix of the same kubelet is not another release."""
    findings = findings_of("NodeReleasesMixed", "1.35.0", labelled("a", one), labelled("b", other))
    assert [(each.name, each.severity) for each in findings] == [("NodeReleasesMixed-workers", "info")] * mixed


@pytest.mark.parametrize(
    ("kubelet", "target", "severity"),
    [
        pytest.param("v1.32.9", "1.36.0", "info", id="the next step takes it, and the one after updates it before"),
        pytest.param("v1.31.9", "1.36.0", "critical", id="the next step does not take it"),
        pytest.param("v1.31.9", "1.34.9", None, id="a patch takes what the cluster has"),
        pytest.param("v1.34.2", "1.33.0", "info", id="the way back replaces it before"),
        pytest.param("v1.30.2", "1.33.0", None, id="the way back takes an old one"),
    ],
)
def test_kubelets_that_a_step_updates_in_time(kubelet: str, target: str, severity: str | None) -> None:
    """A problem that the steps of the path fix does not block; the first step has no earlier step."""
    findings = findings_of("KubeletSkew", target, node("a", kubelet=kubelet))
    assert [each.severity for each in findings] == [severity] * bool(severity)


def test_kubelets_of_fargate_are_renewed_with_their_pods() -> None:
    """Nobody updates such a node; of several kinds, nodes are updated."""
    fargate = labelled("fargate-ip-10-0-0-1", "v1.30.1", **{"eks_amazonaws_com__compute-type": "fargate"})
    (finding,) = findings_of("KubeletSkew", "1.34.9", fargate)
    assert "kubectl rollout restart" in finding.remediation
    (finding,) = findings_of("KubeletSkew", "1.34.9", fargate, labelled("a", "v1.30.1"))
    assert "Update these nodes first" in finding.remediation
