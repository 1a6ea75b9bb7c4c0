"""Containers that really run: how each end, limit and signal shows in the pod's status."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubesandbox.node.conftest import AgentCluster, condition, container, ended, runs, state

JSON = dict[str, Any]
EAT = "import sys; print('eating', flush=True); held = [bytearray(1 << 20) for _ in range(400)]; sys.exit(3)"


@pytest.mark.parametrize(
    ("script", "policy", "shown", "phase"),
    [
        pytest.param("exit 0", "Never", (0, "Completed"), "Succeeded", id="success"),
        pytest.param(
            "exit 0",
            "OnFailure",
            (0, "Completed"),
            "Succeeded",
            marks=pytest.mark.slow,
            id="success that is not tried again",
        ),
        pytest.param("exit 7", "Never", (7, "Error"), "Failed", id="failure"),
        pytest.param(
            "kill -9 $$$$", "Never", (137, "Error"), "Failed", marks=pytest.mark.slow, id="a process that kills itself"
        ),
        pytest.param("kill -TERM $$$$", "Never", (143, "Error"), "Failed", id="a signal that it does not handle"),
    ],
)
async def test_how_it_ends(cluster: AgentCluster, script: str, policy: str, shown: tuple[int, str], phase: str) -> None:
    """Exit code, reason and phase are a kubelet's, whatever runs the process. (`$$` is how a pod writes a dollar.)"""
    if "$$" in script and cluster.place.runner.name != "process":
        script = f"sh -c '{script}'; exit $?"  # the first process of a PID namespace is spared its own signals
    await cluster.run(script, restartPolicy=policy)
    status = await cluster.until(lambda found: found.get("phase") == phase, phase)
    assert (ended(status)["exitCode"], ended(status)["reason"]) == shown
    assert container(status)["restartCount"] == 0
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    assert (condition(status, "Ready")["status"], condition(status, "Ready")["reason"]) == ("False", reason)


