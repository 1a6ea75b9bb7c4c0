"""From one release through a graph: its updates, what is blocked and why, and the shortest way to another. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

from kubekit.lang.version import Version

JSON = dict[str, Any]


class Step(NamedTuple):
    """One update on a way; `risks` are the names of those that it has, if any."""

    origin: str
    to: str
    risks: tuple[str, ...] = ()


class Ways(NamedTuple):
    """What leads on from `origin`. `way` is empty where nothing leads to `goal`."""

    origin: str
    goal: str
    updates: tuple[Step, ...]
    blocked: Mapping[str, tuple[str, ...]]
    way: tuple[Step, ...]
    risks: Mapping[str, JSON]


def ways(
    document: JSON, removed: Mapping[tuple[str, str], tuple[str, ...]], origin: str, goal: str = ""
) -> Ways | None:
    """See the module; `goal` empty is the newest release. None where `origin` is not in the graph."""
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
    named = {name for step in (*updates, *way) for name in step.risks}
    return Ways(origin, goal, updates, blocked, way, {name: risks[name] for name in sorted(named)})


def _shortest(steps: Mapping[str, list[Step]], origin: str, goal: str) -> tuple[Step, ...]:
    """The fewest updates, of those the fewest with risks, of those over the newest releases."""
    rank = {version: -place for place, version in enumerate(sorted(steps, key=Version))}
    # Costs grow with each step, so the first time that a release is taken off the heap is its best.
    todo: list[tuple[int, int, list[int], str, tuple[Step, ...]]] = [(0, 0, [], origin, ())]
    done: set[str] = set()
    while todo:
        hops, risky, over, here, way = heapq.heappop(todo)
        if here == goal:
            return way
        if here in done:
            continue
        done.add(here)
        for step in steps[here]:
            if step.to not in done:
                cost = (hops + 1, risky + bool(step.risks), [*over, rank[step.to]])
                heapq.heappush(todo, (*cost, step.to, (*way, step)))
    return ()
