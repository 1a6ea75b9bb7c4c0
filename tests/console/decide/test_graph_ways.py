"""The way of a cluster: by a graph, by what ClusterVersion offers, or by the steps of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.preflight.render import samples

from kubekit.api.meta_v1 import Condition
from runup.advice.decide.update_paths import UpdateStep
from runup.api.config_v1 import ConditionalUpdate, ConditionalUpdateRisk, Release
from runup.console.decide.board import Evaluation, Offered
from runup.console.decide.graph_ways import MOST_UPDATES, Graph, find_way
from runup.preflight.decide.findings import Findings
from runup.report.report import CONTROL_PLANE, NODES, ReportedStep

CHANNELS = "io.openshift.upgrades.graph.release.channels"


def _graph(*edges: tuple[str, str], risky: tuple[tuple[str, str], ...] = (), removed: Any = None) -> Graph:
    versions = sorted({version for edge in (*edges, *risky) for version in edge})
    nodes = [{"version": version, "payload": "i", "metadata": {CHANNELS: "stable-5"}} for version in versions]
    conditional = [
        {
            "edges": [{"from": old, "to": new} for old, new in risky],
            "risks": [{"name": "Slow", "message": "m", "url": "u", "matchingRules": [{"type": "Always"}]}],
        }
    ]
    document = {
        "version": 1,
        "nodes": nodes,
        "edges": [[versions.index(old), versions.index(new)] for old, new in edges],
        "conditionalEdges": conditional if risky else [],
    }
    return Graph(document, removed or {})


TWO = _graph(("5.0.0", "5.1.0"), risky=(("5.1.0", "5.2.0"),), removed={("5.0.0", "5.2.0"): ("blocked.yaml",)})
OF_GRAPH = Evaluation(findings=samples.CLEAR, offered=Offered(origin="5.0.0", channel="stable-5"))


def test_a_way_through_a_graph() -> None:
    """With its risky and its blocked updates."""
    way = find_way(OF_GRAPH, TWO)
    assert way.paths is not None
    assert way.paths.way == (UpdateStep("5.0.0", "5.1.0"), UpdateStep("5.1.0", "5.2.0", ("Slow",)))
    assert way.paths.blocked == {"5.2.0": ("blocked.yaml",)}
    assert "channel stable-5" in way.source


@pytest.mark.parametrize(
    ("evaluated", "graph", "why"),
    [
        pytest.param(
            Evaluation(findings=samples.CLEAR, offered=Offered(origin="5.0.0", channel="fast")),
            TWO,
            "no release in channel fast",
            id="channel",
        ),
        pytest.param(
            Evaluation(findings=samples.CLEAR, offered=Offered(origin="4.9.0")),
            TWO,
            "4.9.0 is not in the graph",
            id="release",
        ),
        pytest.param(Evaluation(findings=samples.CLEAR), None, "runup serve --graph", id="a kept report and no graph"),
        pytest.param(
            Evaluation(findings=Findings(source="", target="")), TWO, "is not known", id="nobody knows where it stands"
        ),
        pytest.param(
            Evaluation(findings=samples.CLEAR, offered=Offered(origin="5.0.0")), None, "names no update", id="no update"
        ),
    ],
)
def test_ways_that_are_not_known(evaluated: Evaluation, graph: Graph | None, why: str) -> None:
    """The reason is reported, and nothing is drawn."""
    way = find_way(evaluated, graph)
    assert way.paths is None
    assert why in way.why


def test_a_target_that_the_graph_does_not_have() -> None:
    """The way is to the newest release, and says so."""
    way = find_way(
        Evaluation(
            findings=Findings(source="5.0.0", target="6.0.0"), offered=Offered(origin="5.0.0", channel="stable-5")
        ),
        TWO,
    )
    assert way.paths is not None
    assert way.paths.goal == "5.2.0"
    assert "6.0.0 is not in the graph" in way.why


def test_what_cluster_version_offers() -> None:
    """One update far; one that is not recommended is never without a risk."""
    risk = ConditionalUpdateRisk(name="Slow", message="m", url="u")
    refused = Condition(type="Recommended", status="False", reason="Refused")
    offered = Offered(
        origin="5.0.0",
        channel="stable-5",
        available=(Release(version="5.0.1"), Release(version="not a version")),
        conditional=(
            ConditionalUpdate(release=Release(version="5.2.0"), risks=(risk,)),
            ConditionalUpdate(release=Release(version="5.1.9"), conditions=(refused,)),
        ),
    )
    way = find_way(Evaluation(findings=samples.CLEAR, offered=offered), None)
    assert way.paths is not None
    assert way.paths.updates == (
        UpdateStep("5.0.0", "5.0.1"),
        UpdateStep("5.0.0", "5.2.0", ("Slow",)),
        UpdateStep("5.0.0", "5.1.9", ("Refused",)),
    )
    assert way.paths.way == (UpdateStep("5.0.0", "5.2.0", ("Slow",)),)


@pytest.mark.parametrize(
    ("channel", "channels", "ask"),
    [
        pytest.param("stable-5.0", ("fast-5.2", "stable-5.2"), "runup upgrade channel stable-5.2", id="a channel"),
        pytest.param("stable-5.0", ("fast-5.2",), "runup upgrade channel fast-5.2", id="of another kind"),
        pytest.param("eus-5.0", (), "runup upgrade channel eus-5.2", id="no channel listed"),
        pytest.param("", (), "runup upgrade channel stable-5.2", id="no channel set"),
        pytest.param("stable-5.2", ("stable-5.2",), "runup serve --graph FILE", id="the channel itself"),
    ],
)
def test_names_the_channel_to_ask_for_a_way_of_several_steps(channel: str, channels: tuple[str, ...], ask: str) -> None:
    """ClusterVersion names updates of one step, so that no way being known does not mean that there is none."""
    offered = Offered(origin="5.0.0", channel=channel, available=(Release(version="5.0.1"),), channels=channels)
    way = find_way(Evaluation(findings=Findings(source="5.0.0", target="5.2.0"), offered=offered), None)
    assert way.verdict == "It is not known whether a way leads to 5.2.0."
    assert way.why.endswith(ask)


def test_says_that_no_way_leads_to_the_target_of_a_whole_graph() -> None:
    """The search of a graph is complete."""
    graph = _graph(("5.0.0", "5.0.1"), ("5.1.0", "5.2.0"))
    way = find_way(
        Evaluation(findings=Findings(source="5.0.0", target="5.2.0"), offered=Offered(origin="5.0.0")), graph
    )
    assert way.verdict == "No way leads to 5.2.0 in the graph that was given, every channel."


def test_the_steps_of_kubernetes() -> None:
    """One minor version after the other, each with the risks that it meets first."""
    steps = (
        ReportedStep(part=CONTROL_PLANE, version="1.35", risks=("A",)),
        ReportedStep(part=NODES, version="1.35", risks=("A", "B")),
        ReportedStep(part=CONTROL_PLANE, version="1.36"),
    )
    way = find_way(
        Evaluation(findings=Findings(source="1.34.2", target="1.36.0", kind="Kubernetes", steps=steps)), None
    )
    assert way.paths is not None
    assert way.paths.way == (UpdateStep("1.34.2", "1.35", ("A", "B")), UpdateStep("1.35", "1.36"))


def test_more_updates_than_anybody_reads() -> None:
    """Some are left out, and counted; the way is whole."""
    many = [("5.0.0", f"5.0.{number}") for number in range(1, MOST_UPDATES + 11)]
    way = find_way(
        Evaluation(findings=Findings(source="5.0.0", target="5.0.1"), offered=Offered(origin="5.0.0")), _graph(*many)
    )
    assert way.paths is not None
    assert (len(way.paths.updates), way.left_out) == (MOST_UPDATES, 10)
    assert way.paths.way == (UpdateStep("5.0.0", "5.0.1"),)


def _of_channels(edges: tuple[tuple[str, str], ...], channels: dict[str, str]) -> Graph:
    graph = _graph(*edges)
    nodes = [{**node, "metadata": {CHANNELS: channels[node["version"]]}} for node in graph.document["nodes"]]
    return Graph({**graph.document, "nodes": nodes}, {})


@pytest.mark.parametrize(
    ("channels", "steps"),
    [
        pytest.param(
            {"5.0.0": "stable-5.0,stable-5.1", "5.1.0": "stable-5.1,stable-5.2", "5.2.0": "stable-5.2"},
            [("5.0.0", "5.1.0", ("stable-5.1",)), ("5.1.0", "5.2.0", ("stable-5.2",))],
            id="over two other channels",
        ),
        pytest.param(
            {"5.0.0": "stable-5.0", "5.1.0": "stable-5.1", "5.2.0": "stable-5.2"}, [], id="no channel has both releases"
        ),
    ],
)
def test_a_way_through_several_channels(
    channels: dict[str, str], steps: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    """If the cluster's own channel does not have it; each update is in a channel that has both of its releases."""
    graph = _of_channels((("5.0.0", "5.1.0"), ("5.1.0", "5.2.0")), channels)
    offered = Offered(origin="5.0.0", channel="stable-5.0")
    way = find_way(Evaluation(findings=samples.CLEAR, offered=offered), graph)
    assert way.paths is not None
    assert [(*step[:2], way.channels_of_step(step)) for step in way.paths.way] == steps
    assert ("this one needs other channels on its way" in way.why) == bool(steps)


