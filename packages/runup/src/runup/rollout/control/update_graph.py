"""Reads the graph of the update service, from which the hops of a path are chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from kubekit.api.core_v1 import Node
from kubekit.kube.clock import Clock
from runup.advice.control.update_service import UpdateService
from runup.advice.decide.graph import MULTI, Graph
from runup.advice.decide.service import NotAsked, query_for
from runup.api.config_v1 import ClusterVersion

# An answer counts for this long.
FRESH_FOR = timedelta(minutes=10)
# A pass waits no longer for the service; the answer is there for a later pass.
WAIT_S = 10.0


class GraphReader:
    """The client of the update service that ClusterVersion names; `wait_s` are the seconds that a caller waits."""

    def __init__(self, clock: Clock, *, wait_s: float = WAIT_S) -> None:
        self._clock = clock
        self._answered = asyncio.Event()
        self._wait_s = wait_s
        self._service = UpdateService(clock, self._answered.set)

    async def read(self, cluster: ClusterVersion, nodes: Sequence[Node]) -> Graph | str:
        """Returns the graph, or the reason for its absence."""
        architecture = next((node.status.node_info.architecture for node in nodes), "")
        if cluster.status.desired.architecture == MULTI:
            architecture = MULTI
        try:
            query = query_for(cluster.spec, cluster.status.desired, configured_url="", architecture=architecture)
        except NotAsked as error:
            return error.message
        state = self._service.state
        at = state.succeeded_at
        if state.query == query and state.graph is not None and at is not None and self._clock.now() - at < FRESH_FOR:
            return state.graph
        self._answered.clear()
        self._service.ask(query)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._answered.wait()
        except TimeoutError:
            return "the update service has not answered yet"
        state = self._service.state
        if state.failure is not None:
            return state.failure.message
        return state.graph if state.graph is not None else "the update service has not answered yet"

    async def close(self) -> None:
        """Cancels the query in progress."""
        await self._service.close()
