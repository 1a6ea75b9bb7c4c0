"""Which pods are still on the nodes that are being drained: asked node by node, for watching every pod costs too much.

In: the names of the nodes that drain now. Out: `state`, by node: its pods, or why they could not be listed. A
cluster of 5,000 nodes has 200,000 pods and drains hundreds of nodes at a time; the pods that hold up a drain are on
few of them. So a node is asked about once it has drained for a while, some are asked at a time, and each again now and
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import KubeError
from runup.updatestatus.decide.snapshot import Unreadable

# A drain that goes well takes a minute; asking sooner would cost requests for nothing.
PATIENCE_S = 60.0
# How long an answer counts, and how many nodes are asked about in that time: one small list a second.
REFRESH_S = 30.0
NODES_AT_MOST = 30
# How often it is looked whether a node is due.
_STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class PodsOfNode:
    """The pods that are bound to a node; `error` says why they could not be listed, `undecoded` which not be read."""

    pods: tuple[Pod, ...] = ()
    error: str = ""
    undecoded: tuple[codec.Undecodable, ...] = ()


class Drains:
    """Keeps `state` up to date for the nodes that `follow` names; calls `on_change()` when it changed."""

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self.state: Mapping[str, PodsOfNode] = {}
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._since: dict[str, float] = {}
        self._read: dict[str, float] = {}

    def follow(self, nodes: Iterable[str]) -> None:
        """The nodes that drain now; what is known of others is forgotten."""
        now = self._clock.monotonic()
        wanted = set(nodes)
        self._since = {name: self._since.get(name, now) for name in sorted(wanted)}
        self._read = {name: at for name, at in self._read.items() if name in wanted}
        if not self.state.keys() <= wanted:
            self.state = {name: pods for name, pods in self.state.items() if name in wanted}

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            for name in self._due():
                await self._ask(name)
            await self._clock.sleep(_STEP_S)

    def _due(self) -> list[str]:
        """The nodes to ask about now: those that have drained longest, the never asked first."""
        now = self._clock.monotonic()
        patient = sorted((since, name) for name, since in self._since.items() if now - since >= PATIENCE_S)
        chosen = [name for _, name in patient[:NODES_AT_MOST]]
        return [name for name in chosen if now - self._read.get(name, float("-inf")) >= REFRESH_S]

    def pods(self) -> tuple[Pod, ...] | Unreadable:
        """All pods that are known to be on draining nodes, in order; or why some of them are not known."""
        for name, found in sorted(self.state.items()):
            if found.error:
                return Unreadable(f"pods on node {name}: {found.error}")
        return tuple(pod for _, found in sorted(self.state.items()) for pod in found.pods)

    def undecoded(self) -> tuple[codec.Undecodable, ...]:
        """The pods on draining nodes that are there and could not be read."""
        return tuple(bad for _, found in sorted(self.state.items()) for bad in found.undecoded)

    async def _ask(self, name: str) -> None:
        asked = self._clock.monotonic()
        try:
            listed = await self._client.listing(Pod, field_selector=f"spec.nodeName={name}")
            found = PodsOfNode(tuple(listed.items), undecoded=listed.undecoded)
        except (KubeError, codec.DecodeError) as error:
            found = PodsOfNode(error=str(error))
        if name not in self._since:
            return  # it is done draining
        self._read[name] = asked
        before = self.state.get(name)
        self.state = {**self.state, name: found}
        if before != found:
            self._on_change()
