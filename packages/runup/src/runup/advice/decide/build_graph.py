"""Builds the graph that an update service answers with, from graph data and releases. Pure.

A release's own metadata (`previous`) says which releases it can update. If only channels are known, it is assumed to be
every earlier release of its minor version and of the one before that shares a channel with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.version import Version, parse
from runup.advice.decide.graph import ARCHITECTURE, CHANNELS
from runup.advice.decide.graph_data import BlockedEdge, GraphData, version_for
from runup.api.config_v1 import ConditionalUpdateRisk

JSON = dict[str, Any]
Hop = tuple[str, str]
# A node must have an image; `.invalid` makes sure that nobody can pull this one (RFC 2606).
_NO_IMAGE = "unknown.invalid/release:{}"


class BadReleases(Terminal):
    """The list of releases cannot be used; the message names the entry."""


class KnownRelease(Wire, frozen=True, kw_only=True):
    """A release as its image's metadata describes it."""

    version: str
    image: str = ""
    previous: tuple[str, ...] = ()
    url: str = ""
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """The graph as JSON, the removed updates with the files that remove them, and warnings.

    `assumed`: the updates were assumed, as the module describes.
    """

    document: JSON
    removed: Mapping[Hop, tuple[str, ...]]
    assumed: bool = False
    notes: tuple[str, ...] = ()


def read_releases(document: Any) -> tuple[KnownRelease, ...]:
    """Returns the entries of a JSON list. Raises BadReleases."""
    if not isinstance(document, list):
        raise BadReleases('a list of releases is wanted: [{"version": ..., "previous": [...]}]', reason="BadReleases")
    releases = []
    for number, entry in enumerate(document, 1):
        try:
            release = codec.convert(KnownRelease, entry)
        except codec.DecodeError as error:
            raise BadReleases(f"release {number}: {error}", reason="BadReleases") from error
        if parse(release.version) is None:
            raise BadReleases(f"release {number}: {release.version!r} is not a semantic version", reason="BadReleases")
        releases.append(release)
    return tuple(releases)


def build(data: GraphData, releases: Sequence[KnownRelease] | None, architecture: str) -> BuiltGraph:
    """Returns the graph of `architecture`; if `releases` is None, it assumes which releases update which."""
    in_channels: dict[str, set[str]] = defaultdict(set)
    for channel, names in data.channels.items():
        for name in names:
            if version := version_for(name, architecture):
                in_channels[version].add(channel)
    channels = {version: tuple(sorted(names)) for version, names in in_channels.items()}
    known_releases = {release.version: release for release in releases or ()}
    versions = [v for v in (channels if releases is None else known_releases) if parse(v) is not None]
    ordered = sorted(versions, key=Version)
    before = (
        _assumed_edges(ordered, channels)
        if releases is None
        else {v: tuple(known_releases[v].previous) for v in ordered}
    )
    hops = _hops(ordered, before, data, architecture)
    risks, removed = _judge_hops(hops, data, architecture)
    number = {version: index for index, version in enumerate(ordered)}
    edges = [[number[a], number[b]] for a, b in hops if (a, b) not in risks and (a, b) not in removed]
    nodes = [_node(known_releases.get(v, KnownRelease(version=v)), channels.get(v, ()), architecture) for v in ordered]
    groups: dict[tuple[ConditionalUpdateRisk, ...], list[JSON]] = {}
    for (old, new), shared_risks in risks.items():
        groups.setdefault(shared_risks, []).append({"from": old, "to": new})
    document = {
        "version": 1,
        "nodes": nodes,
        "edges": edges,
        "conditionalEdges": [
            {"edges": edges, "risks": [codec.to_dict(risk) for risk in shared_risks]}
            for shared_risks, edges in groups.items()
        ],
    }
    missing = sorted(set(channels) - set(number), key=Version)
    notes = (
        (f"{len(missing)} releases of channels are not among the releases, such as {missing[-1]}",) if missing else ()
    )
    return BuiltGraph(document, removed, releases is None, notes)


