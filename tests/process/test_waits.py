"""A process that waits before its first pass says why, in its log and to a readiness probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.clocks import Hurried
from tests.kubekit.kube.apiscript import failure, reply, scripted_api, silence, status
from tests.operator.operator_world import OWN, payload

from kubekit.kube import config
from kubekit.kube.clock import Clock, ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubesandbox.apiserver.server import ApiServer
from runup.kernelmodules.control import process as kernel_modules
from runup.operator import manager
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.process.leader_election import Election
from runup.process.process_server import LeaderProcess, Readiness, log_while_not_ready
from runup.updatestatus.control import process as update_status

DEADLINE_S = 90.0
# By clocks that go ten times as fast as the machine's.
TIMES, RETRY, IMPATIENT = 10, Election(30, 20, 2), Election(6, 4, 1)
NO_NAMESPACE = 'namespaces "away" not found; create the namespace, or name an existing one with --namespace'
TERMINATING = status(403, "Forbidden", "it is being terminated") | {
    "details": {"causes": [{"reason": "NamespaceTerminating", "message": "away", "field": "metadata.namespace"}]}
}


def manager_of(
    configuration: ClusterConfig, folder: Path, election: Election = RETRY, clock: Clock | None = None
) -> manager.Manager:
    """The managing operator, whose namespace is `away`."""
    place = PodSettings(namespace="away", node_name="node-1")
    files = payload(folder / "payload")
    options = manager.Options(
        release_image=OWN,
        pod_settings=place,
        payload=files,
        report_folder=folder,
        listen="127.0.0.1:0",
        election=election,
    )
    return manager.Manager(configuration, options, clock=clock or Hurried(TIMES))


def update_status_of(
    configuration: ClusterConfig, _folder: Path, election: Election = RETRY, clock: Clock | None = None
) -> update_status.Process:
    """The controller of UpdateStatus, whose namespace is `away`."""
    options = update_status.Options(namespace="away", listen="127.0.0.1:0", election=election)
    return update_status.Process(configuration, options, clock=clock or Hurried(TIMES))


def kernel_modules_of(
    configuration: ClusterConfig, _folder: Path, election: Election = RETRY, clock: Clock | None = None
) -> kernel_modules.Process:
    """The process that tries kernel modules, whose namespace is `away`."""
    options = kernel_modules.Options(namespace="away", listen="127.0.0.1:0", election=election)
    return kernel_modules.Process(configuration, options, clock=clock or Hurried(TIMES))


PROGRAMS = [
    pytest.param(manager_of, "version", id="start"),
    pytest.param(update_status_of, "update-status-controller", id="update-status-controller"),
    pytest.param(kernel_modules_of, "kernel-module-preflight", id="kernel-module-preflight"),
]
Make = Callable[..., Any]


async def probed_once(process: LeaderProcess) -> tuple[str, int, str, list[str]]:
    """Runs `process` until its Lease cannot be acquired, and it has logged that it is not ready.

    Returns why it is not ready, what a readiness probe then reads, and the reasons in the log.
    """
    with capture_logs() as logs:
        running = asyncio.create_task(process.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    waits = [line["why"] for line in logs if line["event"] == "not ready"]
                    # The first request may be one for another kind than the Lease.
                    if "cannot be acquired" in process.lacking() and waits:
                        break
                    await asyncio.sleep(0.02)
            address = process.endpoint.address  # type: ignore[attr-defined]
            async with aiohttp.ClientSession() as session, session.get(f"{address}/readyz") as answer:
                return process.lacking(), answer.status, await answer.text(), waits
        finally:
            process.stop()
            await asyncio.wait_for(running, DEADLINE_S)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "lease"), PROGRAMS)
async def test_a_missing_namespace_is_named(make: Make, lease: str, tmp_path: Path) -> None:
    """The Lease, the server's words and the way out, in the log, too: its API server answers each attempt with 404."""
    why = f"Lease away/{lease} cannot be acquired: {NO_NAMESPACE}"
    async with ApiServer(tmp_path / "data") as server:
        process = make(config.load(str(server.kubeconfig)), tmp_path, clock=SystemClock())
        shown = await probed_once(process)
    assert shown == (why, 503, f"{why}\n", [why])


@pytest.mark.parametrize(("make", "lease"), PROGRAMS)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(
            failure(403, "Forbidden", "leases is forbidden"),
            "leases is forbidden; grant get, watch, create and patch of leases.coordination.k8s.io in this namespace",
            id="rights are missing",
        ),
        pytest.param(
            reply(TERMINATING, 403),
            "it is being terminated; create the namespace again when its deletion has ended",
            id="the namespace is being deleted",
        ),
        pytest.param(
            failure(401, "Unauthorized", "Unauthorized"),
            "Unauthorized; correct the credentials of the kubeconfig or of the service account",
            id="the credentials are wrong",
        ),
        pytest.param(
            failure(503, "ServiceUnavailable", "etcd is away"),
            "etcd is away; check the server's address and the certificate authorities of the kubeconfig",
            id="the server fails",
        ),
        pytest.param(
            silence,
            "not done within 4 s; check the server's address and the certificate authorities of the kubeconfig",
            id="the server is silent",
        ),
    ],
)
async def test_each_reason_names_the_way_out(make: Make, lease: str, answer: Any, words: str, tmp_path: Path) -> None:
    """Whatever keeps the process from its Lease."""
    async with scripted_api() as api:

        async def only_leases(request: web.Request) -> web.StreamResponse:
            # Other kinds are listed, so that the Lease alone is missing.
            if "leases" in request.path or answer is silence:
                return await answer(request)  # type: ignore[no-any-return]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

        api.answers(only_leases)
        process = make(ClusterConfig(server=api.url), tmp_path, IMPATIENT if answer is silence else RETRY)
        why, code, text, _ = await probed_once(process)
    assert why == f"Lease away/{lease} cannot be acquired: {words}"
    assert (code, text) == (503, f"{why}\n")


@pytest.mark.parametrize(("make", "_lease"), PROGRAMS)
@pytest.mark.parametrize(
    ("server", "words"),
    [
        pytest.param("http://127.0.0.1:9", "could not reach http://127.0.0.1:9: ", id="nothing listens"),
        pytest.param("", "its certificate is not trusted: ", id="the certificate is wrong"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_named(
    make: Make, _lease: str, server: str, words: str, tmp_path: Path
) -> None:
    """With what to check."""
    async with ApiServer(tmp_path / "data") as real:
        loaded = config.load(str(real.kubeconfig))
        configuration = (
            ClusterConfig(server=server) if server else ClusterConfig(server=loaded.server, auth=loaded.auth)
        )
        why, code, _, _ = await probed_once(make(configuration, tmp_path))
    assert words in why
    assert why.endswith("; check the server's address and the certificate authorities of the kubeconfig")
    assert code == 503


async def test_one_line_a_minute() -> None:
    """The first one at once, though the reason changes each second; the last one when nothing is missing any more."""
    clock, why = ManualClock(), ["Node is not listed yet"]
    readiness = Readiness(None, clock, lambda: why[0], ())  # type: ignore[arg-type]
    with capture_logs() as logs:
        following = asyncio.create_task(log_while_not_ready(readiness, clock))
        for second in range(150):
            why[0] = f"reason {second}"
            await clock.advance(1)
        assert [line["why"] for line in logs] == ["reason 0", "reason 60", "reason 120"]
        why[0] = ""
        await clock.advance(1)
        await clock.advance(100)
    following.cancel()
    assert [line["event"] for line in logs] == ["not ready"] * 3 + ["ready"]
