"""`runup rehearse drain` as typed: on the dump of the documentation, on errors, and what is printed."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.rehearse.drained import NOW, budget, cluster, node, owner, pod

from runup.cli.main import main
from runup.cli.rehearse.drain_command import drain_data, drain_text, duration_text, exit_code
from runup.cli.rehearse.drain_page import page
from runup.rehearse.decide.drains.drained_cluster import DrainSettings, Pool
from runup.rehearse.decide.drains.simulation import simulate

ROOT = Path(__file__).parents[3]
DUMP = ROOT / "examples" / "plain-kubernetes"
COMMANDS = re.findall(r"^runup (rehearse drain.*--dump.*)$", (ROOT / "docs/how-to/drains.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the page does what it says, with an exit code that it names."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(line)) in (0, 2, 3)
    out = capsys.readouterr().out
    assert json.loads(out)["pools"] if "json" in line else out.startswith("The drains of ")
    assert all(len(each) <= 80 for each in out.splitlines() if "-o json" not in line and " " in each.strip())


WRONG = {
    "a window that is none": (["--window", "22-6"], "--window 22-6: give two times of day in UTC, such as 22:00-06:00"),
    "a window that never opens": (["--window", "6:00-06:00"], "--window 6:00-06:00: it never opens; leave it out for"),
    "minutes that are seconds": (["--drain-minutes", "36000"], "'--drain-minutes': 36000 is not in the range"),
    "no dump": (["--dump", "/nowhere"], "/nowhere"),
}


@pytest.mark.parametrize(("flags", "expected"), WRONG.values(), ids=WRONG)
def test_errors_name_the_input(flags: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error says which input is wrong, and ends with 1."""
    assert main(["rehearse", "drain", *flags]) == 1
    assert expected in capsys.readouterr().err


def a_result(**settings: Any) -> Any:
    """Two nodes, a budget that allows nothing, a pod without an owner, one that needs another disk."""
    pods = (
        pod("db-0", "a", owner="StatefulSet/db", labels={"app": "db"}),
        pod("tool", "a", owner="", labels={"app": "tool"}),
        pod("web-1", "b", nodeSelector={"disk": "fast"}),
    )
    state = cluster(
        node("a"),
        node("b", labels={"disk": "slow"}),
        pods=pods,
        budgets=(budget("db", "db", maxUnavailable=0),),
        owners=(owner("web", 1, above="shopfront"),),
        missing={"Namespace": "the dump holds no namespaces"},
    )
    return simulate(state, DrainSettings(**settings), NOW)


def test_the_text() -> None:
    """Each part of the text has the fact, the object and the time; nothing is wider than 80 columns."""
    text = drain_text(a_result())
    folded = re.sub(r"\s+", " ", text)
    for expected in (
        "The drains of 2 nodes do not finish without somebody's help: pod shop/db-0 of node a cannot be evicted: "
        "maxUnavailable 0: 1 of 1 healthy, 1 demanded (and 1 more). With that help they take "
        "2 h 20 min, from 2026-01-14T10:00:00Z",
        "a: pod shop/db-0: maxUnavailable 0: 1 of 1 healthy, 1 demanded (budget shop/db)",
        "pod shop/tool of a",
        "1 pod of Deployment shop/shopfront from b: 0/2 nodes are available: 2 node(s) didn't match Pod's node "
        "affinity/selector.",
        "Deployment shop/shopfront for without end",
        "0:00 drain of a, 1 h: pod shop/db-0 ended last (grace period 10 s; deleted by hand when the time of the drain "
        "was over)",
        "which pods a term with a namespaceSelector is about: Namespace: the dump holds no namespaces",
    ):
        assert expected in folded
    assert max(map(len, text.splitlines())) <= 80


def test_the_data() -> None:
    """Programs get seconds with their unit in the name, and null for what does not end."""
    data = json.loads(json.dumps(drain_data(a_result())))
    assert data["started"] == "2026-01-14T10:00:00Z"
    assert data["pools"][0]["nodes"][0]["blocked"] == [
        {
            "pod": "shop/db-0",
            "why": "maxUnavailable 0: 1 of 1 healthy, 1 demanded",
            "by": ["shop/db"],
            "fromSeconds": 0,
            "toSeconds": None,
        }
    ]


RIVALS = {
    "a race of two": (
        2,
        "unschedulable. Or StatefulSet shop/app0 waits instead: which of them gets the room is not known.",
    ),
    "a race of five": (
        5,
        "Or StatefulSet shop/app0 or StatefulSet shop/app1 or StatefulSet shop/app2 or 1 more waits instead: which",
    ),
}


