"""Answers of the update service that are as large as they are short, and the largest that count."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.api import codec
from kubekit.lang.version import Version
from runup.advice.decide import graph as limits
from runup.advice.decide.graph import CHANNELS, BadGraph, advice, derive_advice, parse_graph
from runup.advice.decide.update_paths import StepMap, UpdateStep, shortest_way

HERE = "5.0.0"
JSON = dict[str, Any]


def version(number: int) -> str:
    """A separate version for each number."""
    return f"5.{number // 1000}.{number % 1000}"


def nodes(count: int) -> list[JSON]:
    """So many releases; the first is the cluster's own."""
    return [{"version": version(number), "payload": f"i@{number}"} for number in range(count)]


def risks(count: int, message: str = "m", rules: int = 1, prefix: str = "R") -> list[JSON]:
    """Returns as many risks, each with its own query rules."""
    return [
        {
            "name": f"{prefix}{number}",
            "message": message,
            "url": "u",
            "matchingRules": [
                {"type": "PromQL", "promql": {"promql": f"q{prefix}{number}_{rule}"}} for rule in range(rules)
            ],
        }
        for number in range(count)
    ]


def onward(targets: list[int]) -> list[JSON]:
    """Conditional edges from here."""
    return [{"from": HERE, "to": version(number)} for number in targets]


def conditional(*groups: tuple[list[JSON], list[JSON]], count: int = 2) -> JSON:
    """A graph of so many nodes, with these groups of edges and the risks that they share."""
    return {"nodes": nodes(count), "conditionalEdges": [{"edges": edges, "risks": shared} for edges, shared in groups]}


ALWAYS = [{"name": "R", "message": "m", "url": "u", "matchingRules": [{"type": "Always"}]}]
TOO_MANY: dict[str, tuple[JSON, str]] = {
    "nodes": ({"nodes": nodes(5_001)}, "5001 nodes; the limit is 5000"),
    "edges": ({"nodes": nodes(1), "edges": [[0, 0]] * 150_001}, "150001 edges; the limit is 150000"),
    "conditional edges": (
        conditional(([{"from": "a", "to": "b"}] * 150_001, [])),
        "150001 conditional edges; the limit is 150000",
    ),
    "groups": (conditional(*[([], [])] * 5_001), "5001 groups of conditional edges"),
    "risks of one update": (conditional(([], risks(501))), "501 risks of one update; the limit is 500"),
    "rules of one risk": (conditional(([], risks(1, rules=17))), "17 matching rules of a risk; the limit is 16"),
    "updates from here": (
        {"nodes": nodes(1_002), "edges": [[0, number] for number in range(1, 1_002)]},
        "1001 updates from '5.0.0'",
    ),
    "updates with risks from here": (
        conditional((onward(list(range(1, 1_002))), ALWAYS), count=1_002),
        "1001 updates with risks from '5.0.0'",
    ),
    "risks of all updates from here": (
        conditional((onward(list(range(1, 102))), risks(100)), count=102),
        "10100 risks of updates from '5.0.0'",
    ),
    "text of risks": (
        conditional((onward(list(range(1, 101))), risks(1, "m" * 50_000)), count=101),
        "characters in the risks of updates from '5.0.0'",
    ),
    "queries": (
        conditional(*((onward([1]), risks(100, prefix=f"R{group}x")) for group in range(6))),
        "600 PromQL queries for updates from '5.0.0'; the limit is 500",
    ),
    "digits of a version": ({"nodes": [{"version": "5.0." + "1" * 300}]}, "is not a semantic version"),
}


def read(document: JSON) -> None:
    """Returns an answer as a pass may use it."""
    derive_advice(parse_graph(json.dumps(document).encode()), current=Version(HERE), channel="c")


@pytest.mark.parametrize("name", TOO_MANY)
def test_more_than_a_pass_may_judge_is_no_graph(name: str) -> None:
    """One more than the limit is refused by number, in a message that is short."""
    document, text = TOO_MANY[name]
    with pytest.raises(BadGraph) as caught:
        read(document)
    assert caught.value.reason == "ResponseInvalid"
    assert text in caught.value.message
    assert len(caught.value.message) < 300


LARGEST: dict[str, JSON] = {
    "nodes": {"nodes": nodes(5_000)},
    "edges": {"nodes": nodes(1), "edges": [[0, 0]] * 150_000},
    "risks of one update": conditional((onward([1]), risks(500))),
    "rules of one risk": conditional((onward([1]), risks(1, rules=16))),
    "updates from here": {"nodes": nodes(1_001), "edges": [[0, number] for number in range(1, 1_001)]},
    "the same update ten thousand times": {"nodes": nodes(2), "edges": [[0, 1]] * 10_000},
    "the same update with risks as often": conditional((onward([1] * 10_000), risks(200))),
    "risks of all updates from here": conditional((onward(list(range(1, 101))), risks(100)), count=101),
}


