"""Dumps of clusters without a ClusterVersion: which Kubernetes they run, and what shows that they are none of these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.factories import node_json

from runup.dump import load
from runup.dump.dump_files import BadDump

JSON = dict[str, Any]


def api_server(image: str) -> JSON:
    """The static pod of a kube-apiserver."""
    metadata = {"name": "kube-apiserver-cp", "namespace": "kube-system"}
    spec = {"containers": [{"name": "kube-apiserver", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def system(uid: str) -> JSON:
    """The namespace by which a cluster is known."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}


def answer(*objects: JSON) -> JSON:
    """A list as the API server answers it."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": list(objects)}


MAP: JSON = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
OLD, NEW = node_json("a", kubelet="v1.32.9"), node_json("b", kubelet="v1.33.1-eks-113cf36")
VERSION = {"clientVersion": {"gitVersion": "v1.36.0"}, "serverVersion": {"gitVersion": "v1.34.2+k3s1", "minor": "34"}}
DUMPS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "kubectl version beside lists": ({"nodes.json": answer(OLD), "version.json": VERSION}, "v1.34.2+k3s1", False),
    "sonobuoy": (
        {
            "resources/cluster/core_v1_nodes.json": answer(OLD),
            "serverversion.json": {"major": "1", "minor": "34", "gitVersion": "v1.34.3"},
        },
        "v1.34.3",
        False,
    ),
    "troubleshoot": (
        {
            "cluster-resources/nodes.json": answer(OLD),
            "cluster-info/cluster_version.json": {"info": {"gitVersion": "v1.33.7"}, "string": "v1.33.7"},
        },
        "v1.33.7",
        False,
    ),
    "runup dump collect": (
        {"nodes.json": answer(OLD), "runup-dump.json": {"kubernetesVersion": "v1.34.2", "kinds": []}},
        "v1.34.2",
        False,
    ),
    "kubeadm's API server": (
        {"nodes.json": answer(OLD), "pods.json": answer(api_server("registry.k8s.io/kube-apiserver:v1.34.1"))},
        "1.34.1",
        False,
    ),
    "kind's, of an architecture": (
        {"nodes.json": answer(OLD), "p.json": answer(api_server("registry.k8s.io/kube-apiserver-amd64:v1.34.0"))},
        "1.34.0",
        False,
    ),
    "the newest kubelet, as a guess": ({"nodes.json": answer(NEW, OLD)}, "v1.33.1-eks-113cf36", True),
    "kubectl cluster-info dump": (
        {"nodes.json": answer(NEW), "kube-system/pods.json": answer(), "kube-system/replication-controllers.json": {}},
        "v1.33.1-eks-113cf36",
        True,
    ),
    "namespaces alone": ({"namespaces.json": answer(system("1"))}, "", False),
}


def write(folder: Path, files: dict[str, Any]) -> Path:
    """A dump of these files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.mark.parametrize("row", DUMPS)
def test_which_kubernetes_it_runs(row: str, tmp_path: Path) -> None:
    """The server's own word first; the newest kubelet is the least that it can be, and a note says so."""
    files, version, noted = DUMPS[row]
    dump = load.read(write(tmp_path / "d", files), any_kubernetes=True)
    assert (dump.has_cluster_version, dump.kubernetes.version) == (False, version)
    assert [("newest kubelet" in note, "--from" in note) for note in dump.kubernetes.notes] == [(True, True)] * noted
    assert not any("version.json" in problem for problem in dump.problems)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"a.json": MAP}, "nor nodes", id="anything"),
        pytest.param(
            {
                "nodes.json": answer(
                    node_json("a", kubelet="v1.30.4", info={"osImage": "Red Hat Enterprise Linux CoreOS 417.94.2"})
                )
            },
            "it is one of OpenShift",
            id="a node of OpenShift's system",
        ),
        pytest.param(
            {
                "nodes.json": answer(OLD),
                "co.json": {
                    "apiVersion": "config.openshift.io/v1",
                    "kind": "ClusterOperator",
                    "metadata": {"name": "dns"},
                },
            },
            r"it is one of OpenShift \(ClusterOperator dns\)",
            id="a ClusterOperator",
        ),
        pytest.param(
            {
                "nodes.json": answer(OLD),
                "cluster-scoped-resources/config.openshift.io/clusterversions.yaml": "{",
            },
            "; a file in which it may be cannot be read",
            id="a file of ClusterVersion that is broken",
        ),
    ],
)
def test_what_is_not_known_to_be_such_a_cluster(files: dict[str, Any], words: str, tmp_path: Path) -> None:
    """An OpenShift whose ClusterVersion was not collected is not evaluated as something else."""
    with pytest.raises(BadDump, match=words) as raised:
        load.read(write(tmp_path / "d", files), any_kubernetes=True)
    assert raised.value.reason == "NoClusterVersion"


def test_readers_that_need_a_clusterversion_are_refused(tmp_path: Path) -> None:
    """The sandbox's import, and the status of an update."""
    with pytest.raises(BadDump, match="has no ClusterVersion"):
        load.read(write(tmp_path / "d", {"nodes.json": answer(OLD)}))


def test_several_clusters_are_told_by_their_namespace(tmp_path: Path) -> None:
    """Two clusters have namespaces kube-system of different uids."""
    files = {f"{each}/{name}.json": answer(obj) for each in "ab" for name, obj in (("ns", system(each)), ("n", OLD))}
    with pytest.raises(BadDump, match="holds 2 clusters"):
        load.read(write(tmp_path / "d", files), any_kubernetes=True)
