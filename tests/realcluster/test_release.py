"""A release of some hundred manifests from nothing to an update, by the operator in a pod of the cluster.

One story, in the order of the tests; each assertion is about what ClusterVersion says.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.realcluster.releases import COMPONENTS
from tests.realcluster.story import (
    BUDGET,
    FIRST,
    GUARDED,
    OPERATOR,
    PREFLIGHT,
    SECOND,
    UPDATE_S,
    Story,
    guarded,
)

from runup.process.names import OPERATOR_NAMESPACE

JSON = dict[str, Any]


def test_the_operator_installs_its_release(story: Story) -> None:
    """From the operator's own objects to a cluster that is Completed, with every component's pod."""
    release = story.world.releases[FIRST]
    began = time.monotonic()
    story.install()
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
    done = story.preflight(SECOND)
    print(f"\npreflight in {time.monotonic() - began:.1f} s", file=sys.stderr)
    assert done.returncode == 2, done.stdout + done.stderr + story.failure_details()
    assert story.condition("PreflightCompleted")["status"] == "True"
    target = conditional(story, SECOND)
    assert target["release"]["image"] == story.world.releases[SECOND].image
    assert BUDGET in target["riskNames"]
    (pod,) = story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT)
    (operator,) = story.kube.pods(OPERATOR_NAMESPACE, OPERATOR)
    assert pod["spec"]["nodeName"] == operator["spec"]["nodeName"]
    assert pod["spec"]["containers"][0]["image"] == story.world.releases[SECOND].image
    assert story.status["desired"]["version"] == FIRST
    assert len(story.status["history"]) == 1


def test_an_update_waits_for_the_risks_to_be_accepted(story: Story) -> None:
    """What was not accepted by name is in ReleaseAccepted, and nothing is applied."""
    done = story.type("upgrade", f"--to={SECOND}", "--allow-not-recommended")
    assert done.returncode == 0, done.stdout + done.stderr
    story.until(lambda: story.condition("ReleaseAccepted").get("status") == "False", "the update is refused")
    assert BUDGET in story.condition("ReleaseAccepted")["message"]
    assert story.status["desired"]["version"] == FIRST


def test_an_accepted_update_is_applied_and_verified(story: Story) -> None:
    """Every component's pod of the new release runs before the history says Completed."""
    target = conditional(story, SECOND)
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


def conditional(story: Story, version: str) -> JSON:
    """What ClusterVersion says about an update that is not simply recommended."""
    (found,) = (each for each in story.status["conditionalUpdates"] if each["release"]["version"] == version)
    return dict(found)
