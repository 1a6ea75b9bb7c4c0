"""Parses the update service's graph, and derives from it the releases that a cluster can update to.

In: the service's answer as bytes, and the cluster's version and channel. Out: `Advice`, or BadGraph.
The service may send rules that this version does not know. Such a rule removes the update that it guards (fail closed),
because an update without its condition would look safer than it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.formats import URLError, parse_url
from kubekit.lang.gotext import quote_go
from kubekit.lang.text import shorten
from kubekit.lang.version import Version, parse
from runup.advice.decide.update_paths import StepMap, UpdateStep
from runup.api.config_v1 import ConditionalUpdate, ConditionalUpdateRisk, Release

# The service is not trusted to be modest: an answer of 63 MiB can decode to 3 GiB, and one of 1 MB can name 40 million
# pairs of an update and a risk. Processing a graph within these limits takes a second at most. The largest public
# channel has 270 releases, 27,000 updates and 0.9 MB; all channels together have 1,369, 128,000 and 4 MB
# (openshift/cincinnati-graph-data, 2026).
MAX_BYTES = 16 << 20
# Values of the JSON document, which is some 100 bytes of memory each.
MAX_VALUES = 800_000
MAX_NODES = 5_000
MAX_EDGES = 150_000
MAX_GROUPS = 5_000
# As many as the API has in `status.conditionalUpdateRisks`; an update carries 200, and counts the others.
MAX_RISKS_A_GROUP = 500
MAX_RULES_A_RISK = 16
MAX_VERSION = 256
# Channels of a release that count, as many as its status may list.
MAX_CHANNELS = 200
# Of the updates that lead on from one release, with each risk once for each update.
MAX_UPDATES = 1_000
MAX_RISKS = 10_000
MAX_QUERIES = 500
MAX_TEXT = 4 << 20
# Characters of a name of the answer's that messages quote.
_MAX_QUOTED = 100


RiskGroup = tuple[int, Sequence[ConditionalUpdateRisk]]
"""A number of updates, and the risks that these share."""


class BadGraph(Terminal):
    """The answer is not a usable graph; the reasons are ResponseInvalid and VersionNotFound."""


def check_graph_size(nodes: int, edges: int, groups: Sequence[RiskGroup]) -> None:
    """Raises BadGraph if the graph exceeds one of the limits above."""
    risks = [risk for _, shared in groups for risk in shared]
    _at_most(nodes, MAX_NODES, "nodes")
    _at_most(edges, MAX_EDGES, "edges")
    _at_most(sum(number for number, _ in groups), MAX_EDGES, "conditional edges")
    _at_most(len(groups), MAX_GROUPS, "groups of conditional edges")
    _at_most(max((len(shared) for _, shared in groups), default=0), MAX_RISKS_A_GROUP, "risks of one update")
    _at_most(max((len(risk.matching_rules) for risk in risks), default=0), MAX_RULES_A_RISK, "matching rules of a risk")


def updates(origin: str, plain: int, groups: Iterable[RiskGroup]) -> None:
    """Raises BadGraph if more leads on from `origin` than a pass may evaluate; `plain` updates have no risk."""
    risky, pairs, text, queries = 0, 0, 0, set[str]()
    for number, risks in groups:
        risky += number
        pairs += number * len(risks)
        for risk in risks:
            promql = [rule.promql.promql for rule in risk.matching_rules if rule.promql]
            text += number * sum(map(len, (risk.name, risk.message, risk.url, *promql)))
            queries.update(promql)
    of = f"from {origin}"
    _at_most(plain, MAX_UPDATES, f"updates {of}")
    _at_most(risky, MAX_UPDATES, f"updates with risks {of}")
    _at_most(pairs, MAX_RISKS, f"risks of updates {of}")
    _at_most(text, MAX_TEXT, f"characters in the risks of updates {of}")
    _at_most(len(queries), MAX_QUERIES, f"PromQL queries for updates {of}")


def quote_name(text: str) -> str:
    """Returns a name of the answer's as messages quote it."""
    return repr(shorten(text, _MAX_QUOTED, keep=_MAX_QUOTED))


def bad_graph(message: str) -> BadGraph:
    """Returns the error for an answer that is not a usable graph."""
    return BadGraph(message, reason="ResponseInvalid")


