"""The API client of a preflight, which refuses every request that does not only read (docs/decisions/0072 D9).

The process may run under the operator's own account, which may do everything. So requests are refused here, before they
are sent, and not left to the server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from kubekit.kube.client import Client, Warned
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request

T = TypeVar("T")

# A GET of these acts: it opens a connection to a workload, or runs a command in it.
CONNECTING = ("proxy", "exec", "attach", "portforward")


class WriteRefused(RuntimeError):
    """A preflight tried to do more than get, list and watch: a bug, or a check that is not one."""


class ReadOnlyClient(Client):
    """A client for get, list and watch; in `namespace`, its own, for all verbs."""

    def __init__(self, config: ClusterConfig, *, namespace: str, **options: Any) -> None:
        super().__init__(config, **options)
        self._namespace = namespace

    async def send(self, call: Call[T], *, warned: Warned | None = None) -> T:
        """Sends a call as `Client.send` does. Raises WriteRefused if the call does more than read."""
        refuse_writes(call.request, self._namespace)
        return await super().send(call, warned=warned)

    async def stream(
        self, call: Call[T], *, timeout_s: float = 300.0, opened: Warned | None = None
    ) -> AsyncGenerator[T, None]:
        """Streams a call as `Client.stream` does. Raises WriteRefused if the call does more than read."""
        refuse_writes(call.request, self._namespace)
        # Closed explicitly: an abandoned async generator would keep its connection until garbage collection.
        async with aclosing(super().stream(call, timeout_s=timeout_s, opened=opened)) as lines:
            async for line in lines:
                yield line


def refuse_writes(request: Request, namespace: str) -> None:
    """Raises WriteRefused unless `request` only reads, or stays in `namespace`."""
    segments = request.path.strip("/").split("/")
    if request.method == "GET" and not any(segment in CONNECTING for segment in segments[-2:]):
        return
    # /api/v1/namespaces/NS/... and /apis/GROUP/VERSION/namespaces/NS/...; the Namespace object itself is not inside.
    start = 2 if segments[0] == "api" else 3
    if namespace and segments[start : start + 2] == ["namespaces", namespace] and len(segments) > start + 2:
        return
    raise WriteRefused(f"a preflight only reads: refused {request.method} {request.path}")
