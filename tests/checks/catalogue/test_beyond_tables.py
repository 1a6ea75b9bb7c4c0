"""Outside the coverage of a table no check is clear: names, releases and minor versions that no row has."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import config_map_json, context, node_json

from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.manifest_contents import content_findings
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Snapshot
from runup.checks.decide.removal_tables import DATA, document
from runup.checks.decide.snapshots import snapshot_of
from runup.checks.decide.stored_manifests import Manifest, Manifests, file_check

JSON = dict[str, Any]
BY_NAME = {check.name: check for check in CHECKS}
# What lists only what is known to be bad or harmless: whatever else there is cannot be an entry that is missing.
LISTS = frozenset({"kubeadm-nodes", "removed-addon-apis", "withdrawn-images", "read-only-clients"})
BEYOND = 99
ARGUMENTS = "apiServer: {extraArgs: [{name: %s, value: '%s'}]}"


def settings(name: str, value: str) -> tuple[JSON, ...]:
    """A control plane of kubeadm with an argument of kube-apiserver."""
    labels = {"component": "kube-apiserver", "tier": "control-plane"}
    container = {"name": "kube-apiserver", "command": ["kube-apiserver"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-apiserver-cp-0", "namespace": "kube-system", "labels": labels},
        "spec": {"containers": [container]},
    }
    return pod, config_map_json("kubeadm-config", "kube-system", ClusterConfiguration=ARGUMENTS % (name, value))


def on(**info: str) -> tuple[JSON, ...]:
    """A node that reports this."""
    return (node_json(info=info),)


def running(image: str) -> tuple[JSON, ...]:
    """A pod of an add-on."""
    metadata = {"name": "it-0", "namespace": "system"}
    spec = {"nodeName": "worker-0", "containers": [{"name": "it", "image": image}]}
    return ({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}},)


def volume(plugin: str) -> tuple[JSON, ...]:
    """A PersistentVolume of an in-tree plug-in."""
    return ({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {plugin: {}}},)


def webhook(version: str) -> tuple[JSON, ...]:
    """A webhook that is asked about one version of FlowSchemas."""
    rule = {"apiGroups": ["flowcontrol.apiserver.k8s.io"], "apiVersions": [version], "resources": ["flowschemas"]}
    hook = {"name": "it.example.com", "clientConfig": {"url": "https://it"}, "rules": [{"operations": ["*"], **rule}]}
    configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return ({**configuration, "metadata": {"name": "it"}, "webhooks": [hook]}, node_json())


def rules(metric: str) -> tuple[JSON, ...]:
    """A PrometheusRule with an alert on a metric."""
    groups = [{"name": "it", "rules": [{"alert": "It", "expr": f"rate({metric}[5m]) > 1"}]}]
    metadata = {"name": "it", "namespace": "monitoring"}
    api = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule"}
    return ({**api, "metadata": metadata, "spec": {"groups": groups}},)


# By table: the check, its objects, and the target's minor version.
CASES: dict[str, list[tuple[str, tuple[JSON, ...], int]]] = {
    "removed-apis": [
        ("WebhookRemovedVersion", webhook("v1beta9"), BEYOND),
    ],
    "removed-gates": [
        ("RemovedComponentSetting", settings("feature-gates", "NoSuchGate=true"), 36),
        ("RemovedComponentSetting", settings("feature-gates", "ContextualLogging=true"), BEYOND),
    ],
    "locked-gates": [("RemovedComponentSetting", settings("feature-gates", "ContextualLogging=true"), BEYOND)],
    "removed-flags": [
        ("RemovedComponentSetting", settings("no-such-flag", ""), 36),
        ("RemovedComponentSetting", settings("enable-admission-plugins", "NoSuchPlugin"), 36),
        ("RemovedComponentSetting", settings("profiling", "false"), BEYOND),
    ],
    "changed-values": [
        (
            "RemovedComponentSetting",
            (*settings("profiling", "false")[:1], config_map_json("kubelet-config", "kube-system", kubelet="a: 1")),
            BEYOND,
        )
    ],
    "removed-volumes": [("RemovedVolumePlugin", volume("nfs"), BEYOND)],
    "removed-metrics": [("RemovedMetric", rules("apiserver_request_total"), BEYOND)],
    "minimums": [
        ("ContainerRuntimeTooOld", on(containerRuntimeVersion="containerd://2.3.1"), BEYOND),
        ("ContainerRuntimeTooOld", on(containerRuntimeVersion="containerd://Unknown"), 36),
    ],
    "addons": [
        ("AddonIncompatible", running(f"example.com/{row['image'].strip('/')}:{tag}"), 36)
        for row in document("addons")["addons"]
        for tag in (["v99.0.0", "latest"] if "ranges" in row else ["latest"])
    ]
    + [
        ("AddonIncompatible", running("quay.io/jetstack/cert-manager-controller:v1.21.0"), BEYOND),
        ("AddonIncompatible", running("public.ecr.aws/karpenter/controller:1.99.0"), BEYOND),
    ],
    "images": [("NodeImageTooOld", on(osImage="Talos (v99.1.0)"), BEYOND)],
    "cgroups": [
        ("NodeImageTooOld", on(osImage=name), 35)
        for name in (
            "SUSE Linux Enterprise Server 15 SP5",
            "VMware Photon OS/Linux",
            "Flatcar Container Linux by Kinvolk 3510.2.8 (Oklo)",
            "Fedora CoreOS 34.20210529.3.0",
            "Alpine Linux v3.19",
            "",
        )
    ],
}
MANIFESTS = {
    "api-lifecycle": [("batch/v9", "CronJob", 36), ("resource.k8s.io/v1beta1", "DeviceClass", 37 + 2)],
    "removed-config-apis": [("kubeadm.k8s.io/v1beta4", "ClusterConfiguration", BEYOND)],
}


@pytest.mark.parametrize(
    ("name", "objects", "minor"), [pytest.param(*case, id=table) for table, cases in CASES.items() for case in cases]
)
def test_nothing_outside_a_table_is_clear(name: str, objects: tuple[JSON, ...], minor: int) -> None:
    """The check cannot know."""
    update = with_fields(context("1.33.1", f"1.{minor}.0", f"1.{minor}.0"), cluster=ClusterKind.KUBERNETES)
    outcome = run_check(BY_NAME[name], snapshot_of(BY_NAME[name].reads, objects), update)
    assert f"{name}Unknown" in [found.name for found in outcome.findings]


@pytest.mark.parametrize(
    ("api_version", "kind", "minor"),
    [pytest.param(*case, id=table) for table, cases in MANIFESTS.items() for case in cases],
)
def test_no_manifest_outside_a_table_is_clear(api_version: str, kind: str, minor: int) -> None:
    """Nor is one in a file."""
    manifest = Manifest(api_version=api_version, kind=kind, namespace="", name="it", place="it.yaml:1")
    update = with_fields(context("1.33.1", f"1.{minor}.0", f"1.{minor}.0"), cluster=ClusterKind.KUBERNETES)
    assert run_check(file_check(Manifests((manifest,)), content_findings), Snapshot(), update).findings


def test_every_table_has_a_case() -> None:
    """A new table must say what is outside it."""
    assert {file.name.removesuffix(".yaml") for file in DATA.iterdir()} == {
        *(name for name in CASES if name not in ("images", "cgroups")),
        *MANIFESTS,
        *LISTS,
    }