@pytest.mark.parametrize("name", LARGEST)
def test_what_is_within_the_limits_counts(name: str) -> None:
    """To the last one."""
    read(LARGEST[name])


FLOODS = {
    "edges": b'{"nodes":[{"version":"5.0.0"}],"edges":[' + b"[0,0]," * 1_000_000 + b"[0,0]]}",
    "empty nodes": b'{"nodes":[' + b"{}," * 1_000_000 + b"{}]}",
    "numbers nobody reads": b'{"other":[' + b"1," * 3_000_000 + b"1]}",
    "bytes": b'{"other":"' + b"x" * limits.MAX_BYTES + b'"}',
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_refused_before_an_object_is_made(name: str) -> None:
    """However many values there are, they take no memory."""
    data = FLOODS[name]
    tracemalloc.start()
    try:
        with pytest.raises(BadGraph):
            parse_graph(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


# No text is long, no list is: what counts is what stands between them.
TEXTS = st.text(max_size=5)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=15,
)


def values(document: Any) -> int:
    """How many values there are, counted one by one."""
    if isinstance(document, dict):
        return 1 + sum(map(values, document.values()))
    return 1 + sum(map(values, document)) if isinstance(document, list) else 1


@pytest.mark.slow
@given(JSONS)
def test_no_document_has_more_values_than_are_counted(document: Any) -> None:
    """Whatever it consists of, and whatever is in its texts."""
    assert values(document) <= codec.values_in(json.dumps(document, separators=(",", ":")).encode())


def test_a_decoder_of_other_peoples_json_takes_as_many_values_as_are_allowed() -> None:
    """Three: the list and its items."""
    assert codec.decode_bounded(list[int], b"[1,2]", most_values=3) == [1, 2]
    with pytest.raises(codec.DecodeError, match="it has 3 values; the limit is 2"):
        codec.decode_bounded(list[int], b"[1,2]", most_values=2)


def test_a_release_lists_as_many_channels_as_its_status_may() -> None:
    """The first in alphabetical order, each once."""
    named = ",".join(f"c{number:03}" for number in range(300) for _ in range(2))
    document = {"nodes": [{"version": HERE, "metadata": {CHANNELS: named}}]}
    (release,) = parse_graph(json.dumps(document).encode()).releases
    assert release.channels == tuple(f"c{number:03}" for number in range(200))


def test_of_two_risks_of_one_name_an_unknown_one_still_drops_its_update() -> None:
    """Whichever group comes last: an update without its condition would look safer than it is."""
    unknown = [{"name": "R", "message": "m", "url": "u", "matchingRules": [{"type": "Someday"}]}]
    for first, last in ((ALWAYS, unknown), (unknown, ALWAYS)):
        document = conditional((onward([1]), first), (onward([1]), last))
        found = advice(parse_graph(json.dumps(document).encode()), current=Version(HERE), channel="c")
        assert found.conditional == ()


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=16)


def _ways(steps: list[UpdateStep], at: str, goal: str, been: tuple[str, ...]) -> list[tuple[UpdateStep, ...]]:
    """Every way that comes nowhere twice."""
    if at == goal:
        return [()]
    return [
        (step, *rest)
        for step in steps
        if step.origin == at and step.to not in been
        for rest in _ways(steps, step.to, goal, (*been, step.to))
    ]


@given(STEPS)
def test_the_way_is_the_best_of_all_ways(drawn: list[tuple[int, int, bool]]) -> None:
    """Fewest updates, then fewest with risks, then over the newest releases; all of them are tried here."""
    names = [f"5.{number}.0" for number in range(7)]
    steps = [UpdateStep(names[old], names[new], ("R",) if risky else ()) for old, new, risky in drawn]
    found = shortest_way(
        StepMap({name: [step for step in steps if step.origin == name] for name in names}),
        "5.0.0",
        "5.6.0",
        allows=lambda old, new: (old, new) != ("5.0.0", "5.3.0"),
    )
    allowed = [step for step in steps if step[:2] != ("5.0.0", "5.3.0")]
    best = min(
        _ways(allowed, "5.0.0", "5.6.0", ("5.0.0",)),
        key=lambda tried: (
            len(tried),
            sum(bool(step.risks) for step in tried),
            [-names.index(step.to) for step in tried],
        ),
        default=(),
    )
    assert found == best
