"""Decides which update paths of a cluster are drawn: from a graph, its ClusterVersion, or its steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.lang.text import count
from kubekit.lang.version import parse
from runup.advice.decide.build_graph import channels_of, graph_of_channel
from runup.advice.decide.service import DEFAULT_URL
from runup.advice.decide.update_paths import UpdatePaths, UpdateStep, ways
from runup.console.decide.board import Evaluation, Offered

JSON = dict[str, Any]
# More updates than this would be a drawing that nobody reads; the way itself is always whole.
MOST_UPDATES = 60


class Graph(msgspec.Struct, frozen=True):
    """The graph of an update service as a document, and the updates that its blocked edges remove."""

    document: JSON
    removed: Mapping[tuple[str, str], tuple[str, ...]]


class UpdateWay(msgspec.Struct, frozen=True, kw_only=True):
    """The updates to draw: `paths`, their source, and in `why` the reason for missing paths.

    `one_step`: only the updates from the cluster's own release are known, so a longer way may exist. `channels` are
    those of each release, where the graph has them, and `channel` is the cluster's. `graph_urls` are the addresses of
    the graph, for each channel, by which more would be known.
    """

    paths: UpdatePaths | None = None
    source: str = ""
    why: str = ""
    left_out: int = 0
    one_step: bool = False
    channel: str = ""
    channels: Mapping[str, tuple[str, ...]] = {}
    graph_urls: tuple[tuple[str, str], ...] = ()

    def channels_of_step(self, step: UpdateStep) -> tuple[str, ...]:
        """Returns the channels that have both releases of an update, the cluster's own first."""
        both = set(self.channels.get(step.origin, ())) & set(self.channels.get(step.to, ()))
        return tuple(sorted(both, key=lambda channel: (channel != self.channel, channel)))

    @property
    def verdict(self) -> str:
        """Returns in one sentence whether a way leads to the goal; empty without paths."""
        if self.paths is None:
            return ""
        goal, path = self.paths.goal, self.paths.way
        if self.paths.origin == goal:
            return f"{goal} is the newest release there."
        if path:
            return f"{count(len(path), 'update')}, {sum(bool(step.risks) for step in path)} with known risks."
        if self.one_step:
            return f"It is not known whether a way leads to {goal}."
        return f"No way leads to {goal} in {self.source}."


def find_way(evaluated: Evaluation, graph: Graph | None) -> UpdateWay:
    """Returns the way of a cluster to its target, or to the newest release where the graph does not have that."""
    findings, offered = evaluated.findings, evaluated.offered
    if findings.kind == "Kubernetes" and findings.steps:
        return _way_by_kept_reports(evaluated)
    origin = (offered.origin if offered else "") or findings.source
    if not origin:
        return UpdateWay(why="The cluster's own release is not known, so no way begins there.")
    if graph is not None:
        # The way within the given graph, limited to `channel` if one is named.
        channel = offered.channel if offered else ""
        document = graph_of_channel(graph.document, channel) if channel else graph.document
        source = (
            f"the graph that was given, channel {channel}" if channel else "the graph that was given, every channel"
        )
        versions = [node["version"] for node in document["nodes"]]
        if not versions:
            return UpdateWay(source=source, why=f"The graph has no release in channel {channel}.")
        channels_by_version = {node["version"]: channels_of(node) for node in graph.document["nodes"]}
        goal = findings.target if findings.target in versions else ""
        paths = ways(document, graph.removed, origin, goal)
        wanted = findings.target if findings.target in channels_by_version else ""
        if channel and wanted and (paths is None or not paths.way) and wanted != origin:
            # An update service is asked for one channel: both releases of an update must be in it.
            whole = ways(
                graph.document,
                graph.removed,
                origin,
                wanted,
                allows=lambda old, new: bool({*channels_by_version[old]} & {*channels_by_version[new]}),
            )
            if whole is not None and whole.way:
                why = f"No way leads to {wanted} in channel {channel}; this one needs other channels on its way."
                way = _limit_way(whole, "the graph that was given, every channel", why)
                return replace(way, channel=channel, channels=channels_by_version)
        if paths is None:
            return UpdateWay(
                source=source, why=f"Release {origin} is not in the graph, so nothing is known about its updates."
            )
        missing = (
            ""
            if goal or not findings.target
            else f"Release {findings.target} is not in the graph; the way is to its newest release."
        )
        return replace(_limit_way(paths, source, missing), channel=channel, channels=channels_by_version)
    if offered is None:
        return UpdateWay(
            why="A kept report has no update graph. Give one that `runup graph build` made: runup serve --graph FILE",
        )
    return _way_by_offered_updates(offered, findings.target)


