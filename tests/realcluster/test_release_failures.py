"""What ClusterVersion says when a node, a pod or a server fails under the operator or its preflight."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.realcluster.cluster import ready
from tests.realcluster.story import LATER, OPERATOR, PREFLIGHT, UNREACHABLE, Story

from runup.process.names import OPERATOR_NAMESPACE


@pytest.fixture(autouse=True)
def installed(story: Story) -> Iterator[None]:
    """Some release; the preflight is ended afterwards, and the settings are the defaults again."""
    story.install()
    yield
    story.set_preflights()
    story.type("upgrade", "--clear-preflight")
    story.until(lambda: not story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT), "the preflight's pod is gone")


def test_an_image_that_no_registry_has(story: Story) -> None:
    """The preflight failed and says why; the cluster is as available as before."""
    done = story.preflight(UNREACHABLE)
    assert done.returncode == 1, done.stdout + done.stderr + story.failure_details()
    failed = story.condition("PreflightFailed")
    assert (failed["status"], failed["reason"]) == ("True", "ImagePullFailed"), failed
    assert story.world.releases[UNREACHABLE].image in failed["message"]
    assert story.condition("Available")["status"] == "True"
    assert story.condition("PreflightCompleted")["status"] == "False"


def test_an_update_to_an_image_that_no_registry_has(story: Story) -> None:
    """ReleaseAccepted says so, and nothing is applied."""
    history = story.status["history"]
    story.type("upgrade", f"--to={UNREACHABLE}", "--allow-not-recommended", "--force")
    accepted = story.until(
        lambda: (found := story.condition("ReleaseAccepted")).get("status") == "False" and found, "it is refused"
    )
    assert accepted["reason"] == "RetrievePayload"
    assert story.world.releases[UNREACHABLE].image in accepted["message"]
    assert story.status["history"] == history
    story.type("upgrade", "--clear")
    story.until(lambda: story.condition("ReleaseAccepted").get("status") == "True", "the request is taken back")


def test_a_target_that_the_kernel_kills_for_its_memory(story: Story) -> None:
    """OOMKilled is no report: not one risk is taken for fine."""
    story.set_preflights(memoryRequest="10Mi", memoryLimit="24Mi")
    done = story.preflight(LATER)
    assert done.returncode == 1, done.stdout + done.stderr + story.failure_details()
    failed = story.condition("PreflightFailed")
    assert (failed["status"], failed["reason"]) == ("True", "OOMKilled"), failed
    assert story.condition("PreflightCompleted")["status"] == "False"


def test_a_target_with_an_account_of_its_own_may_only_read(story: Story) -> None:
    """The report is complete with the dedicated account, whose rights are gone with the preflight."""
    story.set_preflights(serviceAccount="dedicated")
    done = story.preflight(LATER)
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr + story.failure_details()
    (pod,) = story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT)
    assert pod["spec"]["serviceAccountName"] == "cluster-version-operator-preflight"
    assert story.condition("PreflightCompleted")["status"] == "True"
    story.type("upgrade", "--clear-preflight")
    story.until(
        lambda: not story.kube.get("v1", "ServiceAccount", "cluster-version-operator-preflight", OPERATOR_NAMESPACE),
        "its account is gone",
    )


def test_an_api_server_that_is_killed_while_a_target_checks(story: Story) -> None:
    """Operator and target find their way back; the report is complete."""
    before = story.status["history"]
    story.type("upgrade", "--preflight", f"--to={LATER}")
    story.until(lambda: story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT), "the target is being started")
    story.cluster.plane.restart_server(signal.SIGKILL)
    story.until(lambda: story.condition("PreflightCompleted").get("status") == "True", "the report is complete")
    assert story.status["history"] == before
    assert story.condition("Available")["status"] == "True"


def test_a_node_whose_programs_are_killed(story: Story) -> None:
    """Pods outlive their kubelet and container runtime: the operator is not even started again."""
    node = story.cluster.nodes[story.operator_node()]
    (before,) = story.kube.running(OPERATOR_NAMESPACE, OPERATOR)
    for program in ("kubelet", "containerd"):
        node.kill(program)
    done = story.preflight(LATER)
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr + story.failure_details()
    assert story.condition("PreflightCompleted")["status"] == "True"
    (after,) = story.kube.running(OPERATOR_NAMESPACE, OPERATOR)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_an_operator_whose_node_dies_is_started_on_the_other(story: Story) -> None:
    """It leaves after two minutes, takes the lease over, and continues; the node comes back to a cluster that is led.

    The preflight's pod was on that node: its end is waited for with a word, and the preflight continues afterwards.
    """
    assert story.preflight(LATER).returncode in (0, 2, 3)
    dead = story.operator_node()
    (lost,) = story.kube.pods(OPERATOR_NAMESPACE, PREFLIGHT)
    lease = story.kube.get("coordination.k8s.io/v1", "Lease", "version", OPERATOR_NAMESPACE)["spec"]
    story.cluster.nodes[dead].power_off()

    def taken_over() -> bool:
        found = story.kube.get("coordination.k8s.io/v1", "Lease", "version", OPERATOR_NAMESPACE).get("spec", {})
        return found.get("holderIdentity", "") not in ("", lease["holderIdentity"])

    story.until(taken_over, "another operator leads", 600)
    assert story.operator_node() != dead
    assert story.condition("Available")["status"] == "True"
    failed = story.until(
        lambda: (found := story.condition("PreflightFailed")).get("reason") == "PodTerminating" and found,
        "the preflight's pod is named",
        600,
    )
    assert f"{lost['metadata']['name']} on node {dead}" in failed["message"]
    story.cluster.boot(dead)
    story.until(lambda: ready(story.kube.get("v1", "Node", dead)), f"{dead} is Ready")
    (operator,) = story.kube.running(OPERATOR_NAMESPACE, OPERATOR)
    assert operator["spec"]["nodeName"] != dead
    story.until(lambda: story.condition("PreflightFailed").get("status") == "False", "the preflight continues")
    story.until(lambda: story.condition("PreflightCompleted").get("status") == "True", "the report is complete")
    (anew,) = story.kube.running(OPERATOR_NAMESPACE, PREFLIGHT)
    assert anew["spec"]["nodeName"] == operator["spec"]["nodeName"]
