"""Servers of k3s, whose API server and etcd run in the process of the kubelet and are in no pod."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import context, node, snapshot

from kubekit.api.core_v1 import Node
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check

BY_NAME = {check.name: check for check in CHECKS}
ROLES = {"node-role.kubernetes.io/control-plane": "true", "node-role.kubernetes.io/etcd": "true"}


def servers(*versions: str, roles: tuple[str, ...] = tuple(ROLES)) -> list[Node]:
    """A server of each version, with roles as k3s labels them."""
    labels = {role: ROLES[role] for role in roles}
    return [node(f"srv-{index}", kubelet=version, labels=labels) for index, version in enumerate(versions)]


def found(name: str, source: str, target: str, nodes: list[Node]) -> list[str]:
    """The names of what a check finds."""
    update = replace(context(source, f"{target}.0", f"{target}.0"), cluster=ClusterKind.KUBERNETES)
    return [each.name for each in run_check(BY_NAME[name], snapshot(*nodes), update).findings]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(("v1.34.2+k3s1", "v1.34.2+k3s1", "v1.33.5+k3s1"), ["ControlPlaneSkew-k3s"], id="one behind"),
        pytest.param(("v1.34.2+k3s1", "v1.34.1+k3s1", "v1.34.2+k3s1"), [], id="of one minor version"),
        pytest.param(("v1.34.2", "v1.34.2", "v1.33.5"), [], id="kubelets of another distribution"),
    ],
)
def test_servers_of_one_minor_version(versions: tuple[str, ...], expected: list[str]) -> None:
    """The version skew policy of kube-apiserver: with one of 1.35, one of 1.33 is two minor versions older."""
    assert found("ControlPlaneSkew", "1.34.2", "1.35", servers(*versions)) == expected


def test_an_agent_that_is_older_than_the_servers() -> None:
    """An agent runs no API server."""
    agents = servers("v1.33.5+k3s1", roles=())
    assert found("ControlPlaneSkew", "1.34.2", "1.35", [*servers("v1.34.2+k3s1"), *agents]) == []


@pytest.mark.parametrize(
    ("versions", "roles", "target", "expected"),
    [
        pytest.param(("v1.33.7+k3s1",) * 3, tuple(ROLES), "1.34", ["EtcdVersion"], id="before 3.5.26"),
        pytest.param(("v1.33.7+k3s3",) * 3, tuple(ROLES), "1.34", [], id="the first with 3.5.26"),
        pytest.param(("v1.33.10+k3s1",) * 3, tuple(ROLES), "1.35", [], id="a later one"),
        pytest.param(("v1.33.7+k3s1",), tuple(ROLES), "1.34", [], id="an only member"),
        pytest.param(("v1.33.7+k3s1",) * 3, tuple(ROLES)[:1], "1.34", [], id="another datastore"),
        pytest.param(("v1.32.4+k3s1",) * 3, tuple(ROLES), "1.33", [], id="etcd 3.5 stays"),
    ],
)
def test_etcd_of_k3s(versions: tuple[str, ...], roles: tuple[str, ...], target: str, expected: list[str]) -> None:
    """k3s-io/k3s#13493 brought 3.5.26 to 1.33, and k3s#13485 has what happens without it."""
    source = versions[0].partition("+")[0].removeprefix("v")
    assert found("EtcdVersion", source, target, servers(*versions, roles=roles)) == expected
