"""The update service's graph, and what the risks of an update come to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.factories import NOW

from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version
from runup.advice.decide.candidates import ALWAYS, Candidate, EvaluatedRisk, recommended_condition
from runup.advice.decide.graph import BadGraph, advice, parse_graph, reachable
from runup.advice.decide.promql import NOTHING, evaluate_rules
from runup.advice.decide.service import NotAsked, query_for
from runup.api.config_v1 import ClusterVersionSpec, ConditionalUpdateRisk, MatchingRule, PromQL, Release

V = Version("5.0.0")
ID = "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"
ALWAYS_WIRE = [{"type": "Always"}]


def graph(*, rules_: list[Any] = ALWAYS_WIRE, twice: bool = False, to: str = "5.1.0") -> bytes:
    """5.0.0 with a plain edge to 5.0.1 and 5.1.0, and a conditional one to 5.1.0."""
    risk = {"name": "R", "message": "m", "url": "https://e/", "matchingRules": rules_}
    nodes = [{"version": v, "payload": f"i@{v}"} for v in ("5.0.0", "5.0.1", "5.1.0", "5.2.0")]
    if twice:
        nodes.append({"version": "5.1.1", "payload": "i@5.1.0"})
    edges = [{"from": "5.0.0", "to": to}, *([{"from": "5.0.0", "to": "5.1.1"}] if twice else [])]
    document = {"nodes": nodes, "edges": [[0, 1], [0, 2], [2, 3]]}
    return json.dumps(document | {"conditionalEdges": [{"edges": edges, "risks": [risk]}]}).encode()


def test_a_release_with_risks_is_only_conditional() -> None:
    """An edge that is also conditional is no plain update."""
    found = advice(parse_graph(graph()), current=V, channel="c")
    assert [r.version for r in found.updates] == ["5.0.1"]
    assert [u.release.version for u in found.conditional] == ["5.1.0"]


def test_derives_the_advice_of_a_graph_once() -> None:
    """A pass runs in the event loop, and a graph may have many thousands of edges; each cluster has its own advice."""
    of_all = parse_graph(graph())
    found = advice(of_all, current=V, channel="c")
    assert advice(of_all, current=V, channel="c") is found
    assert advice(of_all, current=V, channel="c", migrating=True) != found


@pytest.mark.parametrize(
    "rules_",
    [
        pytest.param([{"type": "Someday"}], id="an unknown type"),
        pytest.param([{"type": ""}], id="an empty type"),
        pytest.param([{"type": "nonexist", "promql": {"promql": "x"}}], id="an unknown type with a query"),
        pytest.param([{"type": "PromQL"}], id="PromQL without a query"),
        pytest.param([{"type": "Always", "promql": {"promql": "x"}}], id="Always with a query"),
        pytest.param([], id="no rule"),
    ],
)
def test_a_risk_whose_rules_we_do_not_know_drops_its_update(rules_: list[Any]) -> None:
    """Fail closed: an update without its condition would look safer than it is."""
    found = advice(parse_graph(graph(rules_=rules_)), current=V, channel="c")
    assert found.conditional == ()


def test_two_versions_of_one_image_are_dropped() -> None:
    """They contradict each other."""
    assert advice(parse_graph(graph(twice=True)), current=V, channel="c").conditional == ()


def test_two_groups_of_one_version_are_one_update_with_the_risks_of_both() -> None:
    """Where the Go operator drops the update (docs/decisions/0050)."""
    document = json.loads(graph())
    (group,) = document["conditionalEdges"]
    other = {**group, "risks": [{**group["risks"][0], "name": "S"}]}
    document["conditionalEdges"].append(other)
    found = advice(parse_graph(json.dumps(document).encode()), current=V, channel="c")
    assert [(u.release.version, [risk.name for risk in u.risks]) for u in found.conditional] == [("5.1.0", ["R", "S"])]
    assert [release.version for release in found.updates] == ["5.0.1"]


_BAD_METADATA = {
    "a bad URL": ({"url": "http://["}, "invalid release URL: parse \"http://[\": missing ']' in host"),
    "an unknown architecture": (
        {"release.openshift.io/architecture": "amd64"},
        'unrecognized release.openshift.io/architecture value "amd64"',
    ),
    "no channel": (
        {"io.openshift.upgrades.graph.release.channels": ""},
        "io.openshift.upgrades.graph.release.channels is an empty string",
    ),
    "an empty channel": (
        {"io.openshift.upgrades.graph.release.channels": "a,,b"},
        'io.openshift.upgrades.graph.release.channels has an entry that is an empty string: "a,,b"',
    ),
}


@pytest.mark.parametrize(("metadata", "says"), _BAD_METADATA.values(), ids=_BAD_METADATA.keys())
@pytest.mark.parametrize(
    ("version", "kind"),
    [("5.0.0", "current"), ("5.0.1", "recommended update"), ("5.2.0", "conditional update")],
    ids=["current", "plain", "conditional"],
)
def test_bad_metadata_of_a_node_that_counts_is_no_answer(
    metadata: dict[str, str], says: str, version: str, kind: str
) -> None:
    """As in the Go operator, for the current release and for each update; other nodes do not count."""
    document = json.loads(graph(to="5.2.0"))
    unrelated = {"version": "4.0.0", "payload": "i@4", "metadata": metadata}
    document["nodes"] = [
        {**node, "metadata": metadata if node["version"] == version else {}} for node in document["nodes"]
    ] + [unrelated]
    with pytest.raises(BadGraph) as caught:
        advice(parse_graph(json.dumps(document).encode()), current=V, channel="c")
    assert (caught.value.reason, caught.value.message) == ("ResponseInvalid", f"invalid {kind} node: {says}")
    good = {**document, "nodes": [{**node, "metadata": {}} for node in document["nodes"][:-1]] + [unrelated]}
    assert advice(parse_graph(json.dumps(good).encode()), current=V, channel="c").updates


def test_every_walk_counts_for_reachability() -> None:
    """Skip-level targets are found at the end of several hops."""
    assert [r.version for r in reachable(parse_graph(graph()), V)] == ["5.2.0", "5.1.0", "5.0.1"]


def crossing(*edges: tuple[str, str], risk: str = "R") -> dict[str, Any]:
    """Hops that share a risk which always applies."""
    risks = [{"name": risk, "message": "m", "url": "https://e/", "matchingRules": ALWAYS_WIRE}]
    return {"edges": [{"from": old, "to": new} for old, new in edges], "risks": risks}


# Nodes in no order; 4.9.0 lies behind, 5.3.0 beyond; one group has hops from elsewhere before and after ours.
NODES = ("5.2.0", "4.9.0", "5.1.0", "5.0.0", "5.0.1", "5.3.0", "5.1.1")
BEHIND, BEYOND = ("4.9.0", "5.0.0"), ("5.2.0", "5.3.0")
MAZE = {
    "nodes": [{"version": version, "payload": f"i@{version}"} for version in NODES],
    "edges": [[1, 3], [3, 4], [3, 2], [4, 6], [0, 5]],
    "conditionalEdges": [
        crossing(BEHIND, ("5.1.0", "5.2.0"), ("5.0.0", "5.1.0"), BEYOND),
        crossing(("5.0.0", "5.1.0"), risk="S"),
        crossing(("5.0.0", "5.1.1"), ("5.9.9", "5.3.0"), ("5.1.1", "5.9.9")),
    ],
}


@pytest.mark.parametrize(
    ("current", "updates", "conditional"),
    [
        pytest.param("5.0.0", ["5.0.1"], {"5.1.1": ["R"], "5.1.0": ["R", "S"]}, id="in the middle"),
        pytest.param("4.9.0", [], {"5.0.0": ["R"]}, id="the oldest"),
        pytest.param("5.1.0", [], {"5.2.0": ["R"]}, id="a hop that carries a risk alone"),
        pytest.param("5.3.0", [], {}, id="the newest"),
    ],
)
def test_only_what_begins_here_is_offered(current: str, updates: list[str], conditional: dict[str, list[str]]) -> None:
    """A graph with hops from earlier and later releases, and risks defined in several places."""
    found = advice(parse_graph(json.dumps(MAZE).encode()), current=Version(current), channel="c")
    assert [release.version for release in found.updates] == updates
    assert {each.release.version: [risk.name for risk in each.risks] for each in found.conditional} == conditional
    assert [each.release.version for each in found.conditional] == sorted(conditional, reverse=True)


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        pytest.param("5.0.0", ["5.3.0", "5.2.0", "5.1.1", "5.1.0", "5.0.1"], id="over hops with a risk too"),
        pytest.param("5.2.0", ["5.3.0"], id="one hop"),
        pytest.param("5.1.1", [], id="a hop to what is no node leads nowhere"),
        pytest.param("4.9.0", ["5.3.0", "5.2.0", "5.1.1", "5.1.0", "5.0.1", "5.0.0"], id="everything lies ahead"),
        pytest.param("5.9.9", [], id="what is no node comes from nowhere"),
    ],
)
def test_nothing_behind_is_reachable(current: str, expected: list[str]) -> None:
    """Newest first, and never the release itself."""
    found = reachable(parse_graph(json.dumps(MAZE).encode()), Version(current))
    assert [release.version for release in found] == expected


@pytest.mark.parametrize(
    ("metadata", "architecture", "channels"),
    [
        pytest.param({"release.openshift.io/architecture": "multi"}, "Multi", (), id="the service writes it small"),
        pytest.param({"release.openshift.io/architecture": "amd64"}, "amd64", (), id="one architecture"),
        pytest.param({"release.openshift.io/architecture": "s390x"}, "s390x", (), id="one that sorts behind"),
        pytest.param({}, "", (), id="nothing is said"),
        pytest.param(
            {"io.openshift.upgrades.graph.release.channels": "stable-5.0, ,fast-5.0,"},
            "",
            ("fast-5.0", "stable-5.0"),
            id="channels by name",
        ),
    ],
)
def test_what_a_node_says_of_its_release(
    metadata: dict[str, str], architecture: str, channels: tuple[str, ...]
) -> None:
    """As ClusterVersion's status writes it."""
    node = {"version": "5.0.0", "payload": "i@1", "metadata": metadata | {"url": "https://u/"}}
    (release,) = parse_graph(json.dumps({"nodes": [node]}).encode()).releases
    assert release == Release(
        version="5.0.0", image="i@1", url="https://u/", architecture=architecture, channels=channels
    )


