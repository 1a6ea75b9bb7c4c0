"""A release of some hundred manifests from nothing to an update, by the operator in a pod of the cluster.

One story, in the order of the tests; each assertion is about what ClusterVersion says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.realcluster import installing
from tests.realcluster.cluster import RealCluster
from tests.realcluster.installing import CONFIG
from tests.realcluster.kube import Kube, metadata
from tests.realcluster.machine_config import MachineConfig
from tests.realcluster.releases import COMPONENTS, ReleaseWorld

from runup.process.names import OPERATOR_NAMESPACE

JSON = dict[str, Any]
FIRST, SECOND = "5.0.0", "5.1.0"
OPERATOR = "k8s-app=cluster-version-operator"
PREFLIGHT = "app=cluster-version-operator-preflight"
UPDATE_S = 300.0
BUDGET = "PodDisruptionBudgetBlocksDrain"
GUARDED = "guarded"
"""A namespace whose budget lets no pod go."""


class Story:
    """The cluster's ClusterVersion, and `runup` as typed by its administrator."""

    def __init__(self, cluster: RealCluster, kube: Kube, world: ReleaseWorld, machines: MachineConfig) -> None:
        self.machines = machines
        self.cluster = cluster
        self.kube = kube
        self.world = world

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

    def until(self, condition: Any, what: str, deadline_s: float = 240) -> Any:
        """As `Kube.until`; a failure has what ClusterVersion says and the operator's last lines."""
        try:
            return self.kube.until(condition, what, deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.told()}") from error

    def told(self) -> str:
        """What a failed test prints."""
        pods = self.kube.pods(OPERATOR_NAMESPACE)
        states = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"]) for pod in pods]
        logs = [self.kube.logs(OPERATOR_NAMESPACE, name)[-3000:] for name, _, _ in states if "operator" in name]
        said = json.dumps({key: self.status.get(key) for key in ("history", "conditions", "desired")}, indent=1)
        return f"{said}\n{json.dumps(states, indent=1)[-6000:]}\n" + "\n".join(logs)

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`runup WORD...`"""
        environ = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "NO_COLOR": "1"}
        return subprocess.run(
            [sys.executable, "-m", "runup", *words], env=environ, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def story(cluster: RealCluster, kube: Kube, world: ReleaseWorld) -> Iterator[Story]:
    """A cluster without any release yet."""
    world.release(FIRST)
    world.release(SECOND, previous=(FIRST,))
    installing.prepare(kube, world, [FIRST, SECOND])
    machines = MachineConfig(cluster, kube)
    machines.install(FIRST)
    yield Story(cluster, kube, world, machines)


def test_the_operator_installs_its_release(story: Story) -> None:
    """From the operator's own objects to a cluster that is Completed, with every component's pod."""
    release = story.world.releases[FIRST]
    began = time.monotonic()
    story.kube.apply(*installing.operator_objects(release, story.world.files(FIRST)))
    story.until(lambda: story.completed(FIRST), f"{FIRST} is Completed", UPDATE_S)
    print(f"\ninstalled {release.manifests} manifests in {time.monotonic() - began:.1f} s", file=sys.stderr)
    assert story.condition("Available")["status"] == "True"
    assert story.condition("Progressing")["status"] == "False"
    assert story.status["desired"]["image"] == release.image
    for _, name in COMPONENTS:
        story.kube.running(name, f"app={name}")


def test_a_preflight_reports_through_a_folder_of_the_node(story: Story, python_image: str) -> None:
    """The target's own pod finds a budget that would block the drain of a node; nothing of the target is applied."""
    story.kube.apply(*guarded(python_image))
    story.kube.running(GUARDED, "app=guarded")
    began = time.monotonic()
    done = story.type("upgrade", "--preflight", f"--to={SECOND}", "--wait", "--timeout=5m")
    print(f"\npreflight in {time.monotonic() - began:.1f} s", file=sys.stderr)
    assert done.returncode == 2, done.stdout + done.stderr + story.told()
    assert story.condition("PreflightCompleted")["status"] == "True"
    (target,) = story.status["conditionalUpdates"]
    assert target["release"]["image"] == story.world.releases[SECOND].image
    assert BUDGET in target["riskNames"]
    (pod,) = story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT)
    (operator,) = story.kube.pods(OPERATOR_NAMESPACE, OPERATOR)
    assert pod["spec"]["nodeName"] == operator["spec"]["nodeName"]
    assert pod["spec"]["containers"][0]["image"] == story.world.releases[SECOND].image
    assert story.status["desired"]["version"] == FIRST
    assert len(story.status["history"]) == 1


def test_an_update_waits_for_the_risks_to_be_accepted(story: Story) -> None:
    """What was not accepted by name stands in ReleaseAccepted, and nothing is applied."""
    done = story.type("upgrade", f"--to={SECOND}", "--allow-not-recommended")
    assert done.returncode == 0, done.stdout + done.stderr
    story.until(lambda: story.condition("ReleaseAccepted").get("status") == "False", "the update is refused")
    assert BUDGET in story.condition("ReleaseAccepted")["message"]
    assert story.status["desired"]["version"] == FIRST


def test_an_accepted_update_is_applied_and_verified(story: Story) -> None:
    """Every component's pod of the new release runs before the history says Completed."""
    (target,) = story.status["conditionalUpdates"]
    began = time.monotonic()
    done = story.type("upgrade", "accept", ",".join(target["riskNames"]))
    assert done.returncode == 0, done.stdout + done.stderr
    story.until(lambda: story.completed(SECOND), f"{SECOND} is Completed", UPDATE_S)
    print(f"\nupdated in {time.monotonic() - began:.1f} s", file=sys.stderr)
    newest, oldest = story.status["history"]
    assert (newest["verified"], oldest["state"]) == (True, "Completed")
    assert BUDGET in newest["acceptedRisks"]
    for _, name in COMPONENTS:
        deployment = story.kube.get("apps/v1", "Deployment", name, name)
        assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == [f"{name}={SECOND}"]


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
