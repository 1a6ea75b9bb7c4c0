"""A cluster with releases to go to, its ClusterVersion, and `runup` as its administrator types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.realcluster import installing
from tests.realcluster.cluster import RealCluster
from tests.realcluster.installing import CONFIG
from tests.realcluster.kube import Kube, metadata
from tests.realcluster.machine_config import MachineConfig
from tests.realcluster.releases import ReleaseWorld

from runup.process.names import OPERATOR_NAMESPACE

JSON = dict[str, Any]
FIRST, SECOND, LATER = "5.0.0", "5.1.0", "5.1.1"
"""What is installed, what it is updated to, and what nobody updates to."""
UNREACHABLE = "5.2.0"
"""A release that is signed, offered, and in no registry."""
OPERATOR = "k8s-app=cluster-version-operator"
PREFLIGHT = "app=cluster-version-operator-preflight"
UPDATE_S = 300.0
BUDGET = "PodDisruptionBudgetBlocksDrain"
GUARDED = "guarded"
"""A namespace whose budget lets no pod go."""
SETTINGS = "cluster-version-operator-preflight-config"


class Story:
    """The cluster's ClusterVersion, and `runup` as typed by its administrator."""

    def __init__(self, cluster: RealCluster, kube: Kube, world: ReleaseWorld, machines: MachineConfig) -> None:
        self.machines = machines
        self.cluster = cluster
        self.kube = kube
        self.world = world
        kube.signs.append(self._conditions_and_history)

    def _conditions_and_history(self) -> list[JSON]:
        """ClusterVersion's conditions and history."""
        return [*self.status.get("conditions", []), *self.status.get("history", [])]

    @property
    def version(self) -> JSON:
        """ClusterVersion; empty while nobody answers."""
        return self.kube.get(CONFIG, "ClusterVersion", "version")

    @property
    def status(self) -> JSON:
        """Its status."""
        status: JSON = self.version.get("status", {})
        return status

    def condition(self, kind: str) -> JSON:
        """One of its conditions; empty if it has none of that type."""
        return next((each for each in self.status.get("conditions", []) if each["type"] == kind), {})

    def completed(self, version: str) -> bool:
        """Whether that release is what the cluster runs, as its history says."""
        newest: JSON = next(iter(self.status.get("history") or ()), {})
        return newest.get("version") == version and newest.get("state") == "Completed"

    def until(self, condition: Any, what: str, stalled_s: float = 240) -> Any:
        """As `Kube.until`; a failure has what ClusterVersion says and the operator's last lines."""
        try:
            return self.kube.until(condition, what, stalled_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.failure_details()}") from error

    def failure_details(self) -> str:
        """What a failed test prints."""
        pods = self.kube.pods(OPERATOR_NAMESPACE)
        states = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"]) for pod in pods]
        logs = [self.kube.logs(OPERATOR_NAMESPACE, name)[-3000:] for name, _, _ in states if "operator" in name]
        said = json.dumps({key: self.status.get(key) for key in ("history", "conditions", "desired")}, indent=1)
        return f"{said}\n{json.dumps(states, indent=1)[-6000:]}\n" + "\n".join(logs)

    def install(self) -> None:
        """Has the cluster install its first release, unless it has one."""
        if not self.status.get("history"):
            release = self.world.releases[FIRST]
            self.kube.apply(*installing.operator_objects(release, self.world.files(FIRST)))
        self.until(lambda: self.condition("Available").get("status") == "True", "a release is installed", UPDATE_S)

    def preflight(self, version: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A preflight of that release, waited for."""
        return self.type("upgrade", "--preflight", f"--to={version}", "--wait", "--timeout=10m", *words)

    def set_preflights(self, **values: str) -> None:
        """The administrator's settings of preflights; none removes them."""
        about = metadata(SETTINGS, OPERATOR_NAMESPACE)
        if values:
            self.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": values})
        else:
            self.kube.delete("v1", "ConfigMap", SETTINGS, OPERATOR_NAMESPACE)

    def operator_node(self) -> str:
        """Where the operator runs."""
        (pod,) = self.kube.running(OPERATOR_NAMESPACE, OPERATOR)
        return str(pod["spec"]["nodeName"])

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`runup WORD...`"""
        environ = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "NO_COLOR": "1"}
        return subprocess.run(
            [sys.executable, "-m", "runup", *words], env=environ, capture_output=True, text=True, check=False
        )


def guarded(image: str) -> list[JSON]:
    """A pod that its budget lets nobody evict."""
    labels = {"app": GUARDED}
    container = {"name": "sleeper", "image": image, "command": ["/bin/sh", "-c", "exec busybox sleep 100000"]}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 1}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    about = metadata(GUARDED, GUARDED)
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": labels}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(GUARDED)},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("default", GUARDED)},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": {**spec, "template": template}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": budget},
    ]
