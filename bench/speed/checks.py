"""All checks on 10, 500, 5,000 and 10,000 nodes, a budget for five nodes and ten pods on each; thirty on 10,000.

The aims for the largest: under 5 s, under 300 MiB. docs/explanation/preflight-design.md states the figures.

The objects are written to files as pages of a list, as an API server sends them. A fresh process decodes them page by
page into the types that the target's process uses, evaluates the built-in checks and one PreflightCheck that ranges
over all pods (not on the largest: its pods would be a second list), and says how long it took; its peak memory is
measured from outside. On the largest no PreflightCheck is compiled, either: the CEL library takes 30 MiB. From 5,000
nodes on every pod is under five budgets or more: the most that the check of their pods can have to do.

`dearest_checks` are the checks that took most of a core in the quickest round, each as it first met these objects: what
several checks need is kept by the first that asks for it, so the groups of pods that they share have rows of their own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.measure import process, spread

SIZES, PAGE = (10, 500, 5_000, 10_000), 500
NODES_A_BUDGET, PODS_A_NODE, PODS_A_CROWDED_NODE = 5, 10, 30
CROWDED, NAMESPACES = 10_000, 200
ROUNDS = 3
DEAREST = 7
# What the dearest ones do; all of it is done for each of 300,000 pods.
WHY = {
    "SpreadOnOneNode": "finds the workload of each pod by its owner, and remembers its node",
    "HeadroomShort": "adds up the requests of each pod, and asks once more whether a drain moves it",
    "PodDisruptionBudgetPods": "counts pods by their labels, which are matched with budgets once for all alike",
    "(shared: pods that a drain evicts)": "looks at the phase, the node and the owners of each pod",
    "(shared: pods by node and by namespace)": "puts each pod into two lists",
    "StuckTerminating": "asks each pod whether it is being deleted",
    "SystemPodsFailing": "asks each pod whether it fails, and since when",
    "UnmanagedPods": "asks each pod whether it has an owner",
}
CHECK = {
    "apiVersion": "preflight.runup.dev/v1alpha1",
    "kind": "PreflightCheck",
    "metadata": {"name": "pods"},
    "spec": {
        "component": "bench",
        "reads": [{"name": "pods", "version": "v1", "kind": "Pod", "fields": ["spec.nodeName", "status.phase"]}],
        "for": "pods",
        "expression": "object.status.phase == 'Pending' && !has(object.spec.nodeName)",
        "risk": {"name": "PodsPending", "message": "Pods are pending."},
    },
}
Make = Callable[[int], dict[str, Any]]
T = TypeVar("T")


def _metadata(name: str, namespace: str = "") -> dict[str, Any]:
    managed = [
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {f"f:x{i}": {} for i in range(20)}}}
    ]
    place = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        "uid": name,
        "resourceVersion": "1",
        "labels": {"app": "x"},
        "managedFields": managed,
        **place,
    }


def node(index: int) -> dict[str, Any]:
    """A node of some 6 KB, every hundredth cordoned."""
    images = [{"names": [f"quay.io/example/image@sha256:{number:064}"], "sizeBytes": 1} for number in range(40)]
    info = {"kubeletVersion": "v1.36.2", "architecture": "amd64", "osImage": "RHCOS", "kernelVersion": "5.14"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": "2026-01-14T09:30:00Z"}
    return {
        "metadata": _metadata(f"node-{index}"),
        "spec": {"unschedulable": True} if index % 100 == 0 else {},
        "status": {
            "conditions": [ready],
            "nodeInfo": info,
            "images": images,
            "allocatable": {"cpu": "15500m", "memory": "63Gi", "pods": "250"},
        },
    }


def budget(index: int) -> dict[str, Any]:
    """A budget, every hundredth of which never allows a drain."""
    never = index % 100 == 0
    counts = {"expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 3 if never else 2}
    return {
        "metadata": _metadata(f"pdb-{index}", f"ns-{index % NAMESPACES}"),
        "spec": {"maxUnavailable": 0 if never else 1, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 0 if never else 1, **counts},
    }


def pod(index: int, a_node: int = PODS_A_NODE) -> dict[str, Any]:
    """A pod of some 2 KB, every thousandth pending, the others `a_node` on each node."""
    pending = index % 1000 == 0
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-14T09:30:00Z"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{index // 3}", "uid": "1", "controller": True}
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(10)]
    return {
        "metadata": _metadata(f"pod-{index}", f"ns-{index % NAMESPACES}") | {"ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "image": "quay.io/x", "env": env, "resources": resources}]}
        | ({} if pending else {"nodeName": f"node-{index // a_node}"}),
        "status": {"phase": "Pending" if pending else "Running", "podIP": "10.0.0.1", "conditions": [ready]},
    }


def numbers(nodes: int, a_node: int = 0) -> dict[str, int]:
    """How many objects of each kind a cluster of that many nodes has, with `a_node` pods on each if that is given."""
    a_node = a_node or (PODS_A_CROWDED_NODE if nodes >= CROWDED else PODS_A_NODE)
    return {"nodes": nodes, "budgets": nodes // NODES_A_BUDGET, "pods": nodes * a_node}


_MAKE: dict[str, Make] = {"nodes": node, "budgets": budget, "pods": pod}


def write(folder: Path, nodes: int) -> None:
    """The pages of every kind as files in `folder`."""
    for kind, number in numbers(nodes).items():
        make = partial(pod, a_node=number // nodes) if kind == "pods" else _MAKE[kind]
        for start in range(0, number, PAGE):
            items = [make(i) for i in range(start, min(start + PAGE, number))]
            page = {"metadata": {"resourceVersion": "1"}, "items": items}
            (folder / f"{kind}-{start:06}.json").write_text(json.dumps(page))


def evaluate(folder: Path) -> dict[str, Any]:
    """Decode and evaluate, in this process: seconds for each, of a core in all, and what was found."""
    from kubekit.api.core_v1 import Node
    from kubekit.api.meta_v1 import Object
    from kubekit.api.pod_parts import ListedPod
    from kubekit.api.scheme import RESOURCES, Resource, resource_of
    from kubekit.api.workloads_v1 import PodDisruptionBudget
    from kubekit.kube.clock import SystemClock
    from kubekit.kube.list_pages import page_reader
    from kubekit.lang.version import Version
    from runup.checks.catalogue import CHECKS
    from runup.checks.catalogue.shared.pods import PODS, drained_pods_by_namespace, pods_by_node
    from runup.checks.decide import engine
    from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster
    from runup.checks.decide.declarative import declared_check
    from runup.checks.decide.model import Context, Snapshot
    from runup.checks.decide.reads import Read, shape, share_node
    from runup.checks.decide.results import risks
    from runup.process.memory import collect_rarely

    collect_rarely()

    def pages(kind: str, type_: type[Object]) -> Iterator[Any]:
        read = page_reader(type_)
        for path in sorted(folder.glob(f"{kind}-*.json")):
            yield from read(path.read_bytes()).items

    started = time.perf_counter()
    every = [*RESOURCES.values(), *(each for known in CHECKS for each in known.reads)]
    objects: dict[Resource, tuple[Any, ...]] = dict.fromkeys(every, ())
    objects[resource_of(Node)] = tuple(share_node(each) for each in pages("nodes", Node))
    objects[resource_of(PodDisruptionBudget)] = tuple(pages("budgets", PodDisruptionBudget))
    crowded = len(objects[resource_of(Node)]) >= CROWDED
    declared_checks = () if crowded else (declared_check(CHECK, file="bench"),)
    for check in declared_checks:
        (pods,) = check.reads
        assert isinstance(pods, Read)
        objects[pods] = tuple(pages("pods", shape(pods.fields)))
    objects[PODS] = tuple(PODS.keep(each) for each in pages("pods", ListedPod))
    decoded, decoded_cpu = time.perf_counter(), time.process_time()
    context = Context(
        source=Version("5.0.0"), target=Version("5.2.0"), now=SystemClock().now(), target_kubernetes="1.38.0"
    )
    checks = checks_for_cluster(CHECKS, ClusterKind.OPENSHIFT)
    snapshot, seconds = Snapshot(objects=objects), _SecondsByName()
    seconds.of("(shared: pods by node and by namespace)", lambda: pods_by_node(objects[PODS]))
    seconds.of("(shared: pods that a drain evicts)", lambda: drained_pods_by_namespace(objects[PODS]))
    found = risks(
        [
            seconds.of(each.name, partial(engine.run_check, each, snapshot, context))
            for each in (*checks, *declared_checks)
        ]
    )
    finished, finished_cpu = time.perf_counter(), time.process_time()
    sizes = {risk.name: len(risk.resources) for risk in found if risk.applies == "True"}
    spent = {"decode_s": decoded - started, "evaluate_s": finished - decoded, "cpu_s": time.process_time()}
    spent["evaluate_cpu_s"] = finished_cpu - decoded_cpu
    return {**spent, "found": sizes, "dearest": seconds.dearest()}


class _SecondsByName:
    """Seconds of a core that works took, by name."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def of(self, name: str, work: Callable[[], T]) -> T:
        """Does `work`, and returns its result."""
        began = time.process_time()
        result = work()
        self._seconds[name] = time.process_time() - began
        return result

    def dearest(self) -> dict[str, float]:
        """Returns the works that took most, and the sum of the others."""
        dearest = sorted(self._seconds, key=self._seconds.__getitem__, reverse=True)[:DEAREST]
        others = sum(self._seconds.values()) - sum(self._seconds[name] for name in dearest)
        return {name: round(self._seconds[name], 3) for name in dearest} | {"(all others)": round(others, 3)}


