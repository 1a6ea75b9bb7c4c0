"""The update service's graph: bytes in, releases that this cluster can update to out.

The service may send rules that this version does not know. Such a rule removes the update that it guards (fail closed),
because an update without its condition would look safer than it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.errors import Terminal
from kubekit.lang.version import Version, parse
from runup.advice.decide.update_paths import Step
from runup.api.config_v1 import ConditionalUpdate, ConditionalUpdateRisk, MatchingRule, Release

ARCHITECTURE = "release.openshift.io/architecture"
CHANNELS = "io.openshift.upgrades.graph.release.channels"
MULTI = "Multi"


class GraphNode(Wire, frozen=True):
    """A release in the graph; `payload` is its pull spec."""

    version: str
    payload: str = ""
    metadata: dict[str, str] = {}


class ConditionalEdge(Wire, frozen=True):
    """An update, by version."""

    from_: str = msgspec.field(default="", name="from")
    to: str = ""


class ConditionalEdges(Wire, frozen=True):
    """Updates that share risks."""

    edges: tuple[ConditionalEdge, ...] = ()
    risks: tuple[ConditionalUpdateRisk, ...] = ()


class GraphDocument(Wire, frozen=True):
    """The answer of the update service; `edges` are pairs of indexes into `nodes`."""

    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    conditional_edges: tuple[ConditionalEdges, ...] = ()


class Graph(msgspec.Struct, frozen=True, dict=True):
    """A graph as answered, with the values that are derived from it once."""

    document: GraphDocument

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The nodes as releases."""
        return tuple(_release(node) for node in self.document.nodes)

    @cached_property
    def steps(self) -> dict[str, list[Step]]:
        """The updates that lead on from each version, with and without risks."""
        versions = [node.version for node in self.document.nodes]
        steps: dict[str, list[Step]] = {version: [] for version in versions}
        for origin, to in self.document.edges:
            steps[versions[origin]].append(Step(versions[origin], versions[to]))
        for group in self.document.conditional_edges:
            names = tuple(risk.name for risk in group.risks)
            for edge in group.edges:
                if edge.from_ in steps and edge.to in steps:
                    steps[edge.from_].append(Step(edge.from_, edge.to, names))
        return steps


class Advice(msgspec.Struct, frozen=True):
    """The updates offered from one release, newest first: those without risks, and those that carry some."""

    updates: tuple[Release, ...] = ()
    conditional: tuple[ConditionalUpdate, ...] = ()


class BadGraph(Terminal):
    """The answer is not a usable graph; the reasons are ResponseInvalid and VersionNotFound."""


def parse_graph(data: bytes) -> Graph:
    """Returns the graph in `data`. Raises BadGraph if it cannot be used."""
    try:
        document = codec.decode(GraphDocument, data)
    except codec.DecodeError as error:
        raise BadGraph(f"the update service's answer is no graph: {error}", reason="ResponseInvalid") from error
    last = len(document.nodes)
    for edge in document.edges:
        if not all(0 <= index < last for index in edge):
            raise BadGraph(f"edge {list(edge)} points outside the {last} nodes", reason="ResponseInvalid")
    for node in document.nodes:
        if parse(node.version) is None:
            raise BadGraph(f"node version {node.version!r} is no semantic version", reason="ResponseInvalid")
    return Graph(document)


def advice(graph: Graph, *, current: Version, channel: str, migrating: bool = False) -> Advice:
    """Returns the updates that `graph` offers from `current`; with `migrating` (to Multi) only the current version.

    Raises BadGraph with reason VersionNotFound if `current` is not a node.
    """
    here = _current_index(graph, current, channel)
    if migrating:
        return Advice(updates=(graph.releases[here],))
    plain = tuple(graph.releases[to] for origin, to in graph.document.edges if origin == here)
    conditional = _conditional(graph, current)
    # A release that is offered with and without risks counts as one with risks.
    guarded = {update.release.image for update in conditional}
    return Advice(
        updates=newest_first(release for release in plain if release.image not in guarded),
        conditional=tuple(sorted(_unique(conditional), key=lambda update: _order(update.release), reverse=True)),
    )