async def test_it_runs_and_is_ready(cluster: AgentCluster) -> None:
    """With the conditions, times and names that a kubelet gives."""
    await cluster.run("echo up; exec sleep 1000")
    status = await cluster.until(runs, "it runs")
    assert status["phase"] == "Running"
    assert {each["type"]: each["status"] for each in status["conditions"]} == dict.fromkeys(
        ("Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    shown = container(status)
    assert (shown["ready"], shown["started"], shown["restartCount"], shown["lastState"]) == (True, True, 0, {})
    assert shown["imageID"] == cluster.image
    assert shown["containerID"].startswith("runup://")


async def test_too_much_memory(cluster: AgentCluster) -> None:
    """By the kernel where the runner limits memory, by the agent's own accounting elsewhere."""
    limited = {"command": ["python3", "-c", EAT], "resources": {"limits": {"memory": "64Mi"}}}
    await cluster.run("", container=limited, restartPolicy="Never")
    status = await cluster.until(ended, "its end")
    assert (ended(status)["exitCode"], ended(status)["reason"]) == (137, "OOMKilled")


async def test_a_kill_from_outside_is_not_taken_for_lack_of_memory(cluster: AgentCluster) -> None:
    """It has a limit and was far from it."""
    limited = {"resources": {"limits": {"memory": "256Mi"}}}
    await cluster.run("sh -c 'kill -9 $$$$'; exit $?", container=limited, restartPolicy="Never")
    status = await cluster.until(ended, "its end")
    assert (ended(status)["exitCode"], ended(status)["reason"]) == (137, "Error")


TORN = (
    "import os\nfor _ in range(300):\n os.write(1, b'o' * 40)\n os.write(2, b'e' * 40 + bytes([10]))\n"
    " os.write(1, bytes([10]))\nos.write(1, b'no line feed')"
)


async def test_a_line_of_one_stream_is_not_torn_by_the_other(cluster: AgentCluster) -> None:
    """As a container runtime writes logs: line by line of each stream, also if a line is written in two pieces."""
    unbuffered = {"command": ["python3", "-c", TORN]}
    await cluster.run("", container=unbuffered, restartPolicy="Never")
    await cluster.until(ended, "its end")
    lines = cluster.log().splitlines()
    assert sorted(lines) == sorted(["e" * 40] * 300 + ["o" * 40] * 300 + ["no line feed"])


async def test_sigterm_first(cluster: AgentCluster) -> None:
    """A container that knows what SIGTERM means ends by itself, and its object goes after it."""
    await cluster.run("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    await cluster.until_logged("up")
    log = cluster.place.pod_folder(cluster.pods.all()[0]) / "main.log"
    await cluster.delete(grace_s=30)
    await cluster.until_gone()
    assert log.read_text().split() == ["up", "bye"]


@pytest.mark.slow
async def test_sigkill_when_the_grace_is_over(cluster: AgentCluster) -> None:
    """One second, as its pod says, then it has no choice."""
    await cluster.run("trap '' TERM; echo up; while :; do sleep 0.05; done", terminationGracePeriodSeconds=1)
    await cluster.until_logged("up")
    seen: list[JSON] = []
    cluster.pods.add_listener(lambda _change, _old, new: seen.append(new.status) if new else None)
    await cluster.delete()
    await cluster.until_gone()
    assert ended(seen[-1])["exitCode"] == 137
    assert seen[-1]["phase"] == "Failed"


@pytest.mark.parametrize(
    ("script", "settings", "message"),
    [
        pytest.param("echo words > /dev/termination-log", {}, "words", id="the file that it wrote"),
        pytest.param(
            "echo words > /tmp/last", {"terminationMessagePath": "/tmp/last"}, "words",
            marks=pytest.mark.slow, id="another path",
        ),
        pytest.param("echo in the log; exit 1", {}, "", marks=pytest.mark.slow, id="its log is not asked by default"),
        pytest.param(
            "echo in the log; exit 1", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "in the log",
            id="the log of a failure",
        ),
        pytest.param(
            "echo in the log", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "", id="not of a success"
        ),
    ],
)  # fmt: skip
async def test_last_words(cluster: AgentCluster, script: str, settings: JSON, message: str) -> None:
    """What a container leaves behind, by its terminationMessagePolicy."""
    await cluster.run(script, container=settings, restartPolicy="Never")
    status = await cluster.until(ended, "its end")
    assert ended(status).get("message", "").strip() == message


async def test_a_command_that_is_not_there(cluster: AgentCluster) -> None:
    """StartError with exit code 128, which the restart policy takes for a failure."""
    await cluster.run("", container={"command": ["/usr/bin/no-such-program"]}, restartPolicy="Never")
    status = await cluster.until(lambda found: found.get("phase") == "Failed", "its failure")
    shown = ended(status)
    assert (shown["exitCode"], shown["reason"]) == (128, "StartError")
    assert 'exec: "/usr/bin/no-such-program": no such file or directory' in shown["message"]


@pytest.mark.slow
async def test_init_containers_go_first(cluster: AgentCluster) -> None:
    """One after the other, the rest after them; what they wrote into a volume is there."""
    volume = {"name": "shared", "emptyDir": {}}
    mounts = [{"name": "shared", "mountPath": "/shared"}]

    def step(name: str, script: str) -> JSON:
        command = ["/bin/sh", "-c", script, "/shared"]
        return {"name": name, "image": cluster.image, "command": command, "volumeMounts": mounts}

    # The path goes in as an argument, for the plain runner replaces it there.
    await cluster.pod(
        {
            "restartPolicy": "Never",
            "volumes": [volume],
            "initContainers": [step("first", "echo 1 >> $0/order"), step("second", "echo 2 >> $0/order")],
            "containers": [step("main", "cat $0/order")],
        }
    )
    status = await cluster.until(lambda found: found.get("phase") == "Succeeded", "success")
    assert cluster.log().split() == ["1", "2"]
    assert [each["ready"] for each in status["initContainerStatuses"]] == [True, True]
    assert condition(status, "Initialized")["status"] == "True"


async def test_an_init_container_that_fails(cluster: AgentCluster) -> None:
    """With restartPolicy Never the pod has failed, and nothing else was started."""
    image = cluster.image
    failing = {"name": "first", "image": image, "command": ["/bin/sh", "-c", "exit 4"]}
    main = {"name": "main", "image": image, "command": ["/bin/sh", "-c", "exit 0"]}
    await cluster.pod({"restartPolicy": "Never", "initContainers": [failing], "containers": [main]})
    status = await cluster.until(lambda found: found.get("phase") == "Failed", "failure")
    assert state(status) == {"waiting": {"reason": "PodInitializing"}}
    assert condition(status, "Initialized")["message"] == "containers with incomplete status: [first]"
    assert ended({"containerStatuses": [{**container(status, "first"), "name": "main"}]})["exitCode"] == 4


async def test_a_read_only_root(cluster: AgentCluster) -> None:
    """Where there are mounts, nothing outside of the volumes can be written."""
    if not cluster.place.runner.mounts:
        pytest.skip("plain processes share the host's files")
    settings = {"securityContext": {"readOnlyRootFilesystem": True}}
    await cluster.run("echo x > /new-file", container=settings, restartPolicy="Never")
    status = await cluster.until(ended, "its end")
    assert ended(status)["exitCode"] != 0
    assert "Read-only file system" in cluster.log()


async def test_it_is_started_again_after_it_failed(cluster: AgentCluster) -> None:
    """At once the first time; the end before is remembered."""
    script = "[ -e $0/x ] && exec sleep 1000; touch $0/x; exit 3"
    mounted = {
        "command": ["/bin/sh", "-c", script, "/shared"],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    await cluster.run("", container=mounted, volumes=[{"name": "shared", "emptyDir": {}}])
    status = await cluster.until(lambda found: runs(found) and container(found)["restartCount"] == 1, "a restart")
    last = container(status)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert last["containerID"] != container(status)["containerID"]
