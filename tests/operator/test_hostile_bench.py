"""The bench of what is hostile: it runs, and it notices what it is there to notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.hostile import every_part as hostile
from bench.hostile import limits as hostile_limits
from bench.hostile import reports as hostile_reports
from bench.hostile.images import IMAGES

from runup.report import report

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_bench_in_the_small() -> None:
    """Every part by the command, each counted, with time and memory of the worst; nothing of ours is wrong."""
    counts = ["--reports=700", "--faults=10", "--kills=1", "--seed=7"]
    done = subprocess.run(
        [sys.executable, "-m", "bench", "hostile", *counts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["hostile"]
    parts = ("images", "reports", "signatures", "limits", "faults", "kills")
    assert {name: found[name]["wrong"] for name in parts} == {name: [] for name in parts}
    assert hostile.faults_of_ours(found) == 0
    assert sum(found["sum"]["reports"].values()) == 700 + 13
    assert found["sum"]["kills"] == {"recovered as due": 1}
    for name in parts:
        assert found[name]["peak_mib"] > 10 and found[name]["worst"]["seconds"] >= 0, name
        assert all(found["sum"][name].values()), name


def takes_everything(_data: bytes) -> Any:
    """A reader without limits."""


def breaks(_data: bytes) -> Any:
    """A reader that knows no other error."""
    raise KeyError("risks")


def refuses_everything(_data: bytes) -> Any:
    """A reader that nobody gets anything through."""
    raise report.BadReport("no", reason="No")


@pytest.mark.parametrize(
    ("reader", "noticed"), [(takes_everything, "wrong"), (breaks, "crashed"), (refuses_everything, "wrong")]
)
def test_a_reader_that_is_wrong_is_noticed(reader: Any, noticed: str) -> None:
    """Whatever it does wrong."""
    found = hostile_reports.survey(70, 1, reader)
    assert found["kinds"]["known"][noticed] > 0
    assert found["wrong"]


def test_an_image_that_is_taken_or_refused_for_another_reason_is_noticed() -> None:
    """And what is refused as it should be is no fault."""
    row = IMAGES[0]
    lines = [[row.name, "read", said] for said in (f"{row.said} and more", "", "no space left on device")]
    found = hostile.images([*lines, ["seconds", "a", 0.5], ["peak", "", 2048]])
    assert found["kinds"] == {"read": {"refused as due": 1, "wrong": 2}}
    assert (found["worst"], found["peak_mib"]) == ({"what": "a", "seconds": 0.5}, 2.0)


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        pytest.param(4, ["a flood: 4 writes, 5 at least"], id="one that reaches nothing"),
        pytest.param(5, [], id="as few as it takes"),
        pytest.param(12, [], id="as many as may be"),
        pytest.param(13, ["a flood: 13 writes, 12 at most"], id="one too many"),
    ],
)
async def test_an_attack_that_costs_too_much_or_does_nothing_is_noticed(found: int, wrong: list[str]) -> None:
    """In words, and as a fault of ours."""

    async def numbers(_folder: Path) -> dict[str, float]:
        return {"writes": found}

    row = hostile_limits.Row("a flood", numbers, {"writes": 12}, {"writes": 5})
    came_to = await hostile_limits.limits((row,))
    assert (came_to["wrong"], came_to["numbers"]) == (wrong, {"a flood": {"writes": found}})
    assert came_to["kinds"] == {"a flood": {"wrong" if wrong else "bounded as due": 1}}
