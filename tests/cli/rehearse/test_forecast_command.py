"""`runup upgrade forecast` as typed: on the dumps of the page, on a cluster, on errors, and what is printed."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from tests.cli.commands import Run, Server

from runup.cli.rehearse.forecast_command import exit_code, forecast_text, range_text
from runup.rehearse.decide.update_forecast import FITS, Forecast, ForecastPart, Range, WindowFit

ROOT = Path(__file__).parents[3]
COMMANDS = re.findall(r"^runup (upgrade forecast.*)$", (ROOT / "docs/how-to/forecast.md").read_text(), re.MULTILINE)
INSTALLED = {"version": "5.0.0", "state": "Completed", "image": "q/r@sha256:0", "verified": True}
INSTALLED |= {"startedTime": "2026-01-01T08:00:00Z", "completionTime": "2026-01-01T08:42:00Z"}


def without_zones() -> None:
    """Skips where the machine has no database of time zones."""
    try:
        ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        pytest.skip("needs tzdata")


@pytest.mark.parametrize("line", [line for line in COMMANDS if "--dump" in line])
def test_the_commands_of_the_page(line: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page about a dump does what it says: their dumps do not show how long at most."""
    monkeypatch.chdir(ROOT)
    if "Europe/Berlin" in line:
        without_zones()
    ran = run(*shlex.split(line))
    assert ran.code == 3, ran.err
    if "json" in line:
        assert json.loads(ran.out)["parts"]
        assert json.loads(ran.out)["needsHelp"]
    else:
        reason = "pod shop/db-0" if "plain-kubernetes" in line else "pool worker does not begin"
        assert ran.out.startswith(f"An update does not finish without somebody's help: {reason}")
        assert "With that help it takes at least " in ran.out
    assert all(len(each) <= 80 for each in ran.out.splitlines() if "json" not in line)


def test_drains_and_forecast_agree(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both name the pods that somebody has to delete, and take the same time for a node."""
    monkeypatch.chdir(ROOT)
    dump = ("--dump", "examples/skip-level", "-o", "json")
    forecast, drains = (
        json.loads(run(*words, *dump).out) for words in (("upgrade", "forecast"), ("rehearse", "drain"))
    )
    assert forecast["needsHelp"] == drains["needsHelp"] != []
    masters = [node for pool in drains["pools"] if pool["name"] == "master" for node in pool["nodes"]]
    took = max(node["backSeconds"] for node in masters) - min(node["fromSeconds"] for node in masters)
    [control_plane] = [part for part in forecast["parts"] if part["name"] == "control plane"]
    assert abs(control_plane["atLeastSeconds"] - took) < 120


def test_the_page_has_commands() -> None:
    """Of each kind."""
    assert len(COMMANDS) > 4


WRONG = {
    "a window that is none": (["--between", "22-6"], "--between 22-6: give two times of day, such as 22:00-06:00"),
    "a window that never opens": (
        ["--between", "6:00-06:00"],
        "--between 6:00-06:00: it never opens; leave it out for",
    ),
    "a zone that is none": (["--timezone", "Berlin"], "--timezone Berlin: this machine does not know it"),
    "a zone that is a path": (["--timezone", "../../etc/passwd"], "this machine does not know it"),
    "minutes that are none": (["--node-minutes", "5,12"], "--node-minutes 5,12: give minutes such as 10"),
    "the most before the least": (["--node-minutes", "12-5"], "--node-minutes 12-5: give minutes such as 10"),
    "no minutes": (["--node-minutes", "0"], "--node-minutes 0: give minutes"),
    "no dump": (["--dump", "/nowhere"], "/nowhere"),
}


@pytest.mark.parametrize(("flags", "expected"), WRONG.values(), ids=WRONG)
def test_errors_name_the_input(flags: list[str], expected: str, run: Run) -> None:
    """An error says which input is wrong, and ends with 1."""
    ran = run("upgrade", "forecast", *flags)
    assert (ran.code, ran.out) == (1, "")
    assert expected in ran.err


def test_a_cluster_without_nodes(run: Run, server: Server) -> None:
    """There is nothing to drain."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "q/r@sha256:0"}})
    ran = run("upgrade", "forecast", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert "there are no nodes to drain: the cluster lists no nodes" in ran.err


def test_the_history_of_a_dump(run: Run, tmp_path: Path) -> None:
    """It is that of its ClusterVersion; what the dump lacks leaves the end open."""
    update = INSTALLED | {"version": "5.0.1", "startedTime": "2026-01-09T08:00:00Z"}
    update |= {"completionTime": "2026-01-09T09:01:00Z"}
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b7"},
        "status": {"desired": {"version": "5.0.1", "image": "q/r@sha256:0"}, "history": [update, INSTALLED]},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [version, node]}))
    ran = run("upgrade", "forecast", "--dump", tmp_path, "--between", "22:00-22:30", "-o", "json")
    said = json.loads(ran.out)
    assert (ran.code, said["exitCode"], said["window"]["verdict"]) == (2, 2, "does not fit")
    assert said["parts"][0]["sources"][0].startswith("1 earlier update took 61 (5.0.1) minutes")


