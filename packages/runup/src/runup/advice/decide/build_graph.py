"""Builds the graph that an update service answers with, from graph data and releases. Pure.

The public graph-data format is schema 1.x: channels list releases. A blocked edge is a file that removes updates to one
release, or names the risk of taking them. Its `from` is a regular expression, searched in `VERSION+ARCHITECTURE`.
A release's name may end in `+ARCHITECTURE`, and then means that architecture only (README of
openshift/cincinnati-graph-data).

A release's own metadata (`previous`) says which releases it can update. If only channels are known, it is assumed to be
every earlier release of its minor version and of the one before that shares a channel with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.regexp import Regexp, RegexpError, compile_regexp
from kubekit.lang.text import count
from kubekit.lang.version import Version, parse
from runup.advice.decide.graph import ARCHITECTURE, CHANNELS
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule

_PREFIX = "io.openshift.upgrades.graph.previous."


class BadGraphData(Terminal):
    """A file does not follow the format; the message names the file."""


class _Channel(Wire, frozen=True):
    name: str
    versions: tuple[str, ...] = ()


class _Blocked(Wire, frozen=True, kw_only=True):
    to: str
    from_: str = msgspec.field(name="from")
    name: str = ""
    message: str = ""
    url: str = ""
    matching_rules: tuple[MatchingRule, ...] = ()
    fixed_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedEdge:
    """Updates to `to` from every release whose name `origin` matches. Without a risk they are removed."""

    to: str
    origin: Regexp
    file: str
    risk: ConditionalUpdateRisk | None = None
    fixed_in: str = ""


@dataclass(frozen=True, slots=True)
class Previous:
    """The changes in `raw/metadata.json` to a release's predecessors."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphData:
    """A folder's contents. `channels` are release names by channel, in the files' order."""

    schema: str
    channels: Mapping[str, tuple[str, ...]]
    blocked: tuple[BlockedEdge, ...] = ()
    previous: Mapping[str, Previous] = field(default_factory=dict)


def read(schema: str, channels: Mapping[str, Any], blocked: Mapping[str, Any], raw: Any) -> GraphData:
    """Returns the content of parsed files, which are given by name. Raises BadGraphData."""
    version = parse(schema.strip())
    # Another major version of the schema may change what the files mean.
    if version is None or version.major != 1:
        problem = f"file version says {schema.strip()!r}, and only schema 1.x can be read"
        raise BadGraphData(problem, reason="UnknownSchema")
    channel_versions = {}
    for file, document in sorted(channels.items()):
        channel = _convert_document(_Channel, file, document)
        for name in channel.versions:
            _check_version(file, name)
        channel_versions[channel.name] = channel.versions
    return GraphData(
        schema=schema.strip(),
        channels=channel_versions,
        blocked=tuple(_edge(name, document) for name, document in sorted(blocked.items())),
        previous=dict(_previous_metadata(raw)),
    )


def version_for(name: str, architecture: str) -> str:
    """Returns the version that a release's name means for `architecture`, empty if it is for another one."""
    version, _, build_text = name.partition("+")
    return version if build_text in ("", architecture) else ""


def _edge(file: str, document: Any) -> BlockedEdge:
    """Returns one file of `blocked-edges`. Raises BadGraphData if a field is missing or cannot be used."""
    blocked = _convert_document(_Blocked, file, document)
    _check_version(file, blocked.to)
    try:
        origin = compile_regexp(blocked.from_)
    except RegexpError as error:
        raise _bad_data(file, f"from {blocked.from_!r} is not a regular expression: {error}") from error
    risk = None
    if blocked.matching_rules:
        missing = [key for key in ("name", "message", "url") if not getattr(blocked, key)]
        if missing:
            raise _bad_data(file, f"a risk needs {' and '.join(missing)} in addition to matchingRules")
        risk = ConditionalUpdateRisk(
            name=blocked.name, message=blocked.message, url=blocked.url, matching_rules=blocked.matching_rules
        )
    return BlockedEdge(to=blocked.to, origin=origin, file=file, risk=risk, fixed_in=blocked.fixed_in)


def _previous_metadata(raw: Any) -> Iterator[tuple[str, Previous]]:
    """Yields for each release what `raw/metadata.json` adds to and removes from its previous releases."""
    file = "raw/metadata.json"
    for name, changes in _mapping(file, raw or {}).items():
        metadata = _mapping(file, changes)
        lists = {key: tuple(filter(None, str(metadata.get(_PREFIX + key, "")).split(","))) for key in ("add", "remove")}
        if any(lists.values()):
            yield name, Previous(**lists)


def _mapping(file: str, value: Any) -> JSON:
    if not isinstance(value, dict):
        raise _bad_data(file, "a mapping is wanted")
    return value


def _check_version(file: str, name: str) -> None:
    if parse(name.partition("+")[0]) is None:
        raise _bad_data(file, f"{name!r} is not a semantic version")


def _convert_document(kind: Any, file: str, document: Any) -> Any:
    try:
        return codec.convert(kind, document)
    except codec.DecodeError as error:
        raise _bad_data(file, str(error)) from error


def _bad_data(file: str, problem: str) -> BadGraphData:
    return BadGraphData(f"{file}: {problem}", reason="BadGraphData")


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
    risks, removed = _evaluate_hops(hops, data, architecture)
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
    notes = (f"the channels have {count(len(missing), 'more release')}, such as {missing[-1]}",) if missing else ()
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


def _evaluate_hops(
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
