"""Nodes are drained and rebooted one after the other; what is reported of it meanwhile."""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.realcluster.kube import pod_ready
from tests.realcluster.story import GUARDED, OPERATOR, Story, guarded

from runup.process.names import OPERATOR_NAMESPACE

JSON = dict[str, Any]
EARLIER = "4.99.0"
"""Of which the nodes of a cluster are that was never updated."""


def test_nodes_are_drained_and_rebooted_while_the_operator_goes_on(story: Story, python_image: str) -> None:
    """A budget that keeps a pod is named by UpdateStatus; each node's phase is; the operator moves out of the way."""
    story.install()
    story.kube.apply(*guarded(python_image))
    (kept,) = story.kube.running(GUARDED, "app=guarded")
    release, *before = story.status["history"]
    target = release["version"]
    story.machines.install(before[0]["version"] if before else EARLIER)
    first = kept["spec"]["nodeName"]
    began = time.monotonic()
    story.machines.render(target)
    for node in sorted(story.cluster.names, key=lambda name: name != first):
        story.machines.begin(node, target)
        if node == first:
            assert f"{GUARDED}/{kept['metadata']['name']}" in story.machines.drain(node)
            story.until(lambda: _insight(story, first).get("name") == first, "UpdateStatus tells of the node")
            story.until(lambda: "budget" in _findings(story).lower(), "UpdateStatus names the budget")
            story.kube.delete("policy/v1", "PodDisruptionBudget", GUARDED, GUARDED)
        story.until(lambda node=node: story.machines.drained(node), f"{node} is drained")
        story.machines.finish(node, target)
    print(f"\nboth nodes in {time.monotonic() - began:.1f} s", file=sys.stderr)
    (operator,) = story.kube.running(OPERATOR_NAMESPACE, OPERATOR)
    assert pod_ready(operator)
    assert story.status["history"][0] == release
    story.until(lambda: story.condition("Available").get("status") == "True", "the release is available")
    for node in story.cluster.names:
        story.until(lambda node=node: _updated(_insight(story, node)), f"UpdateStatus says that {node} is updated")


def _insights(story: Story) -> list[JSON]:
    status = story.kube.get("update.openshift.io/v1alpha1", "UpdateStatus", "cluster").get("status", {})
    informers = status.get("controlPlane", {}).get("informers", [])
    return [insight for informer in informers for insight in informer.get("insights", [])]


def _insight(story: Story, node: str) -> JSON:
    found = [each["node"] for each in _insights(story) if each["type"] == "Node"]
    return next((each for each in found if each["resource"]["name"] == node), {})


def _findings(story: Story) -> str:
    return " ".join(str(each["health"]) for each in _insights(story) if each["type"] == "Health")


def _updated(node: JSON) -> bool:
    conditions = {each["type"]: each for each in node.get("conditions", [])}
    return bool(conditions.get("Updating", {}).get("reason") == "Completed")
