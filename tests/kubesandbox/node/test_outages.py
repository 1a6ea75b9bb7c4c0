"""Pods whose API server is away, and pods that are deleted before they ever ran."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from bench.hostile.faulty_api import Fault, FaultyApi, faulty_api, server_error, truncated
from tests.kubesandbox.node.conftest import AgentCluster, agent_cluster_with, container, ended, runs, state, waits

from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.node.runner_interface import Command, Launch
from kubesandbox.node.runners import ProcessRunner

JSON = dict[str, Any]


@pytest.mark.slow
async def test_containers_are_restarted_while_the_api_server_is_away(tmp_path: Path) -> None:
    """When it is back, its status says so."""
    async with agent_cluster_with("process", tmp_path, SystemClock()) as cluster, cluster.agent_at_work():
        await cluster.run("echo $$$$; exec sleep 1000")
        await cluster.until(runs, "it runs")
        await cluster.until_logged("\n")
        port = urlsplit(cluster.server.url).port
        assert port is not None
        await cluster.server.__aexit__(None, None, None)
        os.kill(int(cluster.log().split()[0]), signal.SIGKILL)
        await asyncio.wait_for(_second_start(cluster), 90)
        async with ApiServer(data=cluster.place.data, port=port):
            status = await cluster.until(lambda found: container(found).get("restartCount") == 1, "the restart")
        assert "running" in state(status)
        assert container(status)["lastState"]["terminated"]["exitCode"] == 137


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "settings"),
    [
        pytest.param(server_error, {}, id="a full disk"),
        pytest.param(truncated, {"envFrom": [{"configMapRef": {"name": "settings"}}]}, id="answers cut in two"),
    ],
)
async def test_containers_are_restarted_while_the_api_server_is_in_trouble(
    tmp_path: Path, fault: Fault, settings: JSON
) -> None:
    """A status that could not be stored is written again; a worker that met what it did not expect is replaced."""
    async with (
        agent_cluster_with("process", tmp_path, SystemClock()) as cluster,
        faulty_api(load(str(cluster.kubeconfig))) as api,
        Client(api.config) as cluster.client,
        cluster.agent_at_work(),
    ):
        await cluster.create("ConfigMap", "settings", data={"A": "1"})
        await cluster.run("echo $$$$; exec sleep 1000", container=settings)
        await cluster.until(runs, "it runs")
        await cluster.until_logged("\n")
        api.share, api.faults = 1.0, (fault,)
        os.kill(int(cluster.log().split()[0]), signal.SIGKILL)
        if fault is server_error:
            await asyncio.wait_for(_second_start(cluster), 90)
        await asyncio.wait_for(_counted(api, f"request {fault.__name__}", 4), 90)
        api.calm()
        status = await cluster.until(lambda found: container(found).get("restartCount") == 1 and runs(found), "back")
        assert container(status)["lastState"]["terminated"]["exitCode"] == 137


class Untidy(ProcessRunner):
    """What a container left behind cannot be removed."""

    def clean_up(self, launch: Launch) -> None:
        """Fails as a full disk does."""
        raise OSError(errno.ENOSPC, "No space left on device")


class Broken(ProcessRunner):
    """The API server is in trouble once a container begins, and the agent does not know what to make of its end."""

    def __init__(self, api: FaultyApi) -> None:
        self._api = api

    def command(self, launch: Launch) -> Command:
        """Runs before the container does."""
        self._api.share, self._api.faults = 1.0, (server_error,)
        return super().command(launch)

    def out_of_memory(self, launch: Launch) -> bool:
        """Fails as a fault of the agent's would."""
        raise LookupError(launch.id)


async def test_what_a_container_left_behind_is_no_reason_to_run_it_again(tmp_path: Path) -> None:
    """It has ended as it has, and its log is of one run; it was started again, whatever its restart policy."""
    async with agent_cluster_with("process", tmp_path, SystemClock()) as cluster:
        cluster.place = replace(cluster.place, runner=Untidy())
        async with cluster.agent_at_work():
            await cluster.run("echo once; exit 3", restartPolicy="Never")
            status = await cluster.until(ended, "its end")
            assert (ended(status)["exitCode"], status["phase"], cluster.log()) == (3, "Failed", "once\n")


@pytest.mark.slow
async def test_a_container_that_ran_is_not_run_again_by_another_worker(tmp_path: Path) -> None:
    """Also where the API server never heard of it: the next worker knows what the one before it knew."""
    async with (
        agent_cluster_with("process", tmp_path, SystemClock()) as cluster,
        faulty_api(load(str(cluster.kubeconfig))) as api,
        Client(api.config) as cluster.client,
    ):
        cluster.place = replace(cluster.place, runner=Broken(api))
        async with cluster.agent_at_work():
            await cluster.run("echo once", restartPolicy="Never")
            await cluster.until_logged("once\n")
            await asyncio.wait_for(_counted(api, "request server_error", 4), 90)
            api.calm()
            status = await cluster.until(ended, "its end")
        assert (ended(status)["reason"], status["phase"]) == ("ContainerStatusUnknown", "Failed")
        assert cluster.log() == "once\n"


async def _counted(api: FaultyApi, what: str, times: int) -> None:
    while api.counted[what] < times:
        await SystemClock().sleep(0.02)


async def _second_start(cluster: AgentCluster) -> None:
    while len(cluster.log().split()) < 2:
        await SystemClock().sleep(0.02)


@pytest.mark.parametrize(
    ("reason", "pod"),
    [
        pytest.param("ContainerCreating", {"volumes": [{"name": "v", "secret": {"secretName": "no"}}]}, id="a volume"),
        pytest.param("ImagePullBackOff", {"container": {"image": "{registry}/no/such:image"}}, id="an image"),
        pytest.param(
            "CreateContainerConfigError",
            {"container": {"envFrom": [{"configMapRef": {"name": "no"}}]}},
            id="a ConfigMap",
        ),
    ],
)
async def test_deleted_while_it_waits(still: AgentCluster, reason: str, pod: JSON) -> None:
    """It goes at once, whatever it waits for."""
    settings = dict(pod.get("container") or {})
    if "image" in settings:
        settings["image"] = settings["image"].format(registry=still.registry.host)
    await still.run("exit 0", **{**pod, "container": settings})
    if reason == "ImagePullBackOff":
        await still.until(waits("ErrImagePull"), "the first failure")
        await still.manual.until_sleeping()
        await still.manual.advance(1)
    await still.until(waits(reason), reason)
    await still.delete()
    await still.until_gone()


async def test_deleted_while_its_init_container_runs(still: AgentCluster) -> None:
    """The init container is ended, nothing else is started."""
    slow = {"name": "first", "image": still.image, "command": ["/bin/sh", "-c", "echo up; exec sleep 1000"]}
    await still.run("echo never", initContainers=[slow])
    await still.until(lambda found: "running" in state(found, "first"), "the init container")
    folder = still.place.pod_folder(still.pods.all()[0])
    await still.delete()
    await still.until_gone()
    await still.agent_idle()
    assert [path.name for path in folder.iterdir()] == ["first.log"]
