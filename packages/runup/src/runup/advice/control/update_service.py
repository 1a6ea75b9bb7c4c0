"""Queries the update service for a graph, one query at a time; `state` is the latest answer.

A failed query keeps the last graph of the same query: `runup.advice.decide` decides for how long it counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

import aiohttp

from kubekit.kube.clock import Clock
from kubekit.lang.version import Version
from runup import __version__
from runup.advice.decide.graph import MAX_BYTES, BadGraph, Graph, derive_advice, parse_graph
from runup.advice.decide.service import Failure, Query, ServiceState, unable_message
from runup.process import http_fetch, threads
from runup.process.cluster_egress import EgressSource, environment_egress

# Upstream allows an hour, which is far too long for a few hundred kilobytes.
TIMEOUT_S = 60.0
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class UpdateService:
    """The client of the update service. `on_change` is called after each answer, `ca_file` adds a CA for https.

    `egress` returns how the service is reached.
    """

    def __init__(
        self,
        clock: Clock,
        on_change: Callable[[], None],
        *,
        ca_file: str = "",
        egress: EgressSource = environment_egress,
    ) -> None:
        self.state = ServiceState()
        self._clock = clock
        self._on_change = on_change
        self._ca_file = ca_file
        self._egress = egress
        self._task: asyncio.Task[None] | None = None

    def ask(self, query: Query) -> None:
        """Starts `query`, unless the same query is in progress; another one in progress is cancelled."""
        if self.state.asking and self.state.query == query:
            return
        self._start(query)

    def ask_again(self) -> None:
        """Starts the last query again: the way to the service has changed."""
        if self.state.query is not None:
            self._start(self.state.query)

    def _start(self, query: Query) -> None:
        if self._task is not None:
            self._task.cancel()
        # The answer to another query (channel, architecture, ID) does not count for this one.
        changed = self.state.query is not None
        kept_state = self.state if self.state.query == query else ServiceState(query=query, changed=changed)
        self.state = replace(kept_state, query=query, asking=True)
        self._task = asyncio.create_task(self._query_service(query), name="update-service")

    async def close(self) -> None:
        """Cancels the query in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _query_service(self, query: Query) -> None:
        """Asks the update service once and keeps the answer, or why it is missing."""
        failure = await self._fetch(query)
        now = self._clock.now()
        if failure is None:
            new_state = replace(self.state, failure=None, failures=0, succeeded_at=now)
        else:
            new_state = replace(self.state, failure=failure, failures=self.state.failures + 1)
        self.state = replace(new_state, asking=False, attempted_at=now)
        self._on_change()

    async def _fetch(self, query: Query) -> Failure | None:
        """Fetches the graph of `query` and keeps it; returns None, or the failure in the words of RetrievedUpdates."""
        try:
            status, body = await self._get_page(query.uri)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            detail = str(error) or type(error).__name__
            return Failure("RemoteFailed", unable_message(detail))
        if status != 200:
            text = f"{status} {_PHRASES.get(status, '')}".rstrip()
            return Failure("ResponseFailed", unable_message(f"unexpected HTTP status: {text}"))
        try:
            # In a thread: the event loop has a lease to renew.
            graph = await threads.in_thread(
                lambda: _parse_usable_graph(body, query), "read the update service's answer"
            )
        except BadGraph as error:
            return Failure(error.reason, unable_message(error.message))
        self.state = replace(self.state, graph=graph)
        return None

    async def _get_page(self, uri: str) -> tuple[int, bytes]:
        """Returns status code and body of a GET. Raises aiohttp.ClientError, also for a body that is too large."""
        egress = await self._egress()
        context = egress.context(self._ca_file) if self._ca_file and uri.startswith("https:") else None
        headers = {"Accept": "application/json", "User-Agent": f"ClusterVersionOperator/{__version__}"}
        page = await http_fetch.fetch(
            uri, within_s=TIMEOUT_S, limit=MAX_BYTES, headers=headers, egress=egress, context=context
        )
        if len(page.body) > MAX_BYTES:
            raise aiohttp.ClientPayloadError(f"the answer is longer than {MAX_BYTES} bytes")
        return page.status, page.body


def _parse_usable_graph(body: bytes, query: Query) -> Graph:
    """Returns the graph with the advice derived, since a pass would need long for that. Raises BadGraph.

    A graph without the current version is returned too: a pass decides what follows from it.
    """
    graph = parse_graph(body)
    try:
        derive_advice(graph, current=Version(query.version), channel=query.channel)
    except BadGraph as error:
        if error.reason != "VersionNotFound":
            raise
    return graph