def run() -> dict[str, Any]:
    """Every size in turn; what was found is checked before it is timed."""
    return {f"{nodes} nodes": _of_size(nodes) for nodes in SIZES}


def _of_size(nodes: int) -> dict[str, Any]:
    """Several rounds, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), nodes)
        argv = [sys.executable, "-m", "bench.speed.checks", folder]
        runs = []
        for _ in range(ROUNDS):
            measured = process(argv)
            runs.append((_result(folder), measured))
    found = numbers(nodes)
    expected = {
        "NodeCordoned": _every(100, found["nodes"]),
        "NodeInNoPool": found["nodes"],
        "PodDisruptionBudgetBlocksDrain": _every(100, found["budgets"]),
        "PodDisruptionBudgetsOverlap": found["budgets"],
    }
    if found["budgets"] < NAMESPACES * 2:
        # One budget a namespace at most: none of them share a pod.
        del expected["PodDisruptionBudgetsOverlap"]
    if nodes < CROWDED:
        expected["PodsPending"] = _every(1000, found["pods"])
    assert all(result["found"] == expected and measured.code == 0 for result, measured in runs), runs
    return {
        "objects": found,
        "decode_seconds": spread([result["decode_s"] for result, _ in runs]),
        "evaluate_seconds": spread([result["evaluate_s"] for result, _ in runs]),
        "evaluate_cpu_seconds": spread([result["evaluate_cpu_s"] for result, _ in runs]),
        # What the whole process takes of a core, imports included: the same however busy the machine is.
        "cpu_seconds": spread([result["cpu_s"] for result, _ in runs]),
        "process_seconds": spread([measured.seconds for _, measured in runs]),
        "peak_mib": spread([measured.peak_mib for _, measured in runs], 1),
        "dearest_checks": min((result for result, _ in runs), key=lambda result: result["evaluate_cpu_s"])["dearest"],
    }


def _result(folder: str) -> dict[str, Any]:
    """What the process wrote about itself."""
    return dict(json.loads((Path(folder) / "result.json").read_text()))


def _every(step: int, number: int) -> int:
    """How many of `number` are made otherwise, the first and every `step`th after it."""
    return -(-number // step)


if __name__ == "__main__":
    told = evaluate(Path(sys.argv[1]))
    (Path(sys.argv[1]) / "result.json").write_text(json.dumps(told))
