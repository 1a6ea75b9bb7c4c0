"""Volumes that the target cannot mount: in which objects they are found, and which plug-ins count when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import context

from runup.checks.decide.cluster_kinds import ClusterKind

NAME = "RemovedVolumePlugin"


def template(plugin: str) -> JSON:
    """A pod template with a volume of a plug-in."""
    return {"spec": {"volumes": [{"name": "v", plugin: {}}, {"name": "w", "emptyDir": {}}]}}


def workload(kind: str, plugin: str = "rbd", **spec: object) -> JSON:
    """A workload with such a template."""
    meta = {"name": "web", "namespace": "shop"}
    if kind == "Job":
        return {
            "apiVersion": "batch/v1",
            "kind": kind,
            "metadata": meta,
            "spec": {"template": template(plugin), **spec},
        }
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": template(plugin)}}, **spec}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": meta, "spec": spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"template": template(plugin), **spec}}


def pod(owner: str = "", plugin: str = "rbd", phase: str = "Running") -> JSON:
    """A pod with such a volume, made by a controller if one is given."""
    owners = [{"kind": owner, "name": "web", "controller": True}] if owner else []
    meta = {"name": "web-1", "namespace": "shop", "ownerReferences": owners}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**template(plugin)["spec"], "nodeName": "n"},
        "status": {"phase": phase},
    }


def update(source: str, target: str) -> object:
    """An update of a cluster of Kubernetes alone."""
    return replace(context(source, target, target), cluster=ClusterKind.KUBERNETES)


@pytest.mark.parametrize(
    ("obj", "is_told"),
    [
        pytest.param(workload("Deployment"), True, id="a Deployment"),
        pytest.param(workload("Deployment", replicas=0), False, id="a Deployment without pods"),
        pytest.param(workload("StatefulSet"), True, id="a StatefulSet"),
        pytest.param(workload("DaemonSet"), True, id="a DaemonSet"),
        pytest.param(workload("CronJob"), True, id="a CronJob"),
        pytest.param(workload("CronJob", suspend=True), False, id="a CronJob that is suspended"),
        pytest.param(pod(), True, id="a pod without a controller"),
        pytest.param(pod("Job"), True, id="a pod of a Job"),
        pytest.param(pod("ReplicaSet"), True, id="a pod of a ReplicaSet without a Deployment"),
        pytest.param(pod("ReplicationController"), True, id="a pod of a ReplicationController"),
        pytest.param(workload("Job"), True, id="a Job without pods"),
        pytest.param(workload("Job", suspend=True), False, id="a Job that is suspended"),
        pytest.param(
            workload("Job") | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            False,
            id="a Job that has ended",
        ),
        pytest.param(pod(phase="Succeeded"), False, id="a pod that has ended"),
        pytest.param(workload("DaemonSet", "configMap"), False, id="a volume that stays"),
    ],
)
def test_where_a_volume_is_found(obj: JSON, is_told: bool) -> None:
    """In whatever makes pods, and in pods that nothing makes."""
    shown = findings(NAME, obj, to=update("1.30.9", "1.31.0"))
    assert [name for name, *_ in shown] == [NAME] * is_told


@pytest.mark.parametrize("owner", ["web-6d94", "web"])
def test_names_a_workload_and_not_its_pods(owner: str) -> None:
    """The Deployment controller names its ReplicaSets NAME-HASH; a Job has its pods itself."""
    made_by = "ReplicaSet" if owner != "web" else "Job"
    made = pod(made_by)
    made["metadata"]["ownerReferences"][0]["name"] = owner
    shown = findings(NAME, made, workload("Deployment" if owner != "web" else "Job"), to=update("1.30.9", "1.31.0"))
    assert [name for name, *_ in shown] == [NAME]


@pytest.mark.parametrize(
    ("source", "target", "is_told"),
    [
        ("1.31.1", "1.32.0", False),
        ("1.32.1", "1.33.0", True),
        ("1.33.1", "1.34.0", False),
        ("1.35.1", "1.36.0", True),
        ("1.36.1", "1.37.0", False),
        ("1.31.1", "1.36.0", True),
    ],
)
def test_when_a_repository_is_no_volume(source: str, target: str, is_told: bool) -> None:
    """kube_features.go: GitRepoVolumeDriver is off from 1.33, and locked in 1.36."""
    shown = findings(NAME, workload("Deployment", "gitRepo"), to=update(source, target))
    assert [name for name, *_ in shown] == [NAME] * is_told


def csi_node(*drivers: str) -> JSON:
    """The drivers of a node."""
    spec = {"drivers": [{"name": driver, "nodeID": "n", "topologyKeys": []} for driver in drivers]}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"}, "spec": spec}


def volume(plugin: str) -> JSON:
    """A volume that a claim has."""
    status = {"phase": "Bound"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {plugin: {}},
        "status": status,
    }


@pytest.mark.parametrize(
    ("plugin", "drivers", "target", "is_told"),
    [
        pytest.param("awsElasticBlockStore", ("other",), "1.34.0", True, id="no driver"),
        pytest.param("awsElasticBlockStore", ("ebs.csi.aws.com",), "1.34.0", False, id="its driver"),
        pytest.param("awsElasticBlockStore", None, "1.34.0", False, id="no node has a CSINode"),
        pytest.param("vsphereVolume", (), "1.24.0", False, id="before the plug-in is replaced"),
        pytest.param("vsphereVolume", (), "1.25.0", True, id="when the plug-in is replaced"),
        pytest.param("portworxVolume", (), "1.31.0", True, id="Portworx"),
        pytest.param("nfs", (), "1.34.0", False, id="a plug-in that stays"),
    ],
)
def test_a_plugin_that_a_driver_replaces(
    plugin: str, drivers: tuple[str, ...] | None, target: str, is_told: bool
) -> None:
    """Its volumes need the driver on the nodes (csi-translation-lib, plugins)."""
    nodes = [] if drivers is None else [csi_node(*drivers)]
    source = f"1.{int(target.split('.')[1]) - 1}.1"
    shown = findings(NAME, volume(plugin), *nodes, to=update(source, target))
    assert [name for name, *_ in shown] == [NAME] * is_told


def kubelet_config(gate: str) -> JSON:
    """kubeadm's ConfigMap with one gate of all kubelets."""
    config = f"featureGates: {{{gate}}}"
    meta = {"name": "kubelet-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kubelet": config}}


