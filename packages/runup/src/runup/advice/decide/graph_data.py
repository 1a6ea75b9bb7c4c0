"""The public graph-data format, schema 1.x: parsed files in, their content as types out. Pure.

Channels list releases. A blocked edge is a file that removes updates to one release, or names the risk of taking them.
Its `from` is a regular expression that is searched in `VERSION+ARCHITECTURE`. A release's name may end in
`+ARCHITECTURE`, and then means that architecture only (README of openshift/cincinnati-graph-data).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.regexp import Regexp, RegexpError, compile_regexp
from kubekit.lang.version import parse
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule

JSON = dict[str, Any]
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
            raise _bad_data(file, f"a risk needs {' and '.join(missing)} beside matchingRules")
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
