"""Reads the hosted side of hosted clusters: ClusterOperators, nodes, and the pods of nodes that are drained.

The address and credentials are in the Secret that `HostedCluster.status.kubeconfig` names (openshift/hypershift,
`api/hypershift/v1beta1`). The limits are `READ_S` seconds for a cluster, `ANSWER_BYTES` for an answer, `OBJECTS`
objects of a kind, and `AT_ONCE` clusters at a time. Nothing is written there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls, config
from kubekit.kube.api_errors import ConfigError, Forbidden, KubeError, NotFound
from kubekit.kube.request import Call
from kubekit.kube.transport import Timeouts
from runup.api.config_v1 import ClusterOperator
from runup.api.hypershift_v1beta1 import HostedCluster
from runup.updatestatus.control.component_objects import NODES_AT_MOST
from runup.updatestatus.control.kubernetes_objects import leaving_nodes
from runup.updatestatus.decide.alerts import Unreadable

JSON = dict[str, Any]
K = TypeVar("K", bound=Object)
Send = Callable[[Call[Any]], Awaitable[Any]]
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
ENTRY = "kubeconfig"
READ_S, AT_ONCE = 15.0, 8
ANSWER_BYTES, OBJECTS = 16 * 1024 * 1024, 1000
_TIMEOUTS = Timeouts(connect_s=5.0, answer_s=10.0)
UNNAMED = "HostedCluster.status.kubeconfig does not name a Secret"


def secret_call(cluster: HostedCluster) -> Call[JSON] | None:
    """Returns the call that reads the Secret with the kubeconfig of the hosted side, None if none is named."""
    named = cluster.status.kubeconfig
    return calls.get_raw(SECRETS, named.name, cluster.metadata.namespace) if named and named.name else None


def why_no_secret(cluster: HostedCluster, error: KubeError) -> str:
    """Returns the reason why the Secret could not be read."""
    name = cluster.status.kubeconfig.name if cluster.status.kubeconfig else ""
    secret = f"Secret {cluster.metadata.namespace}/{name}"
    if isinstance(error, Forbidden):
        return f"there is no right to get {secret}"
    return f"{secret} does not exist" if isinstance(error, NotFound) else f"{secret}: {error.message}"


async def read(cluster: HostedCluster, secret: JSON) -> dict[str, Any]:
    """Returns the fields of a snapshot that are read on the hosted side; `operators` is `Unreadable` if it fails."""
    source = f"Secret {cluster.metadata.namespace}/{secret.get('metadata', {}).get('name', '')}"
    try:
        target = config.of_untrusted(_content(secret, source), source)
        async with asyncio.timeout(READ_S):
            return await _read(target)
    except TimeoutError:
        return {"operators": Unreadable(f"the hosted cluster did not answer in {READ_S:g} s")}
    except (KubeError, DecodeError) as error:
        return {"operators": Unreadable(getattr(error, "message", str(error)))}


async def read_all(sides: Sequence[tuple[HostedCluster, JSON]]) -> list[dict[str, Any]]:
    """Returns what `read` returns for each of the clusters, in their order."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cluster: HostedCluster, secret: JSON) -> dict[str, Any]:
        async with places:
            return await read(cluster, secret)

    return await asyncio.gather(*(one(*side) for side in sides))


def _content(secret: JSON, source: str) -> bytes:
    try:
        content = base64.b64decode((secret.get("data") or {}).get(ENTRY) or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"{source}: {ENTRY} is not base64") from error
    if not content:
        raise ConfigError(f"{source} has no entry {ENTRY}")
    return content


async def _read(target: config.ClusterConfig) -> dict[str, Any]:
    # Imported here because most clusters have no hosted clusters.
    from kubekit.kube.client import Client

    async with Client(target, timeouts=_TIMEOUTS, max_answer_bytes=ANSWER_BYTES) as client:
        # Without an answer to the first question the others are not asked.
        operators = await _page(client.send, ClusterOperator)
        answers: dict[str, Any] = {"operators": operators}
        nodes = answers["nodes"] = await _tolerated(_page(client.send, Node))
        leaving = leaving_nodes(nodes)[:NODES_AT_MOST] if isinstance(nodes, tuple) else []
        if leaving:
            answers["budgets"] = await _tolerated(_page(client.send, PodDisruptionBudget))
            answers["draining_pods"] = await _tolerated(_pods_on(client.send, leaving))
            answers["drains_read"] = frozenset(leaving)
        return answers


async def _pods_on(send: Send, nodes: Sequence[str]) -> tuple[Pod, ...]:
    return tuple([pod for name in nodes for pod in await _page(send, Pod, field_selector=f"spec.nodeName={name}")])


async def _tolerated(answer: Awaitable[tuple[K, ...]]) -> tuple[K, ...] | Unreadable:
    try:
        return await answer
    except (KubeError, DecodeError) as error:
        return Unreadable(getattr(error, "message", str(error)))


async def _page(send: Send, kind: type[K], *, field_selector: str = "") -> tuple[K, ...]:
    """Returns the objects of a kind in order. Raises KubeError, also for more than `OBJECTS`, or DecodeError."""
    page = await send(calls.list_page(kind, limit=OBJECTS, field_selector=field_selector))
    if page.undecoded:
        raise DecodeError(f"{kind.__name__} {page.undecoded[0]}")
    if page.continue_:
        raise KubeError(f"there are more than {OBJECTS} objects of the kind {kind.__name__}", reason="TooManyObjects")
    return tuple(sorted(page.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))
