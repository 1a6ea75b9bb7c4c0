"""The cluster of the benchmark `update_status`: 20 pools, 34 operators, nodes as large as real ones, all values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubekit.api.scheme import Resource

POOLS = 20
MC = "machineconfiguration.openshift.io"
FROM, TO = "5.0.0", "5.1.0"
SINCE = "2026-11-21T06:00:00Z"
JSON = dict[str, Any]


def pool_name(number: int) -> str:
    """Pool 0 is the control plane's, 1 the workers'."""
    return {0: "master", 1: "worker"}.get(number, f"pool-{number:02}")


def node_name(number: int) -> str:
    """As long as names are on a cloud."""
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.eu-central-1.compute.internal"


def pool_of(number: int) -> int:
    """Three nodes are the control plane, the others are shared out evenly."""
    return 0 if number < 3 else 1 + number % (POOLS - 1)


def node(number: int) -> JSON:
    """A node as large as a real one, for its content is what a watch has to read past."""
    pool = pool_name(pool_of(number))
    annotations = {
        f"{MC}/currentConfig": f"rendered-{pool}-{FROM}",
        f"{MC}/desiredConfig": f"rendered-{pool}-{FROM}",
        f"{MC}/state": "Done",
        f"{MC}/desiredDrain": f"uncordon-rendered-{pool}-{FROM}",
        f"{MC}/lastAppliedDrain": f"uncordon-rendered-{pool}-{FROM}",
        "k8s.ovn.org/node-subnets": json.dumps({"default": [f"10.{number // 256}.{number % 256}.0/23"]}),
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        **{f"example.com/annotation-{i}": "x" * 100 for i in range(8)},
    }
    healthy = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "labels": {
                "kubernetes.io/hostname": node_name(number),
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": f"eu-central-1{'abc'[number % 3]}",
                "node.kubernetes.io/instance-type": "m6i.xlarge",
                f"node-role.kubernetes.io/{pool}": "",
                **({"node-role.kubernetes.io/worker": ""} if pool != "master" else {}),
            },
            "annotations": annotations,
        },
        "spec": {"providerID": f"aws:///eu-central-1a/i-{number:017x}"},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "reason": f"Kubelet{kind}", "message": "kubelet is fine",
                 "lastHeartbeatTime": SINCE, "lastTransitionTime": SINCE}
                for kind, status in healthy.items()
            ],
            "images": [
                {"names": [f"registry.example/image-{i}@sha256:{i:064x}"], "sizeBytes": 10**8 + i} for i in range(25)
            ],
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.35.2", "osImage": "RHCOS", "bootID": "",
                         "containerRuntimeVersion": "cri-o://1.35", "kernelVersion": "6.12", "kubeProxyVersion": "",
                         "machineID": "", "operatingSystem": "linux", "systemUUID": ""},
        },
    }  # fmt: skip


def cluster() -> Iterator[tuple[Resource, JSON]]:
    """Everything but the nodes: an update whose control plane is half done."""
    config, machines = "config.openshift.io", MC
    version = {
        "spec": {"clusterID": "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad", "channel": "stable-5.1"},
        "status": {
            "desired": {"version": TO, "image": "registry.example/release@sha256:" + "5" * 64},
            "history": [
                {"state": "Partial", "startedTime": SINCE, "completionTime": None, "version": TO, "image": "b",
                 "verified": True},
                {"state": "Completed", "startedTime": "2026-10-01T06:00:00Z", "completionTime": "2026-10-01T07:00:00Z",
                 "version": FROM, "image": "a", "verified": True},
            ],
            "observedGeneration": 1, "versionHash": "", "availableUpdates": None,
            "conditions": [
                {"type": "Available", "status": "True", "lastTransitionTime": SINCE},
                {"type": "Failing", "status": "False", "lastTransitionTime": SINCE},
                {"type": "Progressing", "status": "True", "lastTransitionTime": SINCE,
                 "message": f"Working towards {TO}"},
            ],
        },
    }  # fmt: skip
    yield _resource(config, "ClusterVersion"), object_(f"{config}/v1", "ClusterVersion", "version", version)
    for number in range(34):
        yield _resource(config, "ClusterOperator"), _operator(number)
    for number in range(POOLS):
        yield _resource(machines, "MachineConfigPool"), _pool(number)
        for release in (FROM, TO):
            name = f"rendered-{pool_name(number)}-{release}"
            body = object_(f"{machines}/v1", "MachineConfig", name, {"spec": {"config": {"ignition": {}}}})
            body["metadata"]["annotations"] = {f"{MC}/release-image-version": release}
            yield _resource(machines, "MachineConfig"), body


def _resource(group: str, kind: str) -> Resource:
    return Resource(group=group, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False)


def object_(api_version: str, kind: str, name: str, content: JSON) -> JSON:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def _operator(number: int) -> JSON:
    done = number < 17
    body = object_("config.openshift.io/v1", "ClusterOperator", f"operator-{number:02}", {"spec": {}})
    body["metadata"]["annotations"] = {"include.release.openshift.io/self-managed-high-availability": "true"}
    conditions = {"Available": "True", "Degraded": "False", "Progressing": "False" if done else "True"}
    body["status"] = {
        "versions": [{"name": "operator", "version": TO if done else FROM}],
        "relatedObjects": [{"group": "", "resource": "namespaces", "name": f"openshift-component-{number:02}"}],
        "conditions": [
            {"type": kind, "status": status, "lastTransitionTime": SINCE, "reason": "AsExpected", "message": "fine"}
            for kind, status in conditions.items()
        ],
    }
    return body


def _pool(number: int) -> JSON:
    name = pool_name(number)
    selector = {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}}
    spec = {"nodeSelector": selector, "paused": False, "configuration": {"name": f"rendered-{name}-{TO}"}}
    return object_(f"{MC}/v1", "MachineConfigPool", name, {"spec": spec})


STEPS: tuple[tuple[str, str], ...] = (
    # what the machine-config daemon does next, and the phase that it means
    ("drain", "Draining"),
    ("work", "Updating"),
    ("reboot", "Rebooting"),
    ("done", "Completed"),
)


def change(number: int, step: str) -> JSON:
    """The merge patch of a node's metadata and spec for a step of its update."""
    pool = pool_name(pool_of(number))
    old, new = f"rendered-{pool}-{FROM}", f"rendered-{pool}-{TO}"
    annotations = {
        "drain": {"desiredConfig": new, "state": "Working", "desiredDrain": f"drain-{new}"},
        "work": {"lastAppliedDrain": f"drain-{new}"},
        "reboot": {"state": "Rebooting"},
        "done": {"currentConfig": new, "state": "Done", "desiredDrain": f"uncordon-{new}",
                 "lastAppliedDrain": f"uncordon-{new}"},
    }[step]  # fmt: skip
    assert old != new
    body: JSON = {"metadata": {"annotations": {f"{MC}/{key}": value for key, value in annotations.items()}}}
    if step in {"drain", "done"}:
        body["spec"] = {"unschedulable": True if step == "drain" else None}
    return body