def reachable(graph: Graph, current: Version) -> tuple[Release, ...]:
    """Returns every release that some path from `current` reaches, regardless of risks; `current` is not included."""
    by_version = {node.version: index for index, node in enumerate(graph.document.nodes)}
    hops: dict[int, set[int]] = {}
    for origin, to in graph.document.edges:
        hops.setdefault(origin, set()).add(to)
    for group in graph.document.conditional_edges:
        for edge in group.edges:
            ends = by_version.get(edge.from_), by_version.get(edge.to)
            if ends[0] is not None and ends[1] is not None:
                hops.setdefault(ends[0], set()).add(ends[1])
    start = {index for index, node in enumerate(graph.document.nodes) if parse(node.version) == current}
    visited, queue = set(start), list(start)
    while queue:
        unvisited = hops.get(queue.pop(), set()) - visited
        visited |= unvisited
        queue.extend(unvisited)
    return newest_first(graph.releases[index] for index in visited - start)


def newest_first(releases: Iterable[Release]) -> tuple[Release, ...]:
    """Returns `releases` by version, the newest first."""
    return tuple(sorted(releases, key=_order, reverse=True))


def known_rules(risk: ConditionalUpdateRisk) -> ConditionalUpdateRisk:
    """Returns `risk` with only those matching rules that are valid and of a known type."""
    return replace(risk, matching_rules=tuple(rule for rule in risk.matching_rules if _valid(rule)))


def _valid(rule: MatchingRule) -> bool:
    if rule.type == "Always":
        return rule.promql is None
    return rule.type == "PromQL" and rule.promql is not None and bool(rule.promql.promql)


def _conditional(graph: Graph, current: Version) -> tuple[ConditionalUpdate, ...]:
    by_version = {release.version: release for release in graph.releases}
    risks: dict[str, list[ConditionalUpdateRisk]] = {}
    for group in graph.document.conditional_edges:
        for edge in group.edges:
            if edge.from_ != current.text:
                continue
            to = edge.to
            if to not in by_version:
                raise BadGraph(f"a conditional edge leads to {to!r}, which is no node", reason="ResponseInvalid")
            risks.setdefault(to, []).extend(group.risks)
    updates = []
    for to, edge_risks in risks.items():
        pruned = tuple(known_rules(risk) for risk in edge_risks)
        # Fail closed: an update with a risk whose rules are all unknown is not offered.
        if all(risk.matching_rules for risk in pruned):
            updates.append(ConditionalUpdate(release=by_version[to], risks=_by_name(pruned)))
    return tuple(updates)


def _by_name(risks: Iterable[ConditionalUpdateRisk]) -> tuple[ConditionalUpdateRisk, ...]:
    return tuple({risk.name: risk for risk in risks}.values())


def _unique(updates: tuple[ConditionalUpdate, ...]) -> Iterable[ConditionalUpdate]:
    """Returns the conditional updates without those that share an image: they contradict each other."""
    images = [update.release.image for update in updates]
    return (update for update in updates if images.count(update.release.image) == 1)


def _current_index(graph: Graph, current: Version, channel: str) -> int:
    for index, node in enumerate(graph.document.nodes):
        if parse(node.version) == current:
            return index
    raise BadGraph(
        f'currently reconciling cluster version {current} not found in the "{channel}" channel',
        reason="VersionNotFound",
    )


def _release(node: GraphNode) -> Release:
    architecture = node.metadata.get(ARCHITECTURE, "")
    return Release(
        version=node.version,
        image=node.payload,
        # The graph has one string of metadata per key; channels are separated by commas.
        url=node.metadata.get("url", ""),
        # The graph writes `multi`, ClusterVersion `Multi`.
        architecture=MULTI if architecture.lower() == "multi" else architecture,
        channels=tuple(sorted(filter(None, (c.strip() for c in node.metadata.get(CHANNELS, "").split(","))))),
    )


def _order(release: Release) -> tuple[bool, Version]:
    version = parse(release.version)
    return version is not None, version or Version("0.0.0")
