"""A Pod that fetches a release, by a clock that stands: how long it is waited for, and what is asked again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.kubekit.kube.apiscript import ScriptedApi, eventually, scripted_api, status

from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded
from runup.applying.control.release_source import WITHIN_S, FromPod, FromRegistry, fetching
from runup.applying.decide import retrieval_pod
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.release.control.release_images import ReleaseImages

RELEASE = Release(image="registry.example/release@sha256:" + "52" * 32, version="5.2.0")


@dataclass
class Server:
    """It takes Pods and answers what becomes of them; `left` is what earlier retrievals left, by resource."""

    api: ScriptedApi
    statuses: list[Any] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Lists, Pods, deletions."""
        resource, name = request.path.split("/")[-2:]
        if request.method == "GET" and name in ("pods", "jobs"):
            items = [{"metadata": {"name": each}} for each in self.left.get(name, ())]
            return web.json_response({"metadata": {}, "items": items})
        if request.method == "GET":
            said = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            if isinstance(said, int):
                reason = {404: "NotFound", 503: "ServiceUnavailable", 403: "Forbidden"}[said]
                return web.json_response(status(said, reason, "no") | {"details": {"name": name}}, status=said)
            return web.json_response({"metadata": {"name": name}, "status": said})
        if request.method == "DELETE" and name == "gone":
            return web.json_response(status(404, "NotFound") | {"details": {"name": name}}, status=404)
        return web.json_response({"metadata": {"name": resource}})

    @property
    def looks(self) -> int:
        """How often somebody looked at the Pod."""
        return sum(re.search(r"GET .*/pods/version-", target) is not None for target in self.api.targets)

    @property
    def deleted(self) -> list[str]:
        """Returns the names of deleted objects."""
        return [target.rpartition("/")[2] for target in self.api.targets if target.startswith("DELETE")]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """With nothing in it."""
    async with scripted_api() as api:
        made = Server(api)
        api.answers(made.answer)
        yield made


RUNS, DONE = {"phase": "Running"}, {"phase": "Succeeded"}
FAILED = {"phase": "Failed", "reason": "Evicted", "message": "no disk"}


async def fetched(server: Server, folder: Path) -> tuple[str, ManualClock]:
    """Why a release was not fetched, and when that was known."""
    clock = ManualClock()
    async with Client(ClusterConfig(server=server.api.url), clock=ManualClock()) as client:
        source = FromPod(client, clock, namespace="ns", node="node-1", folder=folder)
        loading = asyncio.create_task(source.load(RELEASE))
        while not loading.done():
            await asyncio.wait({loading}, timeout=0.005)
            if clock.sleeping:
                assert clock.sleeping == (1,), "it is looked at every second"
                await clock.advance(1)
        with pytest.raises(NotLoaded) as caught:
            await loading
    assert caught.value.reason == "RetrievePayload"
    return caught.value.message.removeprefix("Unable to download and prepare the update: "), clock


@pytest.mark.parametrize(
    ("statuses", "said", "after_s"),
    [
        pytest.param([FAILED], 'failed with reason "Evicted"', 0, id="it fails"),
        pytest.param([RUNS, 503, 403, FAILED], 'failed with reason "Evicted"', 3, id="it could not be looked at twice"),
        pytest.param([RUNS, 404], "was deleted by somebody else", 1, id="it is gone"),
        pytest.param([DONE], "the pod ended and ", 0, id="it ends and has brought nothing"),
    ],
)
async def test_what_becomes_of_a_pod(
    server: Server, tmp_path: Path, statuses: list[Any], said: str, after_s: float
) -> None:
    """The result is reported as soon as it is known."""
    server.statuses = statuses
    with capture_logs() as logs:
        shown, clock = await fetched(server, tmp_path)
    assert [line["image"] for line in logs if line["event"] == "release: a pod fetches it"] == [RELEASE.image]
    assert said in shown
    assert clock.monotonic() == after_s
    assert server.deleted == [], "what failed stays to be looked at"


@pytest.mark.slow
async def test_a_pod_is_waited_for_four_minutes(server: Server, tmp_path: Path) -> None:
    """To the second; what it waited for last is reported, or why it could not be looked at."""
    server.statuses = [503]
    shown, clock = await fetched(server, tmp_path)
    assert (clock.monotonic(), server.looks) == (240, 240)
    assert re.fullmatch(r"pod version-5\.2\.0-[a-z0-9]{5} did not end within 240 s: no", shown)
    assert WITHIN_S == 240


async def test_no_time_is_no_look(server: Server, tmp_path: Path) -> None:
    """Then it was not seen."""
    server.statuses = [RUNS]
    async with Client(ClusterConfig(server=server.api.url)) as client:
        source = FromPod(client, ManualClock(), namespace="ns", node="n", folder=tmp_path, within_s=0)
        with pytest.raises(NotLoaded, match="did not end within 0 s: it was not seen"):
            await source.load(RELEASE)
    assert server.looks == 0


async def test_what_earlier_retrievals_left_goes_first(server: Server, tmp_path: Path) -> None:
    """All Pods with the label, and the Jobs by their name; what is gone already is fine."""
    server.statuses = [FAILED]
    server.left = {"pods": ["any", "gone"], "jobs": ["version-old", "other", "a-version-x"]}
    await fetched(server, tmp_path)
    assert server.deleted == ["any", "gone", "version-old"]
    lists = [target for target in server.api.targets if re.search(r"GET .*/(pods|jobs)(\?|$)", target)]
    assert ["labelSelector" in target for target in lists] == [True, False]


async def test_one_release_is_fetched_at_a_time(server: Server, tmp_path: Path) -> None:
    """Each Pod empties the folder of all others."""
    server.statuses = [RUNS]
    clock = ManualClock()
    async with Client(ClusterConfig(server=server.api.url)) as client:
        source = FromPod(client, clock, namespace="ns", node="n", folder=tmp_path)
        one, other = (asyncio.create_task(source.load(RELEASE)) for _ in range(2))
        await eventually(lambda: clock.sleeping == (1,))
        assert sum(target.startswith("POST") for target in server.api.targets) == 1
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert len(server.deleted) == 1, "who gives up takes the Pod along"
        await eventually(lambda: sum(target.startswith("POST") for target in server.api.targets) == 2)
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


@pytest.mark.parametrize("image", ["", None])
async def test_which_way_releases_come(image: str | None, tmp_path: Path) -> None:
    """As the operator was asked; an image must be named either way."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        for way, kind in (("pod", FromPod), ("registry", FromRegistry)):
            source = fetching(
                way,  # type: ignore[arg-type]
                client,
                ManualClock(),
                images=ReleaseImages(client),
                settings=PodSettings(namespace="ns", node_name="n"),
                folder=tmp_path,
                profile="p",
            )
            assert isinstance(source, kind)
            with pytest.raises(NotLoaded, match="no payload image has been specified") as caught:
                await source.load(Release(image=image or ""))
            assert caught.value.reason == "RetrievePayload"
    assert retrieval_pod.ACTIVE_DEADLINE_S < WITHIN_S