def test_updates_after_the_first_are_drawn() -> None:
    """Between the releases that are drawn, with the texts of their risks."""
    graph = _graph(
        ("5.0.0", "5.0.1"), ("5.0.1", "5.1.0"), ("5.0.0", "5.1.0"), risky=(("5.0.1", "5.2.0"), ("5.1.0", "5.2.0"))
    )
    way = find_way(OF_GRAPH, graph)
    assert way.paths is not None
    assert {step[:2] for step in way.paths.onward} == {("5.0.1", "5.1.0"), ("5.0.1", "5.2.0"), ("5.1.0", "5.2.0")}
    assert way.paths.risks["Slow"]["message"] == "m"


@pytest.mark.parametrize(
    ("upstream", "address"),
    [
        pytest.param(
            "", "https://api.openshift.com/api/upgrades_info/v1/graph?channel=stable-5.2", id="the default service"
        ),
        pytest.param(
            "https://osus.example/graph?x=1", "https://osus.example/graph?x=1&channel=stable-5.2", id="another"
        ),
    ],
)
def test_offers_the_graph_that_knows_more(upstream: str, address: str) -> None:
    """ClusterVersion knows one update; the graphs of its channel and of the target's know the others."""
    offered = Offered(
        origin="5.0.0",
        channel="stable-5.0",
        channels=("stable-5.0", "stable-5.2"),
        available=(Release(version="5.0.1"),),
        upstream=upstream,
    )
    way = find_way(Evaluation(findings=samples.CLEAR, offered=offered), None)
    assert way.one_step
    assert [channel for channel, _ in way.graph_urls] == ["stable-5.0", "stable-5.2"]
    assert way.graph_urls[1][1] == address