def test_migrating_offers_the_release_itself() -> None:
    """Its other architecture, and nothing that it leads to."""
    found = advice(parse_graph(graph()), current=V, channel="c", migrating=True)
    assert ([release.version for release in found.updates], found.conditional) == (["5.0.0"], ())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"<html>", "ResponseInvalid", id="no JSON"),
        pytest.param(b'{"nodes": [], "edges": [[0, 1]]}', "ResponseInvalid", id="an edge to nowhere"),
        pytest.param(
            b'{"nodes": [{"version": "5.0.0"}], "edges": [[0, 1]]}', "ResponseInvalid", id="one place too far"
        ),
        pytest.param(b'{"nodes": [{"version": "5.0.0"}], "edges": [[-1, 0]]}', "ResponseInvalid", id="a place below 0"),
        pytest.param(b'{"nodes": [{"version": "x"}]}', "ResponseInvalid", id="a node without a version"),
        pytest.param(graph(to="7.0.0"), "ResponseInvalid", id="a conditional edge to nowhere"),
        pytest.param(b'{"nodes": []}', "VersionNotFound", id="our version is no node"),
    ],
)
def test_what_is_no_graph_for_us(data: bytes, reason: str) -> None:
    """The reason is RetrievedUpdates'."""
    with pytest.raises(BadGraph) as caught:
        advice(parse_graph(data), current=V, channel="c")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("spec", "version", "reason"),
    [
        pytest.param({"upstream": "ftp://x"}, "5.0.0", "InvalidURI", id="no http address"),
        pytest.param({"upstream": "http://["}, "5.0.0", "InvalidURI", id="what no parser takes"),
        pytest.param({"upstream": "http://host/%zz"}, "5.0.0", "InvalidURI", id="an escape that Go refuses"),
        pytest.param({"cluster_id": "x"}, "5.0.0", "InvalidID", id="no UUID"),
        pytest.param({}, "", "NoCurrentVersion", id="no version"),
        pytest.param({"channel": ""}, "5.0.0", "NoChannel", id="no channel"),
        pytest.param({}, "five", "InvalidCurrentVersion", id="no semantic version"),
    ],
)
def test_what_keeps_the_service_from_being_asked(spec: dict[str, str], version: str, reason: str) -> None:
    """In the order of the checks upstream."""
    whole = ClusterVersionSpec(**({"cluster_id": ID, "channel": "stable-5.0"} | spec))
    with pytest.raises(NotAsked) as caught:
        query_for(whole, Release(version=version), configured_url="", architecture="amd64")
    assert caught.value.reason == reason


