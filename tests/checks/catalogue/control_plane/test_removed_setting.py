"""Finds settings that the target does not accept: from kubeadm, k3s, RKE2 and static pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.checks.catalogue.rows import FORBIDDEN
from tests.factories import config_map_json, context, node_json

from runup.checks.catalogue.control_plane.removed_setting import CHECK, NAME
from runup.checks.catalogue.control_plane.shared.given_settings import CONFIG_MAPS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.snapshots import snapshot_of

JSON = dict[str, Any]
UNKNOWN = f"{NAME}Unknown"


def static_pod(component: str, *words: str, name: str = "cp-0", **labels: str) -> JSON:
    """A mirror of a static pod, as kubeadm, Talos and RKE2 label it."""
    own = {"component": component, "tier": "control-plane", **labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{component}-{name}", "namespace": "kube-system", "labels": own},
        "spec": {"containers": [{"name": component, "command": [component, *words]}]},
    }


def of_kubeadm(configuration: str) -> tuple[JSON, JSON]:
    """A control plane of kubeadm: its static pods, and what it writes them from."""
    return static_pod("kube-apiserver"), config_map_json(
        "kubeadm-config", "kube-system", ClusterConfiguration=configuration
    )


def asked(*objects: JSON, to: str = "1.37.2", without: bool = False) -> CheckOutcome:
    """Returns the findings for an update to that version; with `without`, ConfigMaps cannot be read."""
    update = with_fields(context("1.33.1", to, to), cluster=ClusterKind.KUBERNETES)
    snapshot = snapshot_of(CHECK.reads, objects)
    if without:
        left = {read: found for read, found in snapshot.objects.items() if read != CONFIG_MAPS}
        snapshot = replace(snapshot, objects=left, unreadable={CONFIG_MAPS: FORBIDDEN})
    return run_check(CHECK, snapshot, update)


def messages(outcome: CheckOutcome) -> list[str]:
    return [found.message for found in outcome.findings]


V1BETA3 = "apiServer: {extraArgs: {%s}}"
CONTROLLERS = "controllerManager: {extraArgs: {controllers: '%s'}}"
V1BETA4 = "apiServer: {extraArgs: [{name: %s, value: '%s'}]}"


@pytest.mark.parametrize(
    ("configuration", "target", "why"),
    [
        pytest.param(
            V1BETA4 % ("feature-gates", "SidecarContainers=true"),
            "1.37.2",
            "Kubernetes 1.37 does not have it any more",
            id="a gate that goes, in a list of arguments",
        ),
        pytest.param(
            V1BETA3 % "feature-gates: 'ContextualLogging=true, SidecarContainers=true'",
            "1.37.2",
            "Kubernetes 1.37 does not have it any more",
            id="one of two gates, in a map of arguments",
        ),
        pytest.param(
            V1BETA4 % ("feature-gates", "SidecarContainers=true"), "1.36.0", "", id="a gate that has its locked value"
        ),
        pytest.param(
            V1BETA4 % ("feature-gates", "SidecarContainers=False"),
            "1.36.0",
            "Kubernetes 1.33 locks it to true",
            id="a gate against its lock",
        ),
        pytest.param(
            V1BETA4 % ("feature-gates", "GitRepoVolumeDriver=true"),
            "1.36.0",
            "Kubernetes 1.36 locks it to false",
            id="a gate that is locked to false",
        ),
        pytest.param(
            V1BETA4 % ("feature-gates", "GitRepoVolumeDriver=true"), "1.35.0", "", id="a gate that is locked later"
        ),
        pytest.param(
            V1BETA4 % ("cloud-provider", "aws"), "1.34.0", "Kubernetes 1.33 does not have it any more", id="a flag"
        ),
        pytest.param(V1BETA4 % ("cloud_provider", "aws"), "1.34.0", "Kubernetes 1.33", id="a flag with an underscore"),
        pytest.param(V1BETA4 % ("audit-log-maxage", "7"), "1.37.2", "", id="a flag that stays"),
        pytest.param(
            V1BETA4 % ("enable-admission-plugins", "NodeRestriction,PodSecurityPolicy"),
            "1.34.0",
            "Kubernetes 1.25 does not have it any more",
            id="a plug-in",
        ),
        pytest.param(
            "apiServer: {extraArgs: [{name: enable-admission-plugins, value: PodSecurityPolicy}, "
            "{name: enable-admission-plugins, value: NodeRestriction}]}",
            "1.34.0",
            "Kubernetes 1.25 does not have it any more",
            id="a flag that is given twice",
        ),
        pytest.param(
            "controllerManager: {extraArgs: [{name: pod-eviction-timeout, value: 1m}]}",
            "1.34.0",
            "Kubernetes 1.27 does not have it any more",
            id="a flag of another component",
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: enable-v2, value: 'true'}]}}",
            "1.34.0",
            "the etcd of kubeadm 1.34 does not have it any more",
            id="a flag of etcd",
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: enable-v2, value: 'true'}]}}", "1.33.5", "", id="etcd 3.5 has it"
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: feature-gates, value: SidecarContainers=true}]}}",
            "1.37.2",
            "",
            id="etcd's gates are its own",
        ),
        pytest.param(
            V1BETA3 % "log-dir: /var/log, v: '4'",
            "1.26.0",
            "Kubernetes 1.26 does not have it any more",
            id="klog's flag",
        ),
        pytest.param(V1BETA3 % "v: '4', vmodule: 'a=5'", "1.26.0", "", id="the flags of klog that stay"),
        pytest.param(
            "controllerManager: {extraArgs: {cloud-provider: azure}}",
            "1.31.0",
            "is set to azure (kube-system/kubeadm-config, controllerManager.extraArgs of ClusterConfiguration): "
            "Kubernetes 1.30 does not have this cloud provider any more",
            id="a cloud provider that is gone",
        ),
        pytest.param(
            "controllerManager: {extraArgs: {cloud-provider: gce}}",
            "1.29.0",
            "Kubernetes 1.29 does not start with a built-in cloud provider by default",
            id="a cloud provider that is off by default",
        ),
        pytest.param(
            "controllerManager: {extraArgs: {cloud-provider: gce, feature-gates: DisableCloudProviders=false}}",
            "1.30.0",
            "",
            id="a cloud provider that a gate keeps",
        ),
        pytest.param(
            "controllerManager: {extraArgs: {flex-volume-plugin-dir: /plugins}}",
            "1.36.0",
            "Kubernetes 1.36 does not mount the folder of flex volumes into the static Pod of kubeadm any more",
            id="a folder that kubeadm does not mount",
        ),
        pytest.param(
            "controllerManager: {extraArgs: {flex-volume-plugin-dir: /plugins}}",
            "1.35.0",
            "",
            id="that it still mounts",
        ),
        pytest.param(
            CONTROLLERS % "*,-cloud-node-lifecycle",
            "1.37.0",
            "Controller cloud-node-lifecycle of kube-controller-manager",
            id="a controller that is gone",
        ),
        pytest.param(CONTROLLERS % "*,-ttl,bootstrapsigner", "1.37.0", "", id="controllers by their old names"),
        pytest.param(CONTROLLERS % "*,-bootstrap-signer-controller", "1.28.0", "", id="a controller by its new name"),
        pytest.param(
            CONTROLLERS % "-bootstrap-signer-controller",
            "1.27.0",
            "Kubernetes 1.28 is the first to have it",
            id="a controller that came after the target",
        ),
        pytest.param("controllerManager: {extraArgs: {cloud-provider: external}}", "1.31.0", "", id="an external one"),
        pytest.param(
            "apiServer: {extraArgs: {cloud-provider: vsphere}}",
            "1.29.0",
            "Kubernetes 1.29 does not start with a built-in cloud provider by default",
            id="a cloud provider of kube-apiserver",
        ),
        pytest.param(
            "apiServer: {extraArgs: {cloud-provider: vsphere, feature-gates: DisableCloudProviders=false}}",
            "1.30.0",
            "",
            id="a cloud provider of kube-apiserver that a gate keeps",
        ),
        pytest.param(
            "apiServer: {extraArgs: {cloud-provider: vsphere}}",
            "1.31.0",
            "Kubernetes 1.31 does not start with a built-in cloud provider",
            id="a cloud provider of kube-apiserver, 1.31",
        ),
        pytest.param(
            "apiServer: {extraArgs: {cloud-provider: aws}}",
            "1.29.0",
            "Kubernetes 1.29 does not know this cloud provider",
            id="a cloud provider that kube-apiserver does not know",
        ),
        pytest.param(
            "apiServer: {extraArgs: {cloud-provider: aws}}", "1.28.0", "", id="a provider that nobody verifies"
        ),
        pytest.param("apiServer: {extraArgs: {cloud-provider: external}}", "1.32.0", "", id="kube-apiserver, external"),
        pytest.param(
            V1BETA4 % ("feature-gates", "AllAlpha=true"),
            "1.36.0",
            "enables its new alpha features with it",
            id="all alpha features",
        ),
        pytest.param(V1BETA4 % ("feature-gates", "AllAlpha=false"), "1.36.0", "", id="no alpha feature"),
        pytest.param(V1BETA4 % ("feature-gates", "AllBeta=true"), "1.36.0", "", id="all beta features"),
        pytest.param(
            V1BETA4 % ("feature-gates", "SeparateTaintEvictionController=true"),
            "1.38.0",
            "Kubernetes 1.38 (planned) does not have it any more",
            id="a gate that a prerelease does not have",
        ),
        pytest.param(
            V1BETA4 % ("feature-gates", "GangScheduling=true"),
            "1.34.0",
            "Kubernetes 1.35 is the first to have it",
            id="a gate that came after the target",
        ),
    ],
)
def test_what_kubeadm_was_told(configuration: str, target: str, why: str) -> None:
    """It writes the new static pods from its ConfigMap."""
    outcome = asked(*of_kubeadm(configuration), to=target)
    assert [found.name for found in outcome.findings] == ([NAME] if why else [])
    for found in outcome.findings:
        assert why in found.message
        assert "kubectl edit configmap -n kube-system kubeadm-config" in found.remediation
        assert [(about.kind, about.name) for about in found.resources] == [("ConfigMap", "kubeadm-config")]


@pytest.mark.parametrize(
    ("name", "key", "text", "target", "expected"),
    [
        pytest.param(
            "kubelet-config", "kubelet", "eventRecordQPS: 0", "1.37.0", ["warning"], id="another meaning of 0"
        ),
        pytest.param("kubelet-config", "kubelet", "eventRecordQPS: 0", "1.36.0", [], id="the old meaning of 0"),
        pytest.param("kubelet-config", "kubelet", "eventRecordQPS: 50", "1.37.0", [], id="another number"),
        pytest.param("kube-proxy", "config.conf", "mode: userspace", "1.26.0", ["critical"], id="a mode that is gone"),
        pytest.param("kube-proxy", "config.conf", "mode: userspace", "1.25.0", [], id="a mode that stays"),
        pytest.param("kube-proxy", "config.conf", "mode: ipvs", "1.35.0", ["info"], id="a mode that is deprecated"),
        pytest.param("kube-proxy", "config.conf", "mode: ipvs", "1.34.0", [], id="a mode before it is deprecated"),
        pytest.param("kube-proxy", "config.conf", "mode: nftables", "1.37.0", [], id="another mode"),
        pytest.param("kube-proxy", "config.conf", "mode: iptables", "1.26.0", [], id="another mode"),
    ],
)
def test_values_of_configuration_files(name: str, key: str, text: str, target: str, expected: list[str]) -> None:
    """CHANGELOG-1.37, #117119; CHANGELOG-1.26, #112133."""
    outcome = asked(static_pod("kube-apiserver"), config_map_json(name, "kube-system", **{key: text}), to=target)
    assert [found.severity for found in outcome.findings] == expected