def _at_most(number: int, limit: int, subject: str) -> None:
    if number > limit:
        raise bad_graph(f"the update service's answer has {number} {subject}; the limit is {limit}")


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
    def step_map(self) -> StepMap:
        """The updates that lead on from each version, with and without risks."""
        versions = [node.version for node in self.document.nodes]
        steps: dict[str, dict[tuple[str, bool], UpdateStep]] = {version: {} for version in versions}
        for origin, to in self.document.edges:
            steps[versions[origin]].setdefault((versions[to], False), UpdateStep(versions[origin], versions[to]))
        for group in self.document.conditional_edges:
            names = tuple(risk.name for risk in group.risks)
            for edge in group.edges:
                if edge.from_ in steps and edge.to in steps:
                    steps[edge.from_].setdefault((edge.to, bool(names)), UpdateStep(edge.from_, edge.to, names))
        return StepMap({version: tuple(onward.values()) for version, onward in steps.items()})

    @cached_property
    def versions(self) -> tuple[Version | None, ...]:
        """The versions of the nodes."""
        return tuple(parse(node.version) for node in self.document.nodes)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The indexes of the nodes, the newest version first."""
        keys = [(version is not None, version or Version("0.0.0")) for version in self.versions]
        return tuple(sorted(range(len(keys)), key=keys.__getitem__, reverse=True))

    @cached_property
    def hops(self) -> dict[int, set[int]]:
        """The indexes that each node leads on to, with and without risks."""
        by_version = {node.version: index for index, node in enumerate(self.document.nodes)}
        hops: dict[int, set[int]] = {}
        for origin, to in self.document.edges:
            hops.setdefault(origin, set()).add(to)
        for group in self.document.conditional_edges:
            for edge in group.edges:
                if edge.from_ in by_version and edge.to in by_version:
                    hops.setdefault(by_version[edge.from_], set()).add(by_version[edge.to])
        return hops

    @cached_property
    def advised(self) -> dict[tuple[str, str, bool], Advice]:
        """The advice that was derived already, by version, channel and migration."""
        return {}

    @cached_property
    def reached(self) -> dict[str, tuple[Release, ...]]:
        """The reachable releases that were derived already, by version."""
        return {}


class Advice(msgspec.Struct, frozen=True):
    """The updates offered from one release, newest first: those without risks, and those that carry some."""

    updates: tuple[Release, ...] = ()
    conditional: tuple[ConditionalUpdate, ...] = ()


def parse_graph(data: bytes) -> Graph:
    """Returns the graph in `data`. Raises BadGraph if it cannot be used, before any object is made if it is too large.

    Takes a second at most, and 256 MiB: not for an event loop.
    """
    if len(data) > MAX_BYTES:
        raise bad_graph(f"the update service's answer is longer than {MAX_BYTES} bytes")
    try:
        document = codec.decode_bounded(GraphDocument, data, most_values=MAX_VALUES)
    except codec.DecodeError as error:
        raise bad_graph(f"the update service's answer is not a graph: {error}") from error
    groups = [(len(group.edges), group.risks) for group in document.conditional_edges]
    check_graph_size(len(document.nodes), len(document.edges), groups)
    last = len(document.nodes)
    for edge in document.edges:
        if not all(0 <= index < last for index in edge):
            raise bad_graph(f"edge {list(edge)} points outside the {last} nodes")
    for node in document.nodes:
        if len(node.version) > MAX_VERSION or parse(node.version) is None:
            raise bad_graph(f"node version {quote_name(node.version)} is not a semantic version")
    return Graph(document)


def derive_advice(graph: Graph, *, current: Version, channel: str) -> None:
    """Derives from `graph` all that passes need. Raises BadGraph if it cannot be used for `current`.

    The first pass would derive the same, but a pass runs in the event loop.
    """
    reachable(graph, current)
    graph.step_map.prepare()
    advice(graph, current=current, channel=channel)


def advice(graph: Graph, *, current: Version, channel: str, migrating: bool = False) -> Advice:
    """Returns the updates that `graph` offers from `current`, computed once for the same arguments.

    While the cluster is `migrating` to the architecture Multi, only its own version is offered.
    Raises BadGraph with reason VersionNotFound if `current` is not a node.
    """
    key = (current.text, channel, migrating)
    if key in graph.advised:
        return graph.advised[key]
    if current not in graph.versions:
        raise BadGraph(
            f'currently reconciling cluster version {current} not found in the "{channel}" channel',
            reason="VersionNotFound",
        )
    current_index = graph.versions.index(current)
    _check_metadata("current", graph.document.nodes[current_index])
    if migrating:
        offered = Advice(updates=(graph.releases[current_index],))
    else:
        plain = dict.fromkeys(to for origin, to in graph.document.edges if origin == current_index)
        counts = ((len(_targets(group, current)), group.risks) for group in graph.document.conditional_edges)
        sizes = [(number, risks) for number, risks in counts if number]
        updates(quote_name(current.text), len(plain), sizes)
        conditional = _conditional_updates(graph, current)
        offered_versions = {update.release.version for update in conditional}
        for index, node in enumerate(graph.document.nodes):
            if index in plain or node.version in offered_versions:
                _check_metadata("recommended update" if index in plain else "conditional update", node)
        # A release that is offered with and without risks counts as one with risks. Releases that share an image
        # contradict each other, so none of them is offered.
        images = Counter(update.release.image for update in conditional)
        alone = [update for update in conditional if images[update.release.image] == 1]
        offered = Advice(
            updates=newest_first(release for to in plain if (release := graph.releases[to]).image not in images),
            conditional=tuple(sorted(alone, key=lambda update: _version_order(update.release), reverse=True)),
        )
    graph.advised[key] = offered
    return offered


def reachable(graph: Graph, current: Version) -> tuple[Release, ...]:
    """Returns every release that some path from `current` reaches, regardless of risks; `current` is not included."""
    if current.text not in graph.reached:
        start = {index for index, version in enumerate(graph.versions) if version == current}
        visited, queue = set(start), list(start)
        while queue:
            unvisited = graph.hops.get(queue.pop(), set()) - visited
            visited |= unvisited
            queue.extend(unvisited)
        graph.reached[current.text] = tuple(
            graph.releases[index] for index in graph.order if index in visited and index not in start
        )
    return graph.reached[current.text]


def newest_first(releases: Iterable[Release]) -> tuple[Release, ...]:
    """Returns `releases` by version, the newest first."""
    return tuple(sorted(releases, key=_version_order, reverse=True))


def known_rules(risk: ConditionalUpdateRisk) -> ConditionalUpdateRisk:
    """Returns `risk` with only those matching rules that are valid and of a known type."""
    valid = (
        rule
        for rule in risk.matching_rules
        if (rule.type == "Always" and rule.promql is None)
        or (rule.type == "PromQL" and rule.promql is not None and rule.promql.promql)
    )
    return replace(risk, matching_rules=tuple(valid))


def _targets(group: ConditionalEdges, current: Version) -> tuple[str, ...]:
    """Returns the versions that the group's edges lead to from `current`, each once."""
    return tuple(dict.fromkeys(edge.to for edge in group.edges if edge.from_ == current.text))


