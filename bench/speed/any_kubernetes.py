"""`python -m bench any_kubernetes`: a preflight of a cluster without a ClusterVersion: time, peak memory, requests.

500 nodes and 1,500 pods on `kubesandbox` on the same machine; the command is run as typed, to the next minor version.
Its requests are those in the server's audit log, each counted once: their number depends on nothing but the checks and
the pages of lists. A kind that the server does not have is asked for again while the run lasts, which is counted apart.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.servers import api_server

from bench.measure import process, spread
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient

NODES, PODS_OF_A_NODE, TIMES = 500, 3, 5
# A watch begins where its list ended, and ends after a time of its own.
_VARYING = re.compile(r"&(resourceVersion|timeoutSeconds)=[^&]*")
_NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
_PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)


def run() -> dict[str, Any]:
    """Fills a cluster and asks it some times over."""
    with tempfile.TemporaryDirectory() as folder, api_server(Path(folder, "data")) as kubeconfig:
        print("bench: any_kubernetes: filling the cluster", file=sys.stderr)
        _fill(kubeconfig)
        audit = kubeconfig.with_name("audit.log")
        before = len(audit.read_text().splitlines())
        command = [sys.executable, "-m", "runup", "preflight", "run", "--kubeconfig", str(kubeconfig)]
        first = process(command)
        asked = [json.loads(line) for line in audit.read_text().splitlines()[before:]]
        runs = [first, *(process(command) for _ in range(TIMES - 1))]
    distinct = {(each["verb"], _VARYING.sub("", each["requestURI"])) for each in asked}
    return {
        "nodes": NODES,
        "pods": NODES * PODS_OF_A_NODE,
        "exit codes": sorted({each.code for each in runs}),
        "requests": len(distinct),
        "requests by verb": dict(Counter(verb for verb, _ in distinct)),
        "asked again": len(asked) - len(distinct),
        "seconds": spread([each.seconds for each in runs], 2),
        "processor seconds": spread([each.cpu_seconds for each in runs], 2),
        "peak MiB": spread([each.peak_mib for each in runs], 1),
    }


def _fill(kubeconfig: Path) -> None:
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "kubeProxyVersion"), "")
    info |= {"kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.1.4", "architecture": "amd64"}
    info |= {"operatingSystem": "linux", "osImage": "Debian GNU/Linux 12 (bookworm)"}
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    with SyncClient(config.load(str(kubeconfig))) as client:
        for number in range(NODES):
            name = f"node-{number}"
            client.send(calls.create(_NODES, {"metadata": {"name": name}}))
            status = {"nodeInfo": info, "conditions": conditions, "allocatable": room, "capacity": room}
            client.send(calls.merge_patch(_NODES, name, {"status": status}, subresource="status"))
            for app in range(PODS_OF_A_NODE):
                _add_pod(client, f"app-{app}", name)


def _add_pod(client: SyncClient, app: str, node: str) -> None:
    name = f"{app}-{node}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5f7", "uid": app, "controller": True}
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}, "ownerReferences": [owner]}
    container = {"name": "web", "image": "registry.example/web:1", "resources": {"requests": {"cpu": "100m"}}}
    client.send(calls.create(_PODS, {"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}}))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.send(calls.merge_patch(_PODS, name, {"status": status}, "default", subresource="status"))
