"""The client of a preflight: it can read, and nothing else (decision D9).

The process may run with the operator's own account, which may do everything. So the refusal is here, before a request
is sent, and not left to the server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from kubekit.kube.client import Client, Warned
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request

T = TypeVar("T")

# Reading these is doing: they open a connection to, or run a command in, a workload.
CONNECTING = ("proxy", "exec", "attach", "portforward")


class WriteRefused(RuntimeError):
    """A preflight tried to do more than get, list and watch: a bug, or a check that is none."""


class ReadOnlyClient(Client):
    """A client for get, list and watch; in `namespace`, its own, for all verbs."""

    def __init__(self, config: ClusterConfig, *, namespace: str, **options: Any) -> None:
        super().__init__(config, **options)
        self._namespace = namespace

    async def send(self, call: Call[T], *, warned: Warned | None = None) -> T:
        """See `Client.send`; raises WriteRefused."""
        refuse_writes(call.request, self._namespace)
        return await super().send(call, warned=warned)

    async def stream(
        self, call: Call[T], *, timeout_s: float = 300.0, opened: Warned | None = None
    ) -> AsyncGenerator[T, None]:
        """See `Client.stream`; raises WriteRefused."""
        refuse_writes(call.request, self._namespace)
        async with aclosing(super().stream(call, timeout_s=timeout_s, opened=opened)) as lines:
            async for line in lines:
                yield line


def refuse_writes(request: Request, namespace: str) -> None:
    """Raise WriteRefused unless `request` only reads, or stays in `namespace`."""
    parts = request.path.strip("/").split("/")
    if request.method == "GET" and not any(part in CONNECTING for part in parts[-2:]):
        return
    # /api/v1/namespaces/NS/... and /apis/GROUP/VERSION/namespaces/NS/...; the Namespace object itself is not inside.
    start = 2 if parts[0] == "api" else 3
    if namespace and parts[start : start + 2] == ["namespaces", namespace] and len(parts) > start + 2:
        return
    raise WriteRefused(f"a preflight only reads: refused {request.method} {request.path}")