def test_a_cluster_version_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """A forecast says so once: its history is not known. A drain needs nothing of it, and says nothing."""
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "status": {"history": "none"},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [version, node]}))
    forecast, drain = (run(*words, "--dump", tmp_path) for words in (("upgrade", "forecast"), ("rehearse", "drain")))
    assert forecast.out.count("ClusterVersion: it cannot be read") == 1
    assert "Not known:" in drain.out
    assert "ClusterVersion" not in drain.out


FORECAST = Forecast(
    total=Range(3660, 6840),
    parts=(
        ForecastPart(
            "control plane", Range(3660, 4440), ("2 earlier updates took 61 (4.15.2) and 74 (4.15.1) minutes",)
        ),
        ForecastPart("worker", Range(1200, 2400), ("its 2 nodes came back within 10 minutes",)),
    ),
)
WINDOW = WindowFit(datetime(2026, 1, 14, 22, tzinfo=UTC), datetime(2026, 1, 15, 6, tzinfo=UTC), FITS, "it is shorter")


def test_the_text() -> None:
    """In all, whether it fits, and each part with what it rests on."""
    assert forecast_text(FORECAST, WINDOW) == (
        "An update takes 1 h 1 min to 1 h 54 min.\n"
        "From 2026-01-14 22:00 to 2026-01-15 06:00 UTC, 8 h: fits; it is shorter.\n"
        "\n"
        "control plane  1 h 1 min to 1 h 14 min\n"
        "  2 earlier updates took 61 (4.15.2) and 74 (4.15.1) minutes\n"
        "pool worker    20 min to 40 min\n"
        "  its 2 nodes came back within 10 minutes\n"
    )


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (Range(0, None), "nobody knows how long"),
        (Range(61, None), "at least 2 min"),
        (Range(600, 600), "10 min"),
        (Range(600, 7200), "10 min to 2 h"),
    ],
)
def test_ranges_in_words(time_s: Range, text: str) -> None:
    """In whole minutes."""
    assert range_text(time_s) == text


@pytest.mark.parametrize(
    ("total", "fit", "code"),
    [
        (Range(1, 2), None, 0),
        (Range(1, None), None, 3),
        (Range(1, 2), WINDOW, 0),
        (Range(1, 2), WindowFit(WINDOW.opens, WINDOW.closes, "does not fit", ""), 2),
        (Range(1, 2), WindowFit(WINDOW.opens, WINDOW.closes, "cannot tell", ""), 3),
    ],
)
def test_exit_codes(total: Range, fit: WindowFit | None, code: int) -> None:
    """As those of other commands: what is unknown is not fine."""
    assert exit_code(Forecast(total=total, parts=()), fit) == code
