"""Container checks as the target follows them: whom it waits for and how long, on an API server with a manual clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubekit.api.core_v1 import Namespace, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import load
from kubekit.lang.version import Version
from kubesandbox.apiserver.server import ApiServer
from runup.checks.decide.declarative import declared_check
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Context
from runup.preflight.decide import container_check_pods
from runup.process.read_only_client import ReadOnlyClient
from runup.target import container_checks as shell
from runup.target.container_checks import Containers

NAMESPACE = "openshift-cluster-version-operator"
PODS = resource_of(Pod)
NOW = datetime(2026, 1, 14, tzinfo=UTC)
PINNED = {"widget-operator": "registry.example/widgets@sha256:" + "a" * 64}
CHECK = declared_check(
    {
        "apiVersion": "preflight.runup.dev/v1alpha1",
        "kind": "PreflightCheck",
        "metadata": {"name": "widgets"},
        "spec": {
            "component": "widgets",
            "targets": ">=5.2.0-0",
            "container": {"image": "widget-operator", "timeoutSeconds": 30},
            "risk": {"name": "WidgetsBroken", "message": "Widgets break."},
        },
    },
    file="widgets.yaml",
)


@dataclass
class World:
    """An API server, and the target's view of its container checks."""

    admin: Client
    checks: Containers
    clock: ManualClock
    data: Path
    changed: asyncio.Event
    following: asyncio.Task[None]

    async def look(self, target: str = "5.2.0") -> CheckOutcome | None:
        """What is known about the check now."""
        return (await self.checks.look(Context(source=Version("5.0.0"), target=Version(target), now=NOW))).get(
            "widgets"
        )

    async def later(self, seconds: float) -> CheckOutcome | None:
        """What is known after a while."""
        self.clock.jump(seconds)
        return await self.look()

    async def make_pod(self, phase: str, log: bytes = b"") -> None:
        """The managing operator makes the Pod that is wanted, and its container comes to `phase`."""
        (wanted,) = self.checks.wanted
        name = container_check_pods.pod_name(0)
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": container_check_pods.NAME},
            "annotations": {container_check_pods.RUN_ANNOTATION: container_check_pods.run_of("p1", wanted)},
        }
        spec = {"containers": [{"name": "check", "image": PINNED["widget-operator"]}]}
        made = await self.admin.send(calls.create(PODS, {"metadata": metadata, "spec": spec}))
        folder = self.data / "pods" / f"{NAMESPACE}_{name}_{made['metadata']['uid']}"
        folder.mkdir(parents=True)
        (folder / "check.log").write_bytes(log)
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        statuses = [{"name": "check", "state": ended if phase == "Succeeded" else {"running": {}}}]
        status = {"status": {"phase": phase, "containerStatuses": statuses}}
        await self.admin.send(calls.merge_patch(PODS, name, status, NAMESPACE, subresource="status"))

    async def until(self, phase: str) -> None:
        """Wait until the target's cache has it."""
        await self._until(lambda pods: any(pod.status.phase == phase for pod in pods))

    async def gone(self) -> None:
        """Somebody removes the Pod, and the target has seen it."""
        await self.admin.send(calls.delete(PODS, container_check_pods.pod_name(0), NAMESPACE, grace_period_s=0))
        await self._until(lambda pods: not pods)

    async def unseen(self) -> None:
        """The Pod is removed while its watch is cut."""
        self.following.cancel()
        await asyncio.gather(self.following, return_exceptions=True)
        await self.admin.send(calls.delete(PODS, container_check_pods.pod_name(0), NAMESPACE, grace_period_s=0))

    async def _until(self, holds: Callable[[list[Pod]], bool]) -> None:
        async with asyncio.timeout(90):
            while not holds(list(self.checks.pods.all())):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running_checks(
    folder: Path, preflight_id: str = "p1", images: dict[str, str] | None = None
) -> AsyncIterator[World]:
    """The target of a preflight with one container check."""
    clock, changed = ManualClock(NOW), asyncio.Event()
    async with ApiServer(folder / "data") as server:
        config = load(str(server.kubeconfig))
        async with Client(config) as admin, ReadOnlyClient(config, namespace=NAMESPACE) as client:
            await admin.send(calls.create(resource_of(Namespace), {"metadata": {"name": NAMESPACE}}))
            checks = Containers(
                client,
                [CHECK],
                preflight_id=preflight_id,
                namespace=NAMESPACE,
                images=PINNED if images is None else images,
                clock=clock,
                changed=changed.set,
            )
            following = asyncio.create_task(checks.run())
            try:
                yield World(admin, checks, clock, folder / "data", changed, following)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)


