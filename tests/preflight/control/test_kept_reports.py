"""The ConfigMap that several runs write: who was too late decides again, and gives up at last."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import ScriptedApi, scripted_api, status
from tests.preflight.decide.test_kept_reports import report

from kubekit.kube.api_errors import Conflict
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup.preflight.control import kept_reports


class Map:
    """The ConfigMap; each time before it is written somebody else is quicker, `quicker` times."""

    def __init__(self, quicker: int) -> None:
        self.quicker = quicker
        self.version = 1
        self.data: dict[str, str] = {}

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Read it, or change it as a merge patch says that was decided on its version."""
        if request.method == "PATCH":
            patch = json.loads(await request.read())
            if self.quicker:
                self.quicker -= 1
                self.version += 1
                self.data[f"other-{self.version}.json"] = "{}"
            if patch["metadata"]["resourceVersion"] != str(self.version):
                return web.json_response(status(409, "Conflict"), status=409)
            self.version += 1
            self.data |= patch["data"]
        metadata = {"name": "preflight-history", "resourceVersion": str(self.version)}
        return web.json_response({"metadata": metadata, "data": self.data})


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server without an answer yet."""
    async with scripted_api() as made:
        yield made


async def add(api: ScriptedApi, kept: Map) -> None:
    """A run adds its report."""
    api.answers(kept.answer)  # type: ignore[arg-type]

    def write() -> None:
        with SyncClient(ClusterConfig(server=api.url)) as client:
            kept_reports.add(client, report(1))

    async with asyncio.timeout(90):
        await asyncio.to_thread(write)


@pytest.mark.parametrize("quicker", [0, 1, 9])
async def test_who_was_too_late_adds_to_what_is_there_now(api: ScriptedApi, quicker: int) -> None:
    """What the others wrote stays."""
    kept = Map(quicker)
    await add(api, kept)
    assert "run-1.json" in kept.data
    assert len(kept.data) == 1 + quicker
    assert [target.partition(" ")[0] for target in api.targets] == ["GET", "PATCH"] * (1 + quicker)


async def test_who_is_always_too_late_gives_up(api: ScriptedApi) -> None:
    """After ten times, with the server's own error; nothing is written."""
    kept = Map(20)
    with pytest.raises(Conflict):
        await add(api, kept)
    assert "run-1.json" not in kept.data
    assert len(api.targets) == 20