def test_what_kubeadm_itself_writes_is_its_own_business() -> None:
    """The etcd of 1.33 has flags in its static pod that kubeadm of 1.37 does not write any more."""
    etcd = static_pod("etcd", "--experimental-initial-corrupt-check=true")
    assert asked(*of_kubeadm("apiServer: {}"), etcd).findings == ()


@pytest.mark.parametrize(
    ("name", "key", "remedy"),
    [
        ("kubelet-config", "kubelet", "kubeadm upgrade node phase kubelet-config"),
        ("kube-proxy", "config.conf", "kubectl rollout restart daemonset -n kube-system kube-proxy"),
    ],
)
def test_gates_of_the_nodes_components(name: str, key: str, remedy: str) -> None:
    """Kubelets and kube-proxy have theirs from ConfigMaps."""
    text = "featureGates: {SidecarContainers: true, NodeSwap: false}"
    outcome = asked(*of_kubeadm("{}"), config_map_json(name, "kube-system", **{key: text}))
    shown = sorted(messages(outcome))
    assert [each.partition(":")[2] for each in shown] == [
        " Kubernetes 1.34 locks it to true.",
        " Kubernetes 1.37 does not have it any more.",
    ]
    assert [remedy in found.remediation for found in outcome.findings] == [True, True]