def report(**changes: Any) -> bytes:
    """What a container writes."""
    said = {"format": "preflight-v1-json", "targetVersion": "5.2.0", "executionStatus": "completed"}
    return json.dumps(said | {"checks": [{"name": "W", "result": "Clear"}]} | changes).encode() + b"\n"


async def test_a_pod_that_nobody_makes_is_waited_for_and_then_unknown(tmp_path: Path) -> None:
    """An operator that knows no container checks costs the check its answer, not the preflight its end."""
    async with running_checks(tmp_path) as here:
        assert await here.look() is None
        assert [(each.check, each.image, each.run) for each in here.checks.wanted] == [
            ("widgets", "widget-operator", 1)
        ]
        assert await here.later(shell.MADE_WITHIN_S - 1) is None
        said = await here.later(2)
        assert said is not None
        assert said.result == "Unknown"
        assert "after 90 s the managing operator has made no Pod" in said.message


async def test_it_is_asked_for_again_and_what_it_said_counts_meanwhile(tmp_path: Path) -> None:
    """A container looks once; ten minutes later another one does, and its answer takes the place of the first."""
    async with running_checks(tmp_path) as here:
        assert await here.look() is None
        await here.make_pod("Succeeded", report())
        await here.until("Succeeded")
        said = await here.look()
        assert (said and said.result) == "Clear"
        said = await here.later(shell.AGAIN_S)
        assert (said and said.result) == "Clear"
        assert [each.run for each in here.checks.wanted] == [2]
        # The first run's Pod is still there, and is not read a second time.
        assert (said := await here.later(1)) is not None
        assert said.result == "Clear"
        await here.gone()
        applies = {
            "checks": [{"name": "W", "result": "Applies"}],
            "risks": [{"name": "WidgetsBroken", "message": "Two."}],
        }
        await here.make_pod("Succeeded", report(**applies))
        await here.until("Succeeded")
        assert (said := await here.look()) is not None
        assert [finding.message for finding in said.findings] == ["Two."]


async def test_one_that_could_not_tell_is_asked_again_sooner(tmp_path: Path) -> None:
    """A registry that was away for a moment is no reason to wait ten minutes."""
    async with running_checks(tmp_path) as here:
        await here.look()
        await here.make_pod("Succeeded", b"nonsense")
        await here.until("Succeeded")
        assert (said := await here.look()) is not None
        assert said.result == "Unknown"
        await here.later(shell.AFTER_UNKNOWN_S)
        assert [each.run for each in here.checks.wanted] == [2]


async def test_one_that_runs_on_is_given_up_however_its_node_takes_it(tmp_path: Path) -> None:
    """A node that is gone ends no container: the target counts for itself."""
    async with running_checks(tmp_path) as here:
        await here.look()
        await here.make_pod("Running")
        await here.until("Running")
        assert await here.later(shell.MADE_WITHIN_S + 30 + shell.GRACE_S - 1) is None
        assert (said := await here.later(2)) is not None
        assert (
            "after 180 s its container in Pod cluster-version-operator-preflight-check-0 has not ended" in said.message
        )


async def test_one_whose_log_is_out_of_reach_is_not_said_to_run(tmp_path: Path) -> None:
    """It ended; its node, or the Pod itself, is gone before anybody has read what it wrote."""
    async with running_checks(tmp_path) as here:
        await here.look()
        await here.make_pod("Succeeded", report())
        await here.until("Succeeded")
        await here.unseen()
        assert await here.look() is None
        assert (said := await here.later(shell.MADE_WITHIN_S + 30 + shell.GRACE_S)) is not None
        assert said.result == "Unknown"
        assert "the log of Pod cluster-version-operator-preflight-check-0 cannot be read: after 180 s" in said.message
        assert "not found" in said.message


@pytest.mark.parametrize(
    ("changes", "target", "result", "words"),
    [
        pytest.param(
            {"preflight_id": ""}, "5.2.0", "Unknown", "run in a cluster that its operator", id="from a laptop"
        ),
        pytest.param({"images": {}}, "5.2.0", "Unknown", "name no image 'widget-operator'", id="an image of nobody's"),
        pytest.param({}, "5.1.0", "Skipped", "Not for an update from 5.0.0 to 5.1.0", id="another update"),
    ],
)
async def test_without_a_container(
    tmp_path: Path, changes: dict[str, Any], target: str, result: str, words: str
) -> None:
    """Said at once, and nothing is asked for."""
    async with running_checks(tmp_path, **changes) as here:
        assert (said := await here.look(target)) is not None
        assert (said.result, words in said.message) == (result, True)
        assert here.checks.wanted == ()