def k3s_node(name: str, arguments: str) -> JSON:
    """A node of k3s with the arguments of its service."""
    meta = {"name": name, "annotations": {"k3s.io/node-args": arguments}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


ON = '["agent","--kubelet-arg","feature-gates=GitRepoVolumeDriver=true"]'


@pytest.mark.parametrize(
    ("setters", "source", "target", "is_told"),
    [
        pytest.param([kubelet_config("GitRepoVolumeDriver: true")], "1.32.1", "1.33.0", False, id="on, 1.33"),
        pytest.param([kubelet_config("GitRepoVolumeDriver: true")], "1.32.1", "1.35.0", False, id="on, 1.35"),
        pytest.param([kubelet_config("GitRepoVolumeDriver: true")], "1.35.1", "1.36.0", True, id="on, locked by 1.36"),
        pytest.param([kubelet_config("GitRepoVolumeDriver: false")], "1.32.1", "1.33.0", True, id="off"),
        pytest.param([kubelet_config("AllBeta: true")], "1.32.1", "1.33.0", True, id="another gate"),
        pytest.param([k3s_node("a", ON), k3s_node("b", ON)], "1.32.1", "1.33.0", False, id="on each node"),
        pytest.param([k3s_node("a", ON), k3s_node("b", "[]")], "1.32.1", "1.33.0", True, id="on one node"),
    ],
)
def test_heeds_the_gate_that_keeps_repositories(setters: list[JSON], source: str, target: str, is_told: bool) -> None:
    """pkg/volume/git_repo: the kubelet mounts such a volume while its gate GitRepoVolumeDriver is on."""
    shown = findings(NAME, workload("Deployment", "gitRepo"), *setters, to=update(source, target))
    assert [name for name, *_ in shown] == [NAME] * is_told


@pytest.mark.parametrize(
    ("gate", "source", "target", "is_told"),
    [
        pytest.param("CSIMigrationvSphere: false", "1.24.9", "1.25.0", False, id="off while it may be"),
        pytest.param("CSIMigrationvSphere: false", "1.26.9", "1.27.0", True, id="off once it is locked"),
        pytest.param("CSIMigrationAWS: false", "1.24.9", "1.25.0", True, id="of another plug-in"),
    ],
)
def test_heeds_the_gate_that_keeps_a_plugin(gate: str, source: str, target: str, is_told: bool) -> None:
    """CSIMigrationvSphere of v1.25.16 is not locked; that of v1.27.16 is (pkg/features/kube_features.go)."""
    objects = (volume("vsphereVolume"), csi_node("other"), kubelet_config(gate))
    shown = findings(NAME, *objects, to=update(source, target))
    assert [name for name, *_ in shown] == [NAME] * is_told


@pytest.mark.parametrize(
    ("provisioner", "target", "is_told"),
    [
        pytest.param("kubernetes.io/rbd", "1.31.0", True, id="of a removed plug-in"),
        pytest.param("kubernetes.io/rbd", "1.30.0", False, id="before the plug-in is removed"),
        pytest.param("kubernetes.io/glusterfs", "1.26.0", True, id="of glusterfs"),
        pytest.param("kubernetes.io/aws-ebs", "1.30.0", True, id="without the driver that takes over"),
        pytest.param("ebs.csi.aws.com", "1.30.0", False, id="of a driver"),
        pytest.param("kubernetes.io/no-provisioner", "1.31.0", False, id="of nobody"),
        pytest.param("ceph.com/rbd", "1.31.0", False, id="of a program of another name"),
    ],
)
def test_a_class_whose_provisioner_goes(provisioner: str, target: str, is_told: bool) -> None:
    """ProvisionerName of the plug-ins in pkg/volume of v1.22.17; claims of such a class stay Pending."""
    meta = {"name": "fast"}
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": provisioner,
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"storageClassName": "fast"},
    }
    source = f"1.{int(target.split('.')[1]) - 1}.1"
    shown = findings(NAME, storage_class, claim, csi_node("other"), to=update(source, target))
    assert [(name, severity) for name, severity, *_ in shown] == [(f"{NAME}-StorageClass", "warning")] * is_told


@pytest.mark.parametrize(
    ("annotations", "is_told"),
    [
        pytest.param({}, False, id="that no claim names"),
        pytest.param({"storageclass.kubernetes.io/is-default-class": "true"}, True, id="of claims without a class"),
        pytest.param({"storageclass.beta.kubernetes.io/is-default-class": "true"}, True, id="by the old annotation"),
        pytest.param({"storageclass.kubernetes.io/is-default-class": "false"}, False, id="that is the default no more"),
    ],
)
def test_a_class_without_claims_counts_as_the_default(annotations: dict[str, str], is_told: bool) -> None:
    """Other unused classes are listed by nobody, and change nothing."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": annotations},
        "provisioner": "kubernetes.io/rbd",
    }
    shown = findings(NAME, storage_class, csi_node("other"), to=update("1.30.1", "1.31.0"))
    assert [name for name, *_ in shown] == [f"{NAME}-StorageClass"] * is_told