@pytest.mark.parametrize("text", ["apiServer: [", "- a list", ""])
def test_a_config_map_that_tells_nothing_is_unknown(text: str) -> None:
    """And what the others say is reported all the same."""
    gate = config_map_json("kubelet-config", "kube-system", kubelet="featureGates: {SidecarContainers: true}")
    found = {each.name: each for each in asked(*of_kubeadm(text), gate).findings}
    assert set(found) == {NAME, UNKNOWN}
    assert "kubeadm-config" in found[UNKNOWN].message


def test_without_config_maps_static_pods_tell() -> None:
    """Who wrote them is not known then, which is said."""
    pods = [static_pod("kube-apiserver", "--feature-gates=SidecarContainers=true", name=f"cp-{each}") for each in "01"]
    outcome = asked(*pods, without=True)
    assert [found.name for found in outcome.findings] == [NAME, UNKNOWN]
    assert [about.name for about in outcome.findings[0].resources] == ["kube-apiserver-cp-0", "kube-apiserver-cp-1"]


def test_static_pods_that_nobody_known_writes() -> None:
    """Talos has its arguments in machine configurations; a flag and its value may be separate."""
    pod = static_pod("kube-controller-manager", "--pod-eviction-timeout", "1m", "--v=2")
    outcome = asked(pod, node_json(info={"osImage": "Talos (v1.11.1)"}), to="1.34.0")
    assert [found.name for found in outcome.findings] == [NAME]
    assert "talosctl --nodes NODE edit mc" in outcome.findings[0].remediation
    (made_by_hand,) = asked(pod, node_json(), to="1.34.0").findings
    assert "/etc/kubernetes/manifests" in made_by_hand.remediation


