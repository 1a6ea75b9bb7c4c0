"""`python -m bench growth`: how costs grow with the size of a cluster, of a release, of a store: at three sizes each.

What `python -m bench aims` has at three sizes anyway is judged there. `python -m bench.aims RESULT.json growth.json`
prints both as one table. An exponent of 1 is linear.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import release_payload
from bench.aims import Growth, commit_of, figure_of, grown
from bench.measure import pace
from bench.releases_world import SERVERS, world
from bench.speed import api, applying, live, update_status

NODES = (2_500, 5_000, 10_000)
NODES_OF_AN_UPDATE = (5_000, 10_000, 20_000)
SECONDS_OF_CHANGES = 30.0
# Half, three quarters and all of a real release: below half, there is no room for dashboards (`release_payload`).
SHARES = (0.5, 0.75, 1.0)
OBJECTS = (25_000, 50_000, 100_000)
CORE, WALL, MIB = "seconds of a core", "s", "MiB"
_LIVE = {
    ("first report, live", WALL): ("once", "seconds"),
    ("that, live", CORE): ("once", "cpu_seconds"),
    ("its memory", MIB): ("once", "peak_mib"),
    ("a node's change, live", WALL): ("node_change", "seconds", "median"),
    ("a pod's change, live", WALL): ("pod_change", "seconds", "median"),
}
_UPDATE_STATUS = {
    ("first UpdateStatus", WALL): ("seconds_from_start_to_first_object",),
    ("from a node's change to UpdateStatus, p99", WALL): ("seconds_from_node_change_to_object", "p99"),
    ("ten such changes a second", "of a core"): ("controller_cpu_share",),
    ("memory of the controller", MIB): ("controller_peak_mib",),
    ("`upgrade status`", WALL): ("commands", "upgrade status", "seconds"),
    ("`upgrade status --details=all`", WALL): ("commands", "upgrade status --details=all", "seconds"),
}
_APPLYING = {
    ("installed, kube-apiserver", WALL): ("install", "seconds"),
    ("that, of the operator", CORE): ("install", "cpu_seconds"),
    ("requests for it", "requests"): ("install", "requests"),
    ("memory of the operator afterwards", MIB): ("memory", "own_mib_at_the_end"),
}
_SANDBOX = {
    ("the sandbox's API server ready", WALL): ("ready_seconds",),
    ("16 GETs at once", WALL): ("seconds_for_gets",),
    ("16 creates at once", WALL): ("seconds_for_creates",),
}
_Paths = Mapping[tuple[str, str], tuple[str, ...]]


def run() -> dict[str, Any]:
    """Runs each benchmark at three sizes, and returns the costs of all."""
    before = pace()
    costs = [
        *_costs("nodes", _LIVE, {size: live.run(size) for size in _told("live", NODES)}),
        *_costs("nodes", _UPDATE_STATUS, _updates()),
        *_costs("manifests", _APPLYING, _releases()),
        *_costs("objects", _SANDBOX, {size: _sandbox(size) for size in _told("sandbox", OBJECTS)}),
    ]
    machine = {"commit": commit_of(Path(__file__).parents[2]), "pace": round((before + pace()) / 2, 3)}
    return {**machine, "costs": [asdict(each) for each in costs]}


def _told(what: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    print(f"bench: growth: {what} by {', '.join(map(str, sizes))}", file=sys.stderr, flush=True)
    return sizes


def _costs(size_of: str, paths: _Paths, results: Mapping[int, Mapping[str, Any]]) -> list[Growth]:
    """Returns the growth of each figure, given the result of the benchmark by size."""
    return [
        grown(f"{what}, by {size_of}", unit, {size: figure_of(result, path) for size, result in results.items()})
        for (what, unit), path in paths.items()
    ]


def _updates() -> dict[int, dict[str, Any]]:
    return {nodes: update_status.run(nodes, SECONDS_OF_CHANGES) for nodes in _told("update", NODES_OF_AN_UPDATE)}


def _releases() -> dict[int, dict[str, Any]]:
    """Returns what an installation took, by how many manifests the release has; empty without a server."""
    from tests.controlplane.build import Unavailable

    found = {}
    for share in SHARES:
        manifests = round(release_payload.MANIFESTS * share)
        _told("release", (manifests,))
        write = partial(release_payload.write, share=share)
        with tempfile.TemporaryDirectory() as folder:
            try:
                with world(SERVERS[0], Path(folder), write) as here, here.stand_in():
                    found[manifests] = applying.installed(here)
            except Unavailable as error:
                print(f"bench: growth: not measured: {error}", file=sys.stderr, flush=True)
                return {}
    return found


def _sandbox(objects: int) -> dict[str, Any]:
    """Returns the seconds that each connection's request takes beside that many objects."""
    measured = api.beside(objects)
    seconds = {
        f"seconds_for_{what}": api.CONNECTIONS / measured[what][f"{what}_per_second"] for what in ("gets", "creates")
    }
    return {"ready_seconds": measured["ready_seconds"], **seconds}
