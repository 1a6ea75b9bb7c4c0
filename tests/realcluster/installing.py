"""What an installer leaves on a cluster before its operator runs, and the operator itself, from its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.realcluster.kube import Kube, metadata
from tests.realcluster.releases import CHANNEL, NAMESPACES, Release, ReleaseWorld, objects_of

from kubekit.kube import calls
from runup.release.control.image_build import IMAGE_REFERENCES_PATH, METADATA_PATH
from runup.release.decide import bootstrap
from runup.sandbox import crds

JSON = dict[str, Any]
GATES = ("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks", "UpdateStatus")
CLUSTER_ID = "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad"
CONFIG = "config.openshift.io/v1"
# OpenShift's own, which its operators put there; a plain Kubernetes refuses pods that name it.
_PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "openshift-user-critical"},
    "value": 1000000000,
}


def prepare(kube: Kube, world: ReleaseWorld, versions: Iterable[str]) -> None:
    """What is there before an operator is; `versions` are those whose gates the cluster knows."""
    definitions = {file.name: file.read_bytes() for file in crds.definition_files(generally_available=True)}
    kube.apply(*objects_of(definitions), _PRIORITY)
    # The operator's own objects are in them, and are applied before a release.
    kube.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)} for name in NAMESPACES))
    spec = {"clusterID": CLUSTER_ID, "channel": CHANNEL, "upstream": f"{world.url}/graph"}
    topology = {"controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable"}
    platform = {"platform": "None", "platformStatus": {"type": "None"}}
    gates = [{"version": each, "enabled": [{"name": gate} for gate in GATES], "disabled": []} for each in versions]
    names = {"infrastructureName": "real", "apiServerURL": "", "etcdDiscoveryDomain": ""}
    kube.apply(_config("ClusterVersion", "version", spec))
    network = {"networkType": "bridge", "serviceNetwork": ["10.0.0.0/24"]}
    kube.apply(_config("Proxy", "cluster", {}), _config("Network", "cluster", {}) | {"status": network})
    for kind, status in (
        ("FeatureGate", {"featureGates": gates}),
        ("Infrastructure", platform | topology | names),
    ):
        kube.apply(_config(kind, "cluster", {}))
        call = calls.merge_patch(kube.resource(CONFIG, kind), "cluster", {"status": status}, subresource="status")
        kube.client.send(call)


def operator_objects(release: Release, files: Mapping[str, bytes]) -> list[JSON]:
    """The operator as `cluster-version-operator render` writes it for an installer; `files` are the release's."""
    own = {path: data for path, data in files.items() if "/0000_00_cluster-version-operator_" in path}
    needed = {path: files[path] for path in (METADATA_PATH, IMAGE_REFERENCES_PATH)}
    rendered = bootstrap.render_release(own | needed, release.image, bootstrap.Cluster(gates=frozenset(GATES)))
    return [obj for obj in objects_of(rendered) if obj["kind"] != "CustomResourceDefinition"]


def _config(kind: str, name: str, spec: JSON) -> JSON:
    return {"apiVersion": CONFIG, "kind": kind, "metadata": metadata(name), "spec": spec}
