"""Lists the pods that are still on draining nodes, node by node, because watching every pod costs too much.

Takes the names of the nodes that drain now. Keeps `state`: for each node its pods, or why they could not be listed. A
cluster of 5,000 nodes has 200,000 pods and drains hundreds of nodes at a time; the pods that block a drain are on few
of them. So a node is queried once it has drained for a while, only some nodes at a time, and each at intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.updatestatus.decide.snapshot import Unreadable

# A drain that goes well takes a minute; asking sooner would cost requests for nothing.
PATIENCE_S = 60.0
# How long an answer is valid, and how many nodes are queried in that time: one small list a second.
REFRESH_S = 30.0
NODES_AT_MOST = 30
# How often to check whether a node is due.
_STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class PodsOfNode:
    """The pods that are bound to a node; `error` says why listing failed, `undecoded` holds those that cannot be
    decoded.
    """

    pods: tuple[Pod, ...] = ()
    error: str = ""
    undecoded: tuple[codec.Undecodable, ...] = ()


class DrainingPods:
    """Keeps `state` up to date for the nodes that `follow` names, and calls `on_change()` after a change."""

    def __init__(self, client: Client, clock: Clock, on_change: Callable[[], None]) -> None:
        self.state: Mapping[str, PodsOfNode] = {}
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._since: dict[str, float] = {}
        self._read: dict[str, float] = {}

    def follow(self, nodes: Iterable[str], at_once: Collection[str] = ()) -> None:
        """Sets the nodes that drain now, and forgets all others.

        Nodes of `at_once` that are new are due without waiting: an earlier controller saw that they are held up.
        """
        now = self._clock.monotonic()
        wanted_nodes = set(nodes)
        begun = {name: now - PATIENCE_S if name in at_once else now for name in sorted(wanted_nodes)}
        self._since = {name: self._since.get(name, at) for name, at in begun.items()}
        self._read = {name: at for name, at in self._read.items() if name in wanted_nodes}
        if not self.state.keys() <= wanted_nodes:
            self.state = {name: pods for name, pods in self.state.items() if name in wanted_nodes}

    async def run(self) -> None:
        """Queries the nodes that are due until cancelled."""
        while True:
            for name in self.due():
                await self.ask(name)
            await self._clock.sleep(_STEP_S)

    def due(self) -> list[str]:
        """Returns the nodes to query now: of those that drained longest, those whose answer is missing or too old."""
        now = self._clock.monotonic()
        long_draining = sorted((since, name) for name, since in self._since.items() if now - since >= PATIENCE_S)
        longest_draining = [name for _, name in long_draining[:NODES_AT_MOST]]
        return [name for name in longest_draining if now - self._read.get(name, float("-inf")) >= REFRESH_S]

    def pods(self) -> tuple[Pod, ...] | Unreadable:
        """Returns all known pods on draining nodes, in order; or Unreadable if some could not be listed."""
        for name, node_pods in sorted(self.state.items()):
            if node_pods.error:
                return Unreadable(f"pods on node {name}: {node_pods.error}")
        return tuple(pod for _, node_pods in sorted(self.state.items()) for pod in node_pods.pods)

    def read(self) -> frozenset[str]:
        """Returns the nodes whose pods were listed."""
        return frozenset(name for name, node_pods in self.state.items() if not node_pods.error)

    def undecoded(self) -> tuple[codec.Undecodable, ...]:
        """Returns the pods on draining nodes that exist but could not be decoded."""
        return tuple(bad for _, node_pods in sorted(self.state.items()) for bad in node_pods.undecoded)

    async def ask(self, name: str) -> None:
        """Lists the pods on a node; drops the answer if the node is not drained any more by then."""
        asked_at = self._clock.monotonic()
        try:
            listing = await self._client.listing(Pod, field_selector=f"spec.nodeName={name}")
            node_pods = PodsOfNode(tuple(listing.items), undecoded=listing.undecoded)
        except (KubeError, codec.DecodeError) as error:
            node_pods = PodsOfNode(error=str(error))
        if name not in self._since:
            return  # it is done draining
        self._read[name] = asked_at
        before = self.state.get(name)
        self.state = {**self.state, name: node_pods}
        if before != node_pods:
            self._on_change()