@pytest.mark.parametrize(
    ("annotation", "file"),
    [("k3s.io/node-args", "/etc/rancher/k3s/config.yaml"), ("rke2.io/node-args", "/etc/rancher/rke2/config.yaml")],
)
def test_arguments_of_k3s_and_rke2(annotation: str, file: str) -> None:
    """Each node has its server's or agent's in an annotation; the static pods are theirs."""
    arguments = '["server","--kube-apiserver-arg","feature-gates=SidecarContainers=true","--disable","traefik"]'
    defaults = static_pod("kube-apiserver", "--cloud-provider=external")
    outcome = asked(
        node_json("cp-0", annotations={annotation: arguments}),
        node_json("agent", annotations={annotation: '["agent"]'}),
        defaults,
    )
    (found,) = outcome.findings
    assert found.message == (
        f"Feature gate SidecarContainers of kube-apiserver is set to true (cp-0, annotation {annotation}): "
        "Kubernetes 1.37 does not have it any more."
    )
    assert file in found.remediation


def test_arguments_of_a_cloud_controller_manager() -> None:
    """k3s starts a component with different arguments (CHANGELOG-1.26, #112120)."""
    arguments = '["server","--kube-cloud-controller-manager-arg=logtostderr=false"]'
    (found,) = asked(node_json("cp-0", annotations={"k3s.io/node-args": arguments}), to="1.26.0").findings
    assert "Flag logtostderr of cloud-controller-manager" in found.message


@pytest.mark.parametrize("arguments", ["no JSON", '{"a": 1}', "[1]", '["\ud800"]'], ids=ascii)
def test_an_annotation_that_is_no_list(arguments: str) -> None:
    """The result is Unknown, with the annotation as the reason."""
    (found,) = asked(node_json("cp-0", annotations={"k3s.io/node-args": arguments})).findings
    assert found.name == UNKNOWN
    assert "annotation k3s.io/node-args of Node cp-0 is no list of words" in found.message


def test_services_show_no_control_plane() -> None:
    """Nothing is asked of ConfigMaps there."""
    assert asked(node_json(), without=True).result == "Clear"


def test_beyond_the_tables() -> None:
    """All settings are Unknown, in one finding."""
    configuration = V1BETA4 % ("audit-log-maxage", "7")
    (found,) = asked(*of_kubeadm(configuration), to="1.39.0").findings
    assert found.name == UNKNOWN
    assert "audit-log-maxage of kube-apiserver" in found.message
    assert "ends with Kubernetes 1.37" in found.message