def _conditional_updates(graph: Graph, current: Version) -> tuple[ConditionalUpdate, ...]:
    """Returns the updates from `current` that have risks.

    An update is left out if any of its risks has no matchingRules that are valid and of a known type. Raises BadGraph
    if a conditional edge leads to a version that is not a node.
    """
    by_version = {release.version: release for release in graph.releases}
    # Risks by name; of two of one name the last counts.
    risks: dict[str, dict[str, ConditionalUpdateRisk]] = {}
    unknown: set[str] = set()
    for group in graph.document.conditional_edges:
        targets = _targets(group, current)
        pruned = [known_rules(risk) for risk in group.risks] if targets else []
        # Fail closed: an update with a risk whose rules are all unknown is not offered.
        if not all(risk.matching_rules for risk in pruned):
            unknown.update(targets)
        for to in targets:
            if to not in by_version:
                name = shorten(to, _MAX_QUOTED, keep=_MAX_QUOTED) if to.isprintable() else quote_name(to)
                raise bad_graph(f"no node for conditional update {name}")
            risks.setdefault(to, {}).update((risk.name, risk) for risk in pruned)
    return tuple(
        ConditionalUpdate(release=by_version[to], risks=tuple(by_name.values()))
        for to, by_name in risks.items()
        if to not in unknown
    )


def _check_metadata(kind: str, node: GraphNode) -> None:
    """Raises BadGraph for metadata that the Go operator refuses (pkg/cincinnati, ParseMetadata), in its words.

    `kind` says what the node is for, such as "current".
    """
    errors = []
    url = node.metadata.get("url", "")
    try:
        parse_url(url)
    except URLError as error:
        errors.append(f"invalid release URL: parse {quote_go(url)}: {error}")
    architecture = node.metadata.get(ARCHITECTURE, "multi")
    if architecture != "multi":
        errors.append(f"unrecognized {ARCHITECTURE} value {quote_go(architecture)}")
    channels = node.metadata.get(CHANNELS)
    if channels == "":
        errors.append(f"{CHANNELS} is an empty string")
    elif channels is not None and "" in channels.split(","):
        errors.append(f"{CHANNELS} has an entry that is an empty string: {quote_go(channels)}")
    if errors:
        listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise bad_graph(f"invalid {kind} node: {listed}")


def _release(node: GraphNode) -> Release:
    """Returns a node of the graph as ClusterVersion's status has it."""
    architecture = node.metadata.get(ARCHITECTURE, "")
    channels = {channel.strip() for channel in node.metadata.get(CHANNELS, "").split(",")}
    return Release(
        version=node.version,
        image=node.payload,
        # The graph has one string of metadata per key; channels are separated by commas.
        url=node.metadata.get("url", ""),
        # The graph writes `multi`, ClusterVersion `Multi`.
        architecture=MULTI if architecture.lower() == "multi" else architecture,
        channels=tuple(sorted(filter(None, channels))[:MAX_CHANNELS]),
    )


def _version_order(release: Release) -> tuple[bool, Version]:
    """Returns the sort key of a release; one whose version cannot be parsed is the oldest."""
    version = parse(release.version)
    return version is not None, version or Version("0.0.0")
