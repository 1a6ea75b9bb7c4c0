"""Graph data -> graph: what blocks, what is a risk, what names mean."""

from __future__ import annotations

from typing import Any

import pytest

from runup.advice.decide import build_graph
from runup.advice.decide.build_graph import BadReleases, KnownRelease, read_releases
from runup.advice.decide.update_paths import UpdateStep, ways

ALWAYS = [{"type": "Always"}]


def _risk(to: str, origin: str, name: str = "R", **changes: Any) -> dict[str, Any]:
    shown = {"name": name, "message": "m", "url": "https://u", "matchingRules": ALWAYS}
    return {"to": to, "from": origin, **shown, **changes}


def _built(blocked: list[Any], *, raw: Any = None, versions: tuple[str, ...] = (), arch: str = "amd64") -> Any:
    names = list(versions or ("4.1.0", "4.1.1", "4.2.0"))
    channels = {"channels/a.yaml": {"name": "a", "versions": names}}
    files = {f"blocked-edges/{number}.yaml": each for number, each in enumerate(blocked)}
    data = build_graph.read("1.1.0", channels, files, raw or {})
    known = [
        KnownRelease(version=n, image=f"img/{n}", previous=tuple(names[:i]))
        for i, n in enumerate(names)
        if "+" not in n
    ]
    return build_graph.build(data, known, arch)


def _edges(built: Any) -> set[tuple[str, str]]:
    nodes = [node["version"] for node in built.document["nodes"]]
    return {(nodes[a], nodes[b]) for a, b in built.document["edges"]}


def _conditional(built: Any) -> dict[tuple[str, str], list[str]]:
    groups = built.document["conditionalEdges"]
    return {(e["from"], e["to"]): [r["name"] for r in g["risks"]] for g in groups for e in g["edges"]}


