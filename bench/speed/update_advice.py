"""Update advice: graphs built and judged, and how long PromQL risks take until all of them are known.

The first needs a folder of graph data beside the checkout, the second a Prometheus on PATH; each says what it lacked.
One query a second, which is what clusters do today, is the line to compare with: as many seconds as there are risks.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.prometheus import PROGRAM, prometheus

from bench.measure import process, timed
from kubekit.api import codec
from kubekit.kube.auth import Static
from kubekit.kube.clock import SystemClock
from kubekit.lang.version import Version
from runup.advice.control import graph_source
from runup.advice.control.prometheus import Prometheus
from runup.advice.decide.build_graph import graph_of_channel
from runup.advice.decide.graph import advice, parse_graph

DATA = Path(__file__).parents[3] / "shared" / "corpus" / "graph-data"
EDGES, ROUNDS = (5_000, 10_000, 20_000), 7
CHANNEL, ORIGIN = "stable-4.16", "4.14.20"


def run() -> dict[str, Any]:
    """All parts."""
    return {
        "graph": _graph() if DATA.exists() else f"no {DATA}",
        "large_graph": _large_graph(),
        "rules": _rules() if PROGRAM else "no prometheus on PATH (Debian: apt install prometheus)",
    }


def _large_graph() -> dict[str, Any]:
    """From the bytes of an answer to the advice, with ten edges from each of so many releases."""
    by_edges = {}
    for edges in EDGES:
        body = json.dumps(_document(edges)).encode()
        by_edges[str(edges)] = timed(
            lambda body=body: advice(parse_graph(body), current=Version("4.0.0"), channel="stable"),  # type: ignore[misc]
            ROUNDS,
        )
    return {
        "seconds": by_edges[str(EDGES[-1])],
        "by_edges": {count: found["median"] for count, found in by_edges.items()},
    }


def _document(edges: int) -> dict[str, Any]:
    """A graph with as many edges, a tenth of them conditional."""
    nodes = [
        {"version": f"4.{number // 100}.{number % 100}", "payload": f"r/x@sha256:{number:064}"}
        for number in range(edges // 10)
    ]
    pairs = [[number, (number + step) % len(nodes)] for number in range(len(nodes)) for step in range(1, 10)]
    risks = [
        {"url": "https://example.com/risk", "name": "Risk", "message": "A risk.", "matchingRules": [{"type": "Always"}]}
    ]
    guarded = [
        {
            "edges": [{"from": nodes[number]["version"], "to": nodes[(number + 10) % len(nodes)]["version"]}],
            "risks": risks,
        }
        for number in range(len(nodes))
    ]
    return {"nodes": nodes, "edges": pairs, "conditionalEdges": guarded}


def _graph() -> dict[str, Any]:
    runup = str(Path(sys.executable).with_name("runup"))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "graph.json")
        build = process([runup, "graph", "build", str(DATA), "--to", file])
        assert build.code == 0
        found = graph_source.load(file, None, (), "amd64")
    body = codec.encode(graph_of_channel(found.document, CHANNEL))
    started = time.perf_counter()
    told = advice(parse_graph(body), current=Version(ORIGIN), channel=CHANNEL)
    seconds = time.perf_counter() - started
    return {
        "build_seconds": round(build.seconds, 2),
        "build_peak_mib": round(build.peak_mib, 1),
        "nodes": len(found.document["nodes"]),
        "answer_kib": round(len(body) / 1024),
        "client_seconds": round(seconds, 4),
        "client_updates": len(told.updates) + len(told.conditional),
    }


def _rules() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), []) as real:
        return {str(count): round(asyncio.run(_until_known(real.url, count)), 3) for count in (10, 100, 1000)}


async def _until_known(url: str, count: int) -> float:
    """Seconds until as many different queries have their first answers."""
    queries = [f"0 * group(up) or vector({number})" for number in range(count)]
    asks = Prometheus(url, Static(), SystemClock(), lambda: None)
    started = time.perf_counter()
    asks.want(queries)
    while len(asks.state.answers) < count:  # noqa: ASYNC110 -- looked at, as the controller's passes do
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - started
    await asks.close()
    return seconds