def graph_of_channel(document: JSON, channel: str) -> JSON:
    """Returns the part of a graph whose releases are in `channel`; empty for an unknown channel, as the service's."""
    kept_indexes = [i for i, node in enumerate(document["nodes"]) if channel in channels_of(node)]
    renumbered = {old: new for new, old in enumerate(kept_indexes)}
    versions = {document["nodes"][i]["version"] for i in kept_indexes}
    conditional = []
    for group in document["conditionalEdges"]:
        edges = [edge for edge in group["edges"] if edge["from"] in versions and edge["to"] in versions]
        if edges:
            conditional.append({**group, "edges": edges})
    return {
        "version": document["version"],
        "nodes": [document["nodes"][i] for i in kept_indexes],
        "edges": [[renumbered[a], renumbered[b]] for a, b in document["edges"] if a in renumbered and b in renumbered],
        "conditionalEdges": conditional,
    }


def channels_of(node: JSON) -> tuple[str, ...]:
    """Returns the channels that a node is in."""
    return tuple(filter(None, node["metadata"].get(CHANNELS, "").split(",")))


def _assumed_edges(ordered: Sequence[str], channels: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns for each version the earlier ones that it is assumed to update, by minor version and channel."""
    by_minor: dict[tuple[int, int], list[str]] = defaultdict(list)
    before: dict[str, tuple[str, ...]] = {}
    for text in ordered:
        version, own_channels = Version(text), set(channels[text])
        minor = version.minor_version
        earlier = [*by_minor[version.major, version.minor - 1], *by_minor[minor]]
        before[text] = tuple(old for old in earlier if own_channels.intersection(channels[old]))
        by_minor[minor].append(text)
    return before


def _hops(
    ordered: Sequence[str], before: Mapping[str, tuple[str, ...]], data: GraphData, architecture: str
) -> list[Hop]:
    """Returns the pairs (old, new) of versions, with the changes of `raw/metadata.json` applied."""
    versions = set(ordered)
    added: dict[str, set[str]] = defaultdict(set)
    removed: dict[str, set[str]] = defaultdict(set)
    for name, change in data.previous.items():
        if version := version_for(name, architecture):
            added[version].update(version_for(old, architecture) for old in change.add)
            removed[version].update(version_for(old, architecture) for old in change.remove)
    return [
        (old, new)
        for new in ordered
        for old in sorted(((set(before[new]) | added[new]) - removed[new] - {new}) & versions, key=Version)
    ]


def _judge_hops(
    hops: Iterable[Hop], data: GraphData, architecture: str
) -> tuple[dict[Hop, tuple[ConditionalUpdateRisk, ...]], dict[Hop, tuple[str, ...]]]:
    """Returns the risks of updates, and the files that remove updates."""
    blocks: dict[str, list[BlockedEdge]] = defaultdict(list)
    for block in data.blocked:
        if version := version_for(block.to, architecture):
            blocks[version].append(block)
    risks: dict[Hop, tuple[ConditionalUpdateRisk, ...]] = {}
    removed: dict[Hop, tuple[str, ...]] = {}
    for old, new in hops:
        name = f"{old}+{architecture}"
        matching = [block for block in blocks.get(new, ()) if block.origin.matches(name)]
        # A blocked edge without a risk removes the update, whatever risks others would add.
        if files := tuple(block.file for block in matching if block.risk is None):
            removed[old, new] = files
        elif matching:
            # Of two risks of one name the first counts.
            by_name = {block.risk.name: block.risk for block in reversed(matching) if block.risk is not None}
            risks[old, new] = tuple(by_name[name] for name in sorted(by_name))
    return risks, removed


def _node(release: KnownRelease, channels: Sequence[str], architecture: str) -> JSON:
    """Returns a release as a node of the graph's JSON."""
    metadata = {CHANNELS: ",".join(channels)} if channels else {}
    metadata |= {"url": release.url} if release.url else {}
    # Only multi-architecture releases carry the key, as in the public graph.
    metadata |= {ARCHITECTURE: architecture} if architecture == "multi" else {}
    return {
        "version": release.version,
        "payload": release.image or _NO_IMAGE.format(release.version),
        "metadata": metadata,
    }
