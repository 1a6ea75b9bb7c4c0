"""A feature gate that keeps the old behaviour lifts a finding where every instance of its component has it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME, JSON, findings
from tests.factories import config_map_json, context

from kubekit.lang import yaml as kyaml
from runup.checks.decide.cluster_kinds import ClusterKind

EXEC, SE_LINUX = "ExecNeedsCreate", "SELinuxMountConflict"
OFF = "AuthorizePodWebsocketUpgradeCreatePermission=false"
ARGUMENTS = "apiServer: {extraArgs: [{name: feature-gates, value: '%s'}]}"


def static_pod(node: str, *flags: str) -> JSON:
    """A static kube-apiserver."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"kube-apiserver-{node}", "namespace": "kube-system", "labels": {"tier": "control-plane"}},
        "spec": {"containers": [{"name": "kube-apiserver", "command": ["kube-apiserver", *flags]}]},
    }


@pytest.mark.parametrize(
    ("name", "target", "given", "applies"),
    [
        pytest.param(EXEC, "1.35.0", [], True, id="exec: nothing is set"),
        pytest.param(
            EXEC,
            "1.35.0",
            [static_pod("a"), config_map_json("kubeadm-config", "kube-system", ClusterConfiguration=ARGUMENTS % OFF)],
            False,
            id="exec: by kubeadm",
        ),
        pytest.param(
            EXEC,
            "1.35.0",
            [static_pod(each, f"--feature-gates={OFF}") for each in "ab"],
            False,
            id="exec: on each server",
        ),
        pytest.param(
            EXEC, "1.35.0", [static_pod("a", f"--feature-gates={OFF}"), static_pod("b")], True, id="exec: on one server"
        ),
        pytest.param(
            EXEC, "1.38.0", [static_pod("a", f"--feature-gates={OFF}")], True, id="exec: where the gate is locked"
        ),
        pytest.param(
            SE_LINUX,
            "1.37.0",
            [config_map_json("kubelet-config", "kube-system", kubelet="featureGates: {SELinuxMount: false}")],
            False,
            id="SELinux: off",
        ),
        pytest.param(
            SE_LINUX,
            "1.37.0",
            [config_map_json("kubelet-config", "kube-system", kubelet="featureGates: {SELinuxMount: true}")],
            True,
            id="SELinux: on",
        ),
    ],
)
def test_heeds_the_gate(name: str, target: str, given: list[JSON], applies: bool) -> None:
    """kube_features.go: AuthorizePodWebsocketUpgradeCreatePermission is locked in 1.38, SELinuxMount is not in 1.37."""
    example: list[Any] = [each for each in kyaml.load_all(BY_NAME[name].example) if each and "kind" in each]
    update = replace(context("1.34.2", target, target), cluster=ClusterKind.KUBERNETES)
    assert bool(findings(name, *example, *given, to=update)) is applies
