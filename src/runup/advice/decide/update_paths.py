"""Finds the updates from one release in a graph, the blocked ones, and the shortest path to another release. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kubekit.lang.version import Version

JSON = dict[str, Any]


class Step(NamedTuple):
    """An update of a path; `risks` are the names of its risks, if any."""

    origin: str
    to: str
    risks: tuple[str, ...] = ()


class UpdatePaths(NamedTuple):
    """The updates that lead on from `origin`. `way` is empty if no path leads to `goal`."""

    origin: str
    goal: str
    updates: tuple[Step, ...]
    blocked: Mapping[str, tuple[str, ...]]
    way: tuple[Step, ...]
    risks: Mapping[str, JSON]


def ways(
    document: JSON, removed: Mapping[tuple[str, str], tuple[str, ...]], origin: str, goal: str = ""
) -> UpdatePaths | None:
    """Returns the updates from `origin`, the blocked ones with their files, and the shortest path to `goal`.

    An empty `goal` means the newest release. Returns None if `origin` is not in the graph.
    """
    versions = [node["version"] for node in document["nodes"]]
    if origin not in versions:
        return None
    steps: dict[str, list[Step]] = {version: [] for version in versions}
    for old, new in document["edges"]:
        steps[versions[old]].append(Step(versions[old], versions[new]))
    risks: dict[str, JSON] = {}
    for group in document["conditionalEdges"]:
        names = tuple(risk["name"] for risk in group["risks"])
        risks |= {risk["name"]: risk for risk in group["risks"]}
        for edge in group["edges"]:
            steps[edge["from"]].append(Step(edge["from"], edge["to"], names))
    goal = goal or max(versions, key=Version)
    updates = tuple(sorted(steps[origin], key=lambda step: Version(step.to), reverse=True))
    blocked = {new: files for (old, new), files in removed.items() if old == origin and new in steps}
    way = _shortest(steps, origin, goal)
    risk_names = {name for step in (*updates, *way) for name in step.risks}
    return UpdatePaths(origin, goal, updates, blocked, way, {name: risks[name] for name in sorted(risk_names)})


def way(
    steps: Mapping[str, Sequence[Step]], origin: str, goal: str, *, allows: Callable[[str, str], bool]
) -> tuple[Step, ...]:
    """Returns the shortest way from `origin` to `goal` whose steps `allows` (from, to) admits; empty if there is none.

    Versions are compared as semantic versions, whose build metadata does not count.
    """
    named = {Version(version): version for version in steps}
    start, end = named.get(Version(origin)), named.get(Version(goal))
    if start is None or end is None:
        return ()
    allowed = {version: [step for step in onward if allows(step.origin, step.to)] for version, onward in steps.items()}
    return _shortest(allowed, start, end)


def _shortest(steps: Mapping[str, list[Step]], origin: str, goal: str) -> tuple[Step, ...]:
    """Returns the path with the fewest updates, then the fewest with risks, then the one over the newest releases."""
    # Newer releases get smaller ranks, so that the heap prefers them.
    rank = {version: -place for place, version in enumerate(sorted(steps, key=Version))}
    # Costs grow with each step, so the first time that a release is taken off the heap is its best.
    queue: list[tuple[int, int, list[int], str, tuple[Step, ...]]] = [(0, 0, [], origin, ())]
    visited: set[str] = set()
    while queue:
        hops, risky, over, reached, way = heapq.heappop(queue)
        if reached == goal:
            return way
        if reached in visited:
            continue
        visited.add(reached)
        for step in steps[reached]:
            if step.to not in visited:
                cost = (hops + 1, risky + bool(step.risks), [*over, rank[step.to]])
                heapq.heappush(queue, (*cost, step.to, (*way, step)))
    return ()
