"""Records a rolling update of real nodes, as a sequence of dumps with the facts of the API next to each.

`python -m tests.realcluster.update_record FILE KUBELET` starts a cluster whose nodes run the program KUBELET, an older
kubelet, and takes the nodes one by one to the kubelet of this module: cordon, drain, power off, start with the new
program, uncordon. A budget keeps a pod on the first node until it is removed. After each step FILE has one more entry:
the objects that `runup dump collect` takes, and what the API answers about the nodes, read without runup's rules.

`tests/updatestatus/recorded` keeps such a record, and `test_recorded_update.py` there replays it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.realcluster import build, images
from tests.realcluster.cluster import RealCluster, ready
from tests.realcluster.kube import PODS, Kube, metadata
from tests.realcluster.machine_config import NOT_CREATED_AGAIN

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError
from runup.updatestatus.control.status_reads import READS

JSON = dict[str, Any]
NAMESPACE = "shop"
LABELS = {"app": "web"}
# What of a dump the record keeps: the kinds that change, and the fields that a status reads.
FILES = ("nodes", "pods", "poddisruptionbudgets.policy", "runup-dump")
_OF_METADATA = (
    "annotations", "creationTimestamp", "deletionTimestamp", "generation", "labels", "name", "namespace",
    "ownerReferences", "uid",
)  # fmt: skip
_OF_SPEC = (
    "containers", "maxUnavailable", "minAvailable", "nodeName", "selector", "taints", "terminationGracePeriodSeconds",
    "unschedulable",
)  # fmt: skip
_NOT_OF_STATUS = (
    "addresses", "allocatable", "capacity", "containerStatuses", "daemonEndpoints", "features", "hostIP", "hostIPs",
    "podIP", "podIPs", "qosClass", "runtimeHandlers", "startTime",
)  # fmt: skip
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class UpdatedCluster(RealCluster):
    """A cluster whose nodes run the programs that are set for each."""

    def __init__(self, names: tuple[str, ...], older: Path) -> None:
        super().__init__(names)
        self.programs_of = dict.fromkeys(names, older)

    def boot(self, name: str) -> None:
        """Starts the node with its programs."""
        self.nodes[name].programs = self.programs_of[name]
        super().boot(name)


class Recorder:
    """Takes the nodes through the update; `steps` has an entry for each moment."""

    def __init__(self, cluster: UpdatedCluster, kube: Kube) -> None:
        self._cluster, self._kube = cluster, kube
        self.steps: list[JSON] = []

    def workload(self, image: str) -> None:
        """Two web pods on different nodes, and a budget that allows no eviction."""
        apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        spec = {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "containers": [{"name": "web", "image": image}],
                    "topologySpreadConstraints": [{**apart, "labelSelector": {"matchLabels": LABELS}}],
                    "terminationGracePeriodSeconds": 1,
                },
            },
        }
        budget = {"minAvailable": 2, "selector": {"matchLabels": LABELS}}
        about = metadata("web", NAMESPACE)
        self._kube.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(NAMESPACE)},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec},
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": budget},
        )
        self._kube.running(NAMESPACE, "app=web", 2)

    def update(self, name: str, programs: Path) -> None:
        """Takes one node through the update."""
        self._cordon(name, True)
        refused = self._evict(name)
        self.record(f"{name} is cordoned", refused)
        if refused:
            self._kube.delete("policy/v1", "PodDisruptionBudget", "web", NAMESPACE)
        self._until(lambda: not self._evict(name) and not self._on(name), f"{name} is drained")
        self.record(f"{name} is drained")
        self._cluster.nodes[name].power_off()
        self._until(lambda: not ready(self._node(name)), f"{name} is away")
        self.record(f"{name} is away")
        self._cluster.programs_of[name] = programs
        self._cluster.boot(name)
        self._until(lambda: ready(self._node(name)), f"{name} is back")
        self.record(f"{name} is back")
        self._cordon(name, False)
        self._kube.running(NAMESPACE, "app=web", 2)
        self.record(f"{name} takes pods again")

    def record(self, step: str, refused: list[str] | None = None) -> None:
        """Adds an entry: the facts first, then the objects."""
        facts = {node["metadata"]["name"]: _facts(node) for node in self._kube.listed("v1", "Node")}
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "dump")
            program = str(Path(sys.executable).with_name("runup"))
            command = [program, "dump", "collect", str(target), "--kubeconfig", str(self._cluster.kubeconfig)]
            subprocess.run([*command, *_redactions(self._cluster.registry.host)], check=True, capture_output=True)
            files = {
                file.name: _slim(json.loads(file.read_text()))
                for file in sorted(target.glob("*.json"))
                if file.name.removesuffix(".json") in FILES
            }
        self.steps.append({"step": step, "nodes": facts, "refused": refused or [], "files": files})
        print(step, facts, file=sys.stderr)

    def _node(self, name: str) -> JSON:
        return self._kube.get("v1", "Node", name)

    def _until(self, condition: Callable[[], Any], what: str) -> None:
        self._kube.until(condition, what)

    def _cordon(self, name: str, cordoned: bool) -> None:
        self._kube.patch("v1", "Node", name, {"spec": {"unschedulable": cordoned or None}})

    def _on(self, name: str) -> list[JSON]:
        return [
            pod
            for pod in self._kube.listed("v1", "Pod")
            if pod["spec"].get("nodeName") == name
            and all(each["kind"] not in NOT_CREATED_AGAIN for each in pod["metadata"].get("ownerReferences", ()))
        ]

    def _evict(self, name: str) -> list[str]:
        """Evicts the pods of the node; returns those that a budget keeps."""
        refused = []
        for pod in self._on(name):
            about = metadata(pod["metadata"]["name"], pod["metadata"]["namespace"])
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
            try:
                self._kube.client.send(calls.create(PODS, eviction, subresource="eviction", name=about["name"]))
            except ApiError as error:
                if error.code == 429:
                    refused.append(about["name"])
        return refused


def _slim(document: JSON) -> JSON:
    """Returns a list, or the record of a dump, with the fields that a status reads."""
    if "kinds" in document:
        names = {resource.name for resource, _ in READS}
        kinds = [
            {key: each[key] for key in ("resource", "state", "count") if key in each}
            for each in document["kinds"]
            if each["resource"] in names
        ]
        return {key: document[key] for key in ("collectedBy", "collectedTime", "kubernetesVersion")} | {"kinds": kinds}
    return {**document, "items": [_slim_object(each) for each in document["items"]]}


def _slim_object(found: JSON) -> JSON:
    metadata_of = {key: value for key, value in found["metadata"].items() if key in _OF_METADATA}
    spec = {key: value for key, value in found.get("spec", {}).items() if key in _OF_SPEC}
    status = {key: value for key, value in found.get("status", {}).items() if key not in _NOT_OF_STATUS}
    if "containers" in spec:
        spec["containers"] = [{"name": each["name"], "image": each["image"]} for each in spec["containers"]]
    if "nodeInfo" in status:
        # The others do not change in an update, and a third of a record is their heartbeats.
        status["conditions"] = [each for each in status["conditions"] if each["type"] == "Ready"]
        status["nodeInfo"] = {"kubeletVersion": status["nodeInfo"]["kubeletVersion"]}
    kept = {"apiVersion": found.get("apiVersion"), "kind": found.get("kind")}
    return {
        **{key: value for key, value in kept.items() if value},
        "metadata": metadata_of,
        "spec": spec,
        "status": status,
    }


def _facts(node: JSON) -> JSON:
    taints = {each["key"]: each.get("timeAdded") for each in node["spec"].get("taints", ())}
    return {
        "kubelet": node["status"]["nodeInfo"]["kubeletVersion"],
        "ready": next(each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"),
        "cordoned": taints.get(_UNSCHEDULABLE, ""),
    }


def _redactions(registry: str) -> list[str]:
    """Returns the options that keep the machine's own names out of the record."""
    machine = Path("/etc/hostname").read_text().strip()
    return [word for name in (registry, machine) if len(name) > 3 for word in ("--redact", name)]


def main(file: str, kubelet: str) -> None:
    """Writes the record."""
    newer = build.programs()
    with tempfile.TemporaryDirectory() as folder:
        older = Path(folder)
        for each in newer.iterdir():
            (older / each.name).symlink_to(kubelet if each.name == "kubelet" else each)
        names = ("node-1", "node-2", "node-3")
        with UpdatedCluster(names, older) as cluster:
            kube = Kube(cluster.kubeconfig)
            image = cluster.registry.push(images.pause(cluster.folder / "workload"), "web")
            for name in names[1:]:
                labels = dict.fromkeys(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
                kube.patch("v1", "Node", name, {"metadata": {"labels": labels}})
            recorder = Recorder(cluster, kube)
            recorder.workload(image)
            recorder.record("before")
            for name in names:
                recorder.update(name, newer)
            kube.close()
    write(Path(file), recorder.steps)


def write(file: Path, steps: list[JSON]) -> None:
    """Writes the record, a line for each step."""
    lines = ",\n".join(json.dumps(step, separators=(",", ":")) for step in steps)
    file.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
