"""Workloads and budgets made from a seed, for nodes that run them: small enough for two nodes of one machine.

Every container ignores SIGTERM, so that its pod takes its whole grace period to end, and is ready a few seconds after
its start, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.realcluster.kube import metadata

JSON = dict[str, Any]
HOST, DISK = "kubernetes.io/hostname", "tests.runup.dev/disk"
DISKS = ("fast", "slow")
"""The label `DISK` of the nodes, in their order."""
HIGH = "drained-first"
"""The name of a PriorityClass."""
_NAMES = ("apple", "birch", "cedar", "daisy", "elder", "fir", "gorse", "hazel")
_CPU = (20, 60, 150, 300, 450)
"""Thousandths of a processor; a node of the test machine has 2,000."""


@dataclass(frozen=True, slots=True)
class App:
    """A workload: pods that there should be (1 for a bare pod), and whether they become ready."""

    name: str
    kind: str
    replicas: int
    becomes_ready: bool


class SeededDrain:
    """`objects` in the order in which they are created, all in `namespace`; the same seed makes the same."""

    def __init__(self, seed: int, image: str) -> None:
        self._random, self._image = Random(seed), image
        self.namespace = f"drained-{seed}"
        self.apps: dict[str, App] = {}
        self.objects: list[JSON] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(self.namespace)},
        ]
        for name in _NAMES[: self._random.randrange(5, len(_NAMES) + 1)]:
            self.objects += self._workload(name)
        if self._random.random() < 0.25:
            # A pod that is ending counts, so that the next one is made once it has ended.
            hard = {"pods": str(sum(app.replicas for app in self.apps.values()))}
            self.objects.insert(1, self._object("v1", "ResourceQuota", "pods", {"hard": hard}))

    def _object(self, api_version: str, kind: str, name: str, spec: JSON) -> JSON:
        about = metadata(name, self.namespace, labels={"app": name})
        return {"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}

    def _workload(self, name: str) -> Iterator[JSON]:
        random = self._random
        kind = random.choice(("Deployment", "Deployment", "Deployment", "StatefulSet", "Pod"))
        replicas = 1 if kind == "Pod" else random.randrange(1, 5)
        delay = random.choice((0, 0, 1, 1, 3, 3, None))
        pod = self._pod(name, delay, replicas)
        if random.random() < 0.7:
            for number in range(1 + (random.random() < 0.08)):
                yield self._object("policy/v1", "PodDisruptionBudget", f"{name}-{number}", self._budget(name, replicas))
        self.apps[name] = App(name, kind, replicas, becomes_ready=delay is not None)
        if kind == "Pod":
            yield self._object("v1", kind, name, pod)
            return
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if kind == "StatefulSet":
            policy = random.choice(("OrderedReady", "Parallel"))
            # In order, none but the first would be made if it were never ready.
            spec |= {"serviceName": name, "podManagementPolicy": policy if delay is not None else "Parallel"}
        yield self._object("apps/v1", kind, name, spec)

    def _budget(self, name: str, replicas: int) -> JSON:
        random = self._random
        demands: tuple[JSON, ...] = (
            {"maxUnavailable": 0},
            {"maxUnavailable": 1},
            {"maxUnavailable": 1},
            {"maxUnavailable": 2},
            {"maxUnavailable": "50%"},
            {"minAvailable": 1},
            {"minAvailable": max(1, replicas - 1)},
            {"minAvailable": replicas},
            {"minAvailable": "60%"},
        )
        spec = dict(random.choice(demands), selector={"matchLabels": {"app": name}})
        if random.random() < 0.3:
            spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        return spec

    def _pod(self, name: str, delay: int | None, replicas: int) -> JSON:
        random = self._random
        ready = f"busybox sleep {delay}; busybox mkdir -p /tmp; : > /tmp/ready; " if delay is not None else ""
        container: JSON = {
            "name": "sleeper",
            "image": self._image,
            "command": ["/bin/sh", "-c", f"{ready}busybox sleep 100000"],
            "resources": {"requests": {"cpu": f"{random.choice(_CPU)}m"}},
            "readinessProbe": {
                "exec": {"command": ["/bin/sh", "-c", "test -e /tmp/ready"]},
                "periodSeconds": 1,
                "timeoutSeconds": 30,
            },
        }
        labels = {"matchLabels": {"app": name}}
        spec: JSON = {"containers": [container], "terminationGracePeriodSeconds": random.choice((1, 3, 6))}
        if random.random() < 0.2:
            term = {"topologyKey": HOST, "labelSelector": labels}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif random.random() < 0.2:
            constraint = {"maxSkew": 1, "topologyKey": HOST, "labelSelector": labels}
            spec["topologySpreadConstraints"] = [constraint | {"whenUnsatisfiable": "DoNotSchedule"}]
        elif random.random() < 0.2:
            spec["nodeSelector"] = {DISK: random.choice(DISKS)}
        if replicas < 3 and random.random() < 0.2:
            container["ports"] = [{"containerPort": 80, "hostPort": 18080}]
        if random.random() < 0.2:
            spec["priorityClassName"] = HIGH
        return spec
