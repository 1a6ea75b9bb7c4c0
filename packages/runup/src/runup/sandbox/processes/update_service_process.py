"""The update service: serves the scenario's graph, filtered by channel, as a Cincinnati server does."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

JSON = dict[str, Any]
CHANNELS = "io.openshift.upgrades.graph.release.channels"


class UpdateService:
    """A server of `graph()` at /graph on 127.0.0.1; an async context manager. `port` 0 takes a free one."""

    def __init__(self, graph: Callable[[], JSON], *, port: int = 0) -> None:
        self._graph = graph
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The URL for `--update-service`."""
        return f"http://127.0.0.1:{self._port}/graph"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes([web.get("/graph", self._answer_request)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer_request(self, request: web.Request) -> web.Response:
        if "channel" not in request.query:
            body = {"kind": "missing_params", "value": "mandatory client parameters missing: channel"}
            return web.json_response(body, status=400)
        return web.json_response(graph_of_channel(self._graph(), request.query["channel"]))


def graph_of_channel(graph: JSON, channel: str) -> JSON:
    """Returns the part of `graph` whose releases are in `channel`; a release without channels is in all of them."""
    kept_nodes = [number for number, node in enumerate(graph["nodes"]) if _in_channel(node, channel)]
    renumbered = {old: new for new, old in enumerate(kept_nodes)}
    versions = {graph["nodes"][number]["version"] for number in kept_nodes}
    conditional = []
    for group in graph["conditionalEdges"]:
        edges = [edge for edge in group["edges"] if edge["from"] in versions and edge["to"] in versions]
        if edges:
            conditional.append({**group, "edges": edges})
    return {
        "version": graph["version"],
        "nodes": [graph["nodes"][number] for number in kept_nodes],
        "edges": [[renumbered[a], renumbered[b]] for a, b in graph["edges"] if a in renumbered and b in renumbered],
        "conditionalEdges": conditional,
    }


def _in_channel(node: JSON, channel: str) -> bool:
    channels_text = node["metadata"].get(CHANNELS)
    return not channels_text or channel in channels_text.split(",")
