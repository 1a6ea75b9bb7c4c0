"""Finds the updates from one release in a graph, the blocked ones, and the shortest path to another release. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from kubekit.lang.version import Version

JSON = dict[str, Any]


class UpdateStep(NamedTuple):
    """An update of a path; `risks` are the names of its risks, if any."""

    origin: str
    to: str
    risks: tuple[str, ...] = ()


class StepMap(msgspec.Struct, frozen=True, dict=True):
    """The updates that lead on from each version, with what a search derives from them once."""

    steps: Mapping[str, Sequence[UpdateStep]]

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The place of each version; newer ones come first."""
        ordered = sorted(self.steps, key=self.versions.__getitem__, reverse=True)
        return {version: place for place, version in enumerate(ordered)}

    @cached_property
    def versions(self) -> dict[str, Version]:
        """The versions by their text."""
        return {version: Version(version) for version in self.steps}

    @cached_property
    def named(self) -> dict[Version, str]:
        """The texts by version: build metadata does not count."""
        return {version: text for text, version in self.versions.items()}

    def prepare(self) -> None:
        """Derives all that a search needs."""
        self.ranks, self.named  # noqa: B018 -- they keep what they return


class UpdatePaths(NamedTuple):
    """The updates that lead on from `origin`. `way` is empty if no path leads to `goal`.

    `onward` are the updates between the releases of `updates` and `way`: what is possible after the first update.
    """

    origin: str
    goal: str
    updates: tuple[UpdateStep, ...]
    blocked: Mapping[str, tuple[str, ...]]
    way: tuple[UpdateStep, ...]
    risks: Mapping[str, JSON]
    onward: tuple[UpdateStep, ...] = ()


def ways(
    document: JSON,
    removed: Mapping[tuple[str, str], tuple[str, ...]],
    origin: str,
    goal: str = "",
    *,
    allows: Callable[[str, str], bool] = lambda _from, _to: True,
) -> UpdatePaths | None:
    """Returns the updates from `origin`, the blocked ones with their files, and the shortest path to `goal`.

    An empty `goal` means the newest release. Only updates that `allows` (from, to) admits are taken. Returns None if
    `origin` is not in the graph.
    """
    versions = [node["version"] for node in document["nodes"]]
    if origin not in versions:
        return None
    steps: dict[str, list[UpdateStep]] = {version: [] for version in versions}
    for old, new in document["edges"]:
        if allows(versions[old], versions[new]):
            steps[versions[old]].append(UpdateStep(versions[old], versions[new]))
    risks: dict[str, JSON] = {}
    for group in document["conditionalEdges"]:
        names = tuple(risk["name"] for risk in group["risks"])
        risks |= {risk["name"]: risk for risk in group["risks"]}
        for edge in group["edges"]:
            if allows(edge["from"], edge["to"]):
                steps[edge["from"]].append(UpdateStep(edge["from"], edge["to"], names))
    goal = goal or max(versions, key=Version)
    onward = StepMap(steps)
    updates = tuple(sorted(steps[origin], key=lambda step: Version(step.to), reverse=True))
    blocked = {new: files for (old, new), files in removed.items() if old == origin and new in steps}
    way = _shortest(onward, origin, goal, allows=lambda _from, _to: True)
    shown = {step.to for step in (*updates, *way)}
    further = tuple(step for version in sorted(shown, key=Version) for step in steps[version] if step.to in shown)
    risk_names = {name for step in (*updates, *way, *further) for name in step.risks}
    return UpdatePaths(
        origin=origin,
        goal=goal,
        updates=updates,
        blocked=blocked,
        way=way,
        risks={name: risks[name] for name in sorted(risk_names)},
        onward=further,
    )


def shortest_way(
    onward: StepMap, origin: str, goal: str, *, allows: Callable[[str, str], bool]
) -> tuple[UpdateStep, ...]:
    """Returns the shortest way from `origin` to `goal` whose steps `allows` (from, to) admits; empty without one.

    Versions are compared as semantic versions, whose build metadata does not count.
    """
    start, end = onward.named.get(Version(origin)), onward.named.get(Version(goal))
    if start is None or end is None:
        return ()
    return _shortest(onward, start, end, allows=allows)


class _Arrival(NamedTuple):
    """The best way to a version so far; `order` is smaller for a way over newer releases."""

    risky: int
    order: int
    step: UpdateStep


def _shortest(onward: StepMap, origin: str, goal: str, *, allows: Callable[[str, str], bool]) -> tuple[UpdateStep, ...]:
    """Returns the path with the fewest updates, then the fewest with risks, then the one over the newest releases.

    Looks at each update once: the ways of one length are all known before the next longer ones.
    """
    arrivals: dict[str, _Arrival] = {}
    # The versions that are reached by as many updates, those by way of newer releases first.
    front = [origin]
    risky = {origin: 0}
    while front and goal not in arrivals and goal not in front:
        reached: dict[str, _Arrival] = {}
        for order, version in enumerate(front):
            for step in onward.steps[version]:
                arrival = _Arrival(risky[version] + bool(step.risks), order, step)
                earlier = reached.get(step.to)
                is_new = step.to not in risky and (earlier is None or arrival[:2] < earlier[:2])
                if is_new and allows(step.origin, step.to):
                    reached[step.to] = arrival
        arrivals |= reached
        risky |= {version: arrival.risky for version, arrival in reached.items()}
        front = sorted(reached, key=lambda version: (reached[version].order, onward.ranks[version]))
    steps: list[UpdateStep] = []
    while goal != origin and goal in arrivals:
        steps.append(arrivals[goal].step)
        goal = steps[-1].origin
    return tuple(reversed(steps))