def _limit_way(paths: UpdatePaths, source: str, problem: str) -> UpdateWay:
    left_out = sum(max(0, len(each) - MOST_UPDATES) for each in (paths.updates, paths.blocked))
    blocked = dict(list(paths.blocked.items())[:MOST_UPDATES])
    updates = paths.updates[:MOST_UPDATES]
    drawn = {step.to for step in (*updates, *paths.way)}
    onward = tuple(step for step in paths.onward if step.origin in drawn and step.to in drawn)
    left_out += max(0, len(onward) - MOST_UPDATES)
    shown = paths._replace(updates=updates, blocked=blocked, onward=onward[:MOST_UPDATES])
    return UpdateWay(paths=shown, source=source, why=problem, left_out=left_out)


def _way_by_offered_updates(offered: Offered, target: str) -> UpdateWay:
    """Returns the updates that ClusterVersion names: one update far, with the risks that the service names."""
    free_steps = [UpdateStep(offered.origin, update.version) for update in offered.available if parse(update.version)]
    risky = []
    for each in offered.conditional:
        # An update that ClusterVersion does not recommend is never without a risk.
        names = each.risk_names or tuple(risk.name for risk in each.risks)
        recommended = find(each.conditions, "Recommended")
        names = names or ((recommended.reason if recommended else "") or "NotRecommended",)
        if parse(each.release.version):
            risky.append(UpdateStep(offered.origin, each.release.version, names))
    updates = (*free_steps, *risky)
    source = "what ClusterVersion offers, one update far"
    if not updates:
        return UpdateWay(source=source, why="ClusterVersion names no update; `runup upgrade` says why.")
    goal = target or updates[0].to
    path = tuple(step for step in updates if step.to == goal)[:1]
    missing = "" if path else _channel_to_ask(offered, goal)
    texts = {
        risk.name: {"message": risk.message, "url": risk.url} for each in offered.conditional for risk in each.risks
    }
    paths = UpdatePaths(origin=offered.origin, goal=goal, updates=updates, blocked={}, way=path, risks=texts)
    urls = _graph_urls(offered, goal)
    # What ClusterVersion offers is in the channel that it names.
    own = (offered.channel,) if offered.channel else ()
    channels = dict.fromkeys((offered.origin, *(step.to for step in updates)), own)
    way = _limit_way(paths, source, missing)
    return replace(way, one_step=True, channel=offered.channel, channels=channels, graph_urls=urls)


def _graph_urls(offered: Offered, goal: str) -> tuple[tuple[str, str], ...]:
    """Returns the channels whose graphs show more than one update, each with its address at the update service."""
    version = parse(goal)
    ahead = f"-{version.major}.{version.minor}" if version else ""
    channels = [offered.channel, *(channel for channel in offered.channels if ahead and channel.endswith(ahead))]
    service = offered.upstream or DEFAULT_URL
    joint = "&" if "?" in service else "?"
    return tuple(
        (channel, f"{service}{joint}{urlencode({'channel': channel})}")
        for channel in dict.fromkeys(channels)
        if channel
    )


def _channel_to_ask(offered: Offered, goal: str) -> str:
    """Returns why the updates of ClusterVersion do not show a path to `goal`, and the channel to query."""
    known = f"ClusterVersion names only the updates from {offered.origin} in channel {offered.channel or '(none)'}."
    version = parse(goal)
    kind = offered.channel.partition("-")[0] or "stable"
    wanted = f"{kind}-{version.major}.{version.minor}" if version else ""
    named = [channel for channel in offered.channels if wanted and channel.endswith(wanted.removeprefix(kind))]
    channel = wanted if wanted in named or not named else named[0]
    if not channel or channel == offered.channel:
        return f"{known} A graph has them all: runup serve --graph FILE"
    return f"{known} Ask channel {channel}: runup upgrade channel {channel}"


def _way_by_kept_reports(evaluated: Evaluation) -> UpdateWay:
    """Returns the steps of an update of Kubernetes, whose control plane uses one minor version at a time."""
    findings = evaluated.findings
    versions = [findings.source]
    risks: dict[str, list[str]] = {}
    for step in findings.steps:
        if step.version not in versions:
            versions.append(step.version)
        risks.setdefault(step.version, []).extend(step.risks)
    path = tuple(UpdateStep(old, new, tuple(dict.fromkeys(risks.get(new, ())))) for old, new in pairwise(versions))
    goal = versions[-1]
    return UpdateWay(
        paths=UpdatePaths(origin=findings.source, goal=goal, updates=path[:1], blocked={}, way=path, risks={}),
        source="the steps of an update of Kubernetes",
    )