def test_the_question_keeps_parameters_of_the_url() -> None:
    """arch, channel, id and version are added to what is there."""
    spec = ClusterVersionSpec(cluster_id=ID, channel="stable-5.0", upstream="https://u/graph?key=1")
    query = query_for(spec, Release(version="5.0.0"), configured_url="", architecture="Multi")
    assert query.uri == f"https://u/graph?arch=multi&channel=stable-5.0&id={ID}&key=1&version=5.0.0"


def test_parameters_of_ours_replace_those_of_the_url() -> None:
    """Nobody is asked with two channels; one that says nothing but its name stays."""
    spec = ClusterVersionSpec(cluster_id=ID, channel="stable-5.0", upstream="https://u/graph?channel=x&debug=&id=1")
    query = query_for(spec, Release(version="5.0.0"), configured_url="", architecture="amd64")
    assert query.uri == f"https://u/graph?arch=amd64&channel=stable-5.0&debug=&id={ID}&version=5.0.0"


def test_promql_is_unknown_until_something_else_decides() -> None:
    """Rules are walked in order: what cannot be evaluated is passed over, never taken for no."""
    query = MatchingRule(type="PromQL", promql=PromQL(promql="up"))
    only = ConditionalUpdateRisk(name="R", message="m", url="https://e/", matching_rules=(query,))
    both = ConditionalUpdateRisk(name="R", message="m", url="https://e/", matching_rules=(query, *ALWAYS))
    found = evaluate_rules(only, NOTHING, NOW)
    assert (found.status, found.reason) == ("Unknown", "EvaluationFailed")
    assert evaluate_rules(both, NOTHING, NOW).status == "True"


