"""The aims of `python -m bench aims`: what holds, what does not, what was not measured, and the page of a run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from bench import aims, turns
from bench.__main__ import module_of

STARTUP = {"times_a_bare_interpreter": {"version": {"wall": 2.2}, "upgrade, sandbox": {"wall": 5.6}}}
API = {"gets": {"gets_per_second": 8000}, "creates": {"creates_per_second": 3900}}
STEADY = {"requests_an_hour": 320, "requests_an_hour_without_lease": 43}
REAL_SERVER = {"install": {"seconds": 12}, "steady": STEADY, "memory": {"own_mib_at_the_end": 61}}
RESULTS = {
    "startup": STARTUP,
    "api": API,
    "applying": {"kube-apiserver": REAL_SERVER},
    "update_advice": {"rules": "no prometheus on PATH", "large_graph": {"seconds": {"median": 0.3}}},
    "live": {"skipped": "RuntimeError: it did not come"},
}


@pytest.mark.parametrize(
    ("what", "ratio", "verdict", "missing"),
    [
        pytest.param("`version`", 2.2, aims.HOLDS, "", id="below the most"),
        pytest.param("`upgrade, sandbox`", 5.6, aims.MISSED, "", id="above the most"),
        pytest.param("its GETs", 928, aims.HOLDS, "", id="exactly the least"),
        pytest.param("its creates", 452, aims.MISSED, "", id="below the least"),
        pytest.param("a graph of 20,000 edges judged", 1.5, aims.HOLDS, "", id="slower, as the machine is"),
        pytest.param(
            "memory of the operator with 900 manifests", 1.31, aims.MISSED, "", id="memory, whatever the pace"
        ),
        pytest.param("requests while nothing happens, but for the Lease's", 0.155, aims.MISSED, "", id="requests"),
        pytest.param("1,000 PromQL rules", None, aims.NOT_MEASURED, "no prometheus on PATH", id="a missing program"),
        pytest.param("a change among them", None, aims.NOT_MEASURED, "RuntimeError: it did not come", id="a failure"),
        pytest.param(
            "900 manifests installed, kube-apiserver",
            *(None, aims.NOT_MEASURED, "nothing was measured to compare it with (pieces of work)"),
            id="a pace that was not measured",
        ),
        pytest.param("as many objects from files, decoded and judged", None, aims.NOT_MEASURED, "", id="not run"),
    ],
)
def test_what_holds(what: str, ratio: float | None, verdict: str, missing: str) -> None:
    """By ratios: figures of a slow machine are divided by its pace. A figure that is not there does not hold."""
    (found,) = (each for each in judge(RESULTS, {"api": 0.116, "update_advice": 0.2}) if each.what == what)
    assert (found.ratio, found.verdict, found.missing) == (ratio, verdict, missing)


def judge(results: dict[str, Any], paces: dict[str, float]) -> list[aims.Judged]:
    """The targets and the figures of `results`, where the piece of work takes as much memory as always."""
    return aims.judge(results, paces, 46.7)


@pytest.mark.parametrize(
    ("costs", "exponent"),
    [
        ({10: 1.0, 100: 10.0, 1000: 100.0}, 1.0),
        ({10: 1.0, 100: 100.0, 1000: 10_000.0}, 2.0),
        ({10: 3.0, 100: 3.0, 1000: 3.0}, 0.0),
    ],
)
def test_how_a_cost_grows(costs: dict[int, float], exponent: float) -> None:
    """Linear, quadratic, constant."""
    assert aims.exponent(costs) == exponent


def test_growth_of_what_was_not_measured() -> None:
    """One size of three lacks."""
    results = {"update_advice": {"rules": {"10": 0.1, "100": 0.2}, "large_graph": {"by_edges": EDGES}}}
    found = {each.what: each.exponent for each in aims.growth(results)}
    assert found["PromQL rules, by rules"] is None
    assert found["a graph judged, by edges"] == 1.0


def test_the_page_of_growth() -> None:
    """What was measured next to the aims stands below what the aims have; a size that lacks is said."""
    costs = [
        asdict(aims.grown("first report, by nodes", "s", {2_500: 1.0, 5_000: 2.0, 10_000: 4.0})),
        asdict(aims.grown("installed, by manifests", "s", {450: 4.0, 675: None, 900: 8.0})),
    ]
    page = aims.page(measured("abc", 0.3, 9000), {"growth": {"commit": "def", "pace": 0.2, "costs": costs}})
    assert "| first report, by nodes | 2,500: 1, 5,000: 2, 10,000: 4 | s | 1.0 |\n" in page
    assert "| installed, by manifests | 450: 4, 675: not measured, 900: 8 | s | not measured |\n" in page
    assert "python -m bench growth > growth.json\npython -m bench.aims result.json growth.json\n" in page


EDGES = {"5000": 0.05, "10000": 0.1, "20000": 0.2}


def test_the_page() -> None:
    """Each target is a row, and how many hold is said."""
    checks = {"10000 nodes": {"dearest_checks": {"UnmanagedPods": 0.5, "Slow": 0.25}}}
    page = aims.page(aims.quickest([run_of("abc", RESULTS | {"checks": checks}, {"update_advice": 0.2})]))
    assert "| `version` | 2.2 bare interpreters | 2.2 | at most 2.3 times a bare interpreter | holds |  |\n" in page
    why = "[why](../decisions/0109-what-an-operator-keeps-in-memory.md)"
    row = f"61 MiB | 1.31 | at most 1.28 times the memory of the piece of work | missed, {why}"
    assert f"| memory of the operator with 900 manifests | {row} |  |\n" in page
    assert "| at most 17.2 pieces of work | not measured: no prometheus on PATH | 0.2 |\n" in page
    assert f"Measured at abc with Python 3.11 on 2 processors and 24 GiB: 2 of {len(aims.AIMS)} hold." in page
    assert page.endswith("| UnmanagedPods | 0.5 | asks each pod whether it has an owner |\n| Slow | 0.25 |  |\n")


def run_of(commit: str, results: dict[str, Any], paces: dict[str, float]) -> dict[str, Any]:
    """The result of `bench aims`."""
    judged = [asdict(each) for each in judge(results, paces)]
    machine = {"processors": 2, "memory_gib": 24, "python": "3.11", "paces": paces, "work_mib": 46.7}
    return {"commit": commit, **machine, "judged": judged, "growth": [], "results": results}


GETS = {
    "what": "its GETs",
    "figure": "python -m bench api: gets gets_per_second",
    "other": 2000,
    "here": 3000,
    "ratio": 1.5,
}


def test_two_checkouts_in_turns() -> None:
    """Medians of both; what one of them does not have is not compared."""
    other = [{"api": {"gets": {"gets_per_second": value}}} for value in (4000, 1000, 2000)]
    here = [{"api": {"gets": {"gets_per_second": value}}} for value in (3000, 2500, 9000)]
    other[0]["startup"] = STARTUP
    assert list(turns.ratios(other, here)) == [GETS]


def test_programs_of_another_checkout(tmp_path: Path) -> None:
    """Its own modules are run, also those that this checkout does not have; the libraries are this interpreter's."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[project.scripts]\nold = "old_place:main"\n')
    source = "import sys\n\nimport msgspec\n\n\ndef main():\n    print(sys.argv[1], msgspec.__name__)\n"
    (tmp_path / "old_place.py").write_text(source)
    python = turns.environment_of(tmp_path, tmp_path / "environment")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [python.with_name("old"), "word"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "word msgspec\n"


@pytest.mark.parametrize(
    ("measured_at", "row"),
    [
        pytest.param(
            "abc", "| its GETs | 2,000 | 3,000 | 1.5 | 9,000, holds |\n", id="the older one was measured alone"
        ),
        pytest.param("xyz", "| its GETs | 2,000 | 3,000 | 1.5 |\n", id="what was measured alone is neither"),
    ],
)
def test_the_page_of_two_checkouts(measured_at: str, row: str) -> None:
    """What the older one did in a separate hour, times what has changed since, is what to expect."""
    page = aims.page(
        measured(measured_at, 0.116, 6000), {"other": "abc", "here": "def", "rounds": 3, "figures": [GETS]}
    )
    assert row in page


def measured(commit: str, pace: float, gets: int) -> dict[str, Any]:
    """The result of one benchmark."""
    return run_of(commit, {"api": {"gets": {"gets_per_second": gets}}}, {"api": pace})


def test_of_several_runs_the_page_has_the_quickest_machine() -> None:
    """It is chosen by the machine's pace, not by the figure."""
    page = aims.page(aims.quickest([measured("abc", 0.3, 9000), measured("abc", 0.1, 7000)]))
    assert "| its GETs | 7,000 a second | 700 | at least 928 in a piece of work | missed | 0.1 |\n" in page
    assert "Of 2 runs" in page


def test_runs_of_several_commits_are_no_page() -> None:
    """The figures would be of nothing."""
    with pytest.raises(ValueError, match="several commits, which no page can mix: abc, def"):
        aims.quickest([measured("abc", 0.3, 9000), measured("def", 0.2, 7000)])


def test_the_page_of_real_nodes() -> None:
    """A column for each case, a row for each stage."""
    case = {
        "request_to_first_risks_seconds": {"median": 1.25},
        "request_to_first_risks_stages": {"scheduler": {"median": 0.004}},
        "object_changed_to_risk_gone_seconds": {"median": 0.1, "runs": 5},
        "the_same_two_seconds_later": {"median": 0.06},
    }
    pulled = case | {"request_to_first_risks_seconds": {"median": 7}}
    cases = {"image there": case, "all to pull": pulled}
    real = {"commit": "abc", "pace": 0.2, "megabytes": {"base": 21.0}, "cases": cases}
    page = aims.page(measured("abc", 0.3, 9000), {"real_preflight": real})
    assert "| | image there | all to pull |\n|---|---|---|\n| from request to first risks | 1.25 | 7 |\n" in page
    assert "| — scheduler | 0.004 | 0.004 |\n" in page
    assert "medians of 5 rounds; a fixed piece of work took each processor 0.2 s then" in page


def test_every_aim_names_a_benchmark() -> None:
    """That can be run."""
    assert {aim.bench for aim in aims.AIMS if not hasattr(module_of(aim.bench), "run")} == set()