@pytest.mark.parametrize(("racing", "expected"), RIVALS.values(), ids=RIVALS)
def test_a_race_is_told_as_one(racing: int, expected: str) -> None:
    """Who waits for a place is reported with those that may wait in its stead."""
    cpus = [f"{3600 // (racing - 1)}m"] * (racing - 1) + ["2"]
    pods = tuple(
        pod(f"app{number}-0", "a", owner=f"StatefulSet/app{number}", cpu=cpu) for number, cpu in enumerate(cpus)
    )
    state = cluster(node("a"), node("b"), pods=pods, pools=(Pool(name="worker", nodes=("a",)),))
    result = simulate(state, DrainSettings(), NOW)
    assert expected in re.sub(r"\s+", " ", drain_text(result))
    data = drain_data(result)
    assert [len(each["rivals"]) for each in data["unplaced"]] == [racing - 1]
    assert (
        "1 wait for a place is a race: that somebody waits is known, and who may, but not which of them does"
        in (data["trust"])
    )


def test_the_accuracy_has_the_figures_of_the_documentation() -> None:
    """Text, page and data have the count that docs/how-to/drains.md explains; without a race none is reported."""
    result = simulate(cluster(node("a"), node("b"), pods=(pod("web-1", "a"),)), DrainSettings(), NOW)
    text = re.sub(r"\s+", " ", drain_text(result))
    data = drain_data(result)["trust"]
    drawn = re.sub(r"\s+", " ", html.unescape(page("Drains", ["One"], result)))
    for shown in (text.partition("Accuracy:")[2], drawn.partition("Accuracy")[2]):
        assert all(each in shown for each in data)
    figures = re.search(r"of (\d+) answers on two real nodes (\d+) were as rehearsed", data[0])
    assert figures is not None
    documented = re.sub(r"\s+", " ", (ROOT / "docs" / "how-to" / "drains.md").read_text())
    assert f"Of {figures[1]} answers {figures[2]} were as rehearsed" in documented
    assert not any("race" in each for each in data)


SPANS = {0: "0 s", 59: "59 s", 90: "1 min 30 s", 660: "11 min", 3600: "1 h", 8400: "2 h 20 min", 180000: "2 d 2 h"}


@pytest.mark.parametrize(("seconds", "expected"), SPANS.items())
def test_durations(seconds: int, expected: str) -> None:
    """A duration has its two largest units."""
    assert duration_text(seconds) == expected


POOLS = {
    "a pool that is paused": (Pool(name="worker", nodes=("a", "b"), paused=True), ["worker", "2", "1", "-", "paused"]),
    "a pool that cannot begin": (
        Pool(name="worker", nodes=("a", "c")),
        ["worker", "2", "1", "-", "does", "not", "begin"],
    ),
    "a pool of which a node is away": (
        Pool(name="worker", nodes=("a", "c"), at_once=2),
        ["worker", "2", "2", "20", "min"],
    ),
}


@pytest.mark.parametrize(("pool", "expected"), POOLS.values(), ids=POOLS)
def test_the_rows_of_pools(pool: Pool, expected: list[str]) -> None:
    """The column NODES counts the nodes that a pool has, whether they are drained or not."""
    state = cluster(node("a"), node("b"), node("c", ready="False"), pools=(pool,))
    lines = drain_text(simulate(state, DrainSettings(), NOW)).splitlines()
    row = next(line.split() for line in lines if line.startswith(pool.name))
    assert row[: len(expected)] == expected


CODES = {
    "all is well": ({}, 0),
    "a pod that cannot be evicted": ({"budgets": (budget(maxUnavailable=0),)}, 2),
    "a kind that is not known": ({"missing": {"PodDisruptionBudget": "forbidden"}}, 3),
    "a pool that cannot begin": ({"pools": (Pool(name="worker", nodes=("a", "c")),)}, 2),
}


@pytest.mark.parametrize(("fields", "expected"), CODES.values(), ids=CODES)
def test_exit_codes(fields: Any, expected: int) -> None:
    """0 for all well, 2 for what is in the way, 3 for what is not known."""
    state = cluster(node("a"), node("b"), node("c", ready="False"), pods=(pod("web-1", "a"),), **fields)
    if "pools" not in fields:
        state = cluster(node("a"), node("b"), pods=(pod("web-1", "a"),), **fields)
    assert exit_code(simulate(state, DrainSettings(), NOW)) == expected