def evaluated_risk(name: str, status: Any, reason: str = "Match") -> EvaluatedRisk:
    """A risk with its verdict."""
    risk = ConditionalUpdateRisk(name=name, message=f"{name}.", url="https://e/", matching_rules=ALWAYS)
    return EvaluatedRisk(risk=risk, applies=Condition(type="Applies", status=status, reason=reason, message=f"{name}?"))


A, B, C = evaluated_risk("A", "True"), evaluated_risk("B-b", "True"), evaluated_risk("C", "True")
NO, UNKNOWN = evaluated_risk("N", "False"), evaluated_risk("U", "Unknown", "EvaluationFailed")


@pytest.mark.parametrize(
    ("risks", "accepted", "expected"),
    [
        pytest.param((NO,), (), ("True", "NotExposedToRisks"), id="none applies"),
        pytest.param((A,), (), ("False", "A"), id="one applies"),
        pytest.param((B,), (), ("False", "ExposedToRisks"), id="one applies whose name is no reason"),
        pytest.param((UNKNOWN,), (), ("Unknown", "EvaluationFailed"), id="one unknown"),
        pytest.param((A,), ("A",), ("True", "AllExposedRisksAccepted"), id="accepted"),
        pytest.param((UNKNOWN,), ("U",), ("True", "AllExposedRisksAccepted"), id="an unknown one accepted"),
        pytest.param((A, C), (), ("False", "MultipleReasons"), id="two apply"),
        pytest.param((A, C), ("A",), ("False", "C"), id="one of two accepted"),
        pytest.param((A, UNKNOWN), ("A",), ("Unknown", "EvaluationFailed"), id="accepted and unknown"),
        pytest.param((UNKNOWN, B), (), ("False", "ExposedToRisks"), id="unknown and exposed"),
        pytest.param((UNKNOWN, A), (), ("False", "MultipleReasons"), id="unknown and exposed by name"),
    ],
)
def test_recommended(risks: tuple[EvaluatedRisk, ...], accepted: tuple[str, ...], expected: tuple[str, str]) -> None:
    """The fold of docs/reference/upstream.md 7.5."""
    found = recommended_condition(Candidate(Release(version="5.1.0"), risks), accepted)
    assert (found.status, found.reason) == expected


def test_recommended_joins_messages_in_risk_order() -> None:
    """Parts are separated by a blank line; one that is accepted says nothing next to one that is not."""
    found = recommended_condition(Candidate(Release(), (A, C, UNKNOWN)), ("C",))
    assert found.message == "A. https://e/\n\nU?"