FREE = {("4.1.0", "4.1.1"), ("4.1.0", "4.2.0"), ("4.1.1", "4.2.0")}
ROWS: dict[str, tuple[dict[str, Any], set[tuple[str, str]], dict[tuple[str, str], list[str]], set[tuple[str, str]]]] = {
    "nothing blocked": ({"blocked": []}, FREE, {}, set()),
    "blocked altogether": (
        {"blocked": [{"to": "4.2.0", "from": ".*"}]},
        {("4.1.0", "4.1.1")},
        {},
        {("4.1.0", "4.2.0"), ("4.1.1", "4.2.0")},
    ),
    "a risk from some": (
        {"blocked": [_risk("4.2.0", "4[.]1[.]0[+].*")]},
        {("4.1.0", "4.1.1"), ("4.1.1", "4.2.0")},
        {("4.1.0", "4.2.0"): ["R"]},
        set(),
    ),
    "two risks, sorted": (
        {"blocked": [_risk("4.1.1", ".*", "Z"), _risk("4.1.1", ".*", "A")]},
        FREE - {("4.1.0", "4.1.1")},
        {("4.1.0", "4.1.1"): ["A", "Z"]},
        set(),
    ),
    "blocked outweighs a risk": (
        {"blocked": [_risk("4.1.1", ".*"), {"to": "4.1.1", "from": "4[.]1[.]0"}]},
        FREE - {("4.1.0", "4.1.1")},
        {},
        {("4.1.0", "4.1.1")},
    ),
    "the expression is searched for, not anchored": (
        {"blocked": [_risk("4.2.0", "1[.]1")]},
        FREE - {("4.1.1", "4.2.0")},
        {("4.1.1", "4.2.0"): ["R"]},
        set(),
    ),
    "another architecture's block": ({"blocked": [{"to": "4.2.0+s390x", "from": ".*"}]}, FREE, {}, set()),
    "another architecture's expression": ({"blocked": [_risk("4.2.0", "[+]arm64$")]}, FREE, {}, set()),
    "predecessors taken away and added": (
        {
            "blocked": [],
            "raw": {
                "4.2.0": {
                    "io.openshift.upgrades.graph.previous.remove": "4.1.0",
                    "io.openshift.upgrades.graph.previous.add": "4.1.1,9.9.9",
                }
            },
        },
        FREE - {("4.1.0", "4.2.0")},
        {},
        set(),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_blocked_edges(name: str) -> None:
    """Free, with risks, or gone."""
    given, free, risky, removed = ROWS[name]
    built = _built(**given)
    assert (_edges(built), _conditional(built), set(built.removed)) == (free, risky, removed)


def test_a_name_may_mean_one_architecture() -> None:
    """In channels as in blocked edges."""
    built = _built([], versions=("4.1.0", "4.1.1+arm64"), arch="amd64")
    assert [node["version"] for node in built.document["nodes"]] == ["4.1.0"]


def test_releases_that_the_channels_have_and_nobody_gave() -> None:
    """They are reported, and are no nodes."""
    data = build_graph.read("1.0.0", {"c": {"name": "a", "versions": ["4.1.0", "4.1.1"]}}, {}, {})
    built = build_graph.build(data, [KnownRelease(version="4.1.0")], "amd64")
    assert built.notes == ("the channels have 1 more release, such as 4.1.1",)
    assert not built.assumed


BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "another schema": (("2.0.0", {}, {}, {}), "file version says '2.0.0', and only schema 1.x can be read"),
    "no schema": (("x", {}, {}, {}), "file version says 'x'"),
    "a channel without a name": (("1.0.0", {"channels/a.yaml": {"versions": []}}, {}, {}), "channels/a.yaml: "),
    "a channel with no version": (
        ("1.0.0", {"channels/a.yaml": {"name": "a", "versions": ["four"]}}, {}, {}),
        "channels/a.yaml: 'four' is not a semantic version",
    ),
    "no expression": (
        ("1.0.0", {}, {"b/x.yaml": {"to": "4.1.0", "from": "("}}, {}),
        "b/x.yaml: from '(' is not a regular expression: error parsing regexp: missing closing ): `(`",
    ),
    "a risk without words": (
        ("1.0.0", {}, {"b/x.yaml": {"to": "4.1.0", "from": ".", "matchingRules": ALWAYS}}, {}),
        "b/x.yaml: a risk needs name and message and url in addition to matchingRules",
    ),
    "raw that is a list": (("1.0.0", {}, {}, ["x"]), "raw/metadata.json: a mapping is wanted"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str) -> None:
    """The file is named."""
    given, text = BAD[name]
    with pytest.raises(build_graph.BadGraphData) as caught:
        build_graph.read(*given)
    assert caught.value.message.startswith(text)


def test_the_shortest_way_avoids_risks() -> None:
    """Fewest updates, of those the fewest risks, of those over the newest."""
    versions = ("4.1.0", "4.1.1", "4.1.2", "4.1.3", "4.2.0")
    built = _built([_risk("4.1.3", ".*"), {"to": "4.2.0", "from": "4[.]1[.]0"}], versions=versions)
    found = ways(built.document, built.removed, "4.1.0")
    assert found is not None
    assert found.way == (UpdateStep("4.1.0", "4.1.2"), UpdateStep("4.1.2", "4.2.0"))
    assert found.blocked == {"4.2.0": ("blocked-edges/1.yaml",)}
    assert [step.to for step in found.updates] == ["4.1.3", "4.1.2", "4.1.1"]
    assert ways(built.document, {}, "4.2.0", "4.1.0").way == ()  # type: ignore[union-attr]
    assert ways(built.document, {}, "9.9.9") is None


def test_a_release_that_several_ways_lead_to_is_gone_on_from_once() -> None:
    """The way on is found past those that lead back to where another way has been."""
    hops = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 5), (5, 6)]
    versions = ("4.1.0", "4.1.1", "4.1.2", "4.1.3", "4.1.4", "4.1.5", "4.2.0")
    document = {"nodes": [{"version": v} for v in versions], "edges": hops, "conditionalEdges": []}
    found = ways(document, {}, "4.1.0")
    assert found is not None
    assert [step.to for step in found.way] == ["4.1.3", "4.1.4", "4.1.5", "4.2.0"]


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param([], (), id="none"),
        pytest.param(
            [{"version": "5.0.0"}, {"version": "5.0.1", "previous": ["5.0.0"]}],
            (KnownRelease(version="5.0.0"), KnownRelease(version="5.0.1", previous=("5.0.0",))),
            id="two, one after the other",
        ),
        pytest.param({"version": "5.0.0"}, "a list of releases is wanted", id="no list"),
        pytest.param([{"version": "5.0.0"}, {"version": 5}], "release 2: ", id="a version that is a number"),
        pytest.param([{"version": "five"}], "release 1: 'five' is not a semantic version", id="no version"),
    ],
)
def test_the_list_of_releases(document: Any, found: Any) -> None:
    """As somebody wrote it; what is wrong is reported by its place."""
    if isinstance(found, str):
        with pytest.raises(BadReleases, match=found):
            read_releases(document)
    else:
        assert read_releases(document) == found
