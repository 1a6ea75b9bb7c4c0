"""Several outputs, kept reports and comparisons as typed, and what is wrong with them before anything is read."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.commands import Run, Server
from tests.cli.preflight.test_run_command import CLUSTER, OPERATOR, conditions, dump

from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from runup.preflight.control import report_store
from runup.preflight.decide.cluster_run import CONFIG_MAP


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Dumps of a cluster as it was, and without its fault."""
    monkeypatch.chdir(tmp_path)
    dump(tmp_path / "before", CLUSTER, OPERATOR)
    well = {**OPERATOR, "status": {"conditions": conditions(Available="True", Degraded="False")}}
    dump(tmp_path / "after", CLUSTER, well)
    return tmp_path


def test_three_forms_cost_one_run(two: Path, run: Run) -> None:
    """Each in its file; without one for the terminal, the text stays there."""
    ran = run("preflight", "run", "--dump", "before", "-o", "json=a.json,junit=a.xml", "-o", "markdown=a.md")
    assert ran.out.startswith("Preflight of 4.16.0 from 4.15.3: ")
    names = {risk["name"] for risk in json.loads((two / "a.json").read_text())["risks"]}
    cases = {case.get("name") for case in ElementTree.parse(two / "a.xml").getroot().iter("testcase")}
    assert "ClusterOperatorDegraded-dns" in names & cases
    assert "**ClusterOperatorDegraded-dns**" in (two / "a.md").read_text()
    alone = run("preflight", "run", "--dump", "before", "-o", "json").out
    assert json.loads(alone) == json.loads((two / "a.json").read_text())


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "two for the terminal": (("-o", "json,yaml"), "json and yaml cannot both go to the terminal"),
    "two for one file": (("-o", "json=x", "-o", "junit=x"), "json and junit cannot both go to x"),
    "no file": (("-o", "json="), "'json=' has no file"),
    "no such form": (("-o", "pdf=x"), "'pdf' is not one of"),
    "no such folder": (("-o", "json=no/x"), "there is no folder no for no/x; make it first"),
    "a folder": (("-o", "json=before"), "before is a folder; name a file in it"),
    "a baseline that is not there": (("--baseline", "no.json"), "--baseline no.json: cannot be read"),
    "a baseline that no file can be called": (("--baseline", "a\0b"), "--baseline a"),
    "a baseline that is not JSON": (
        ("--baseline", __file__),
        "is not JSON (JSON is malformed: ",
    ),
    "a baseline that is none": (("--baseline", "before/0.json"), "before/0.json is not a baseline"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=list(WRONG))
def test_what_cannot_be_written_or_read(two: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    """One error, and no file."""
    ran = run("preflight", "run", "--dump", "before", *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert {entry.name for entry in two.iterdir()} == {"before", "after"}


COMPARE = ("compare", "5.1.0", "5.2.0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((*COMPARE, "--to", "5.3.0"), "--to is about two dumps, or about --store", id="a third release"),
        pytest.param(
            (*COMPARE, "--store", "kept", "--dump", "before"), "--store and --dump name two sources", id="two sources"
        ),
        pytest.param((*COMPARE, "--cluster", "a"), "--cluster is about the reports of --store", id="no store"),
        pytest.param(
            ("schedule", "--every", "24h", "--to", "5.1.0", "--to-channel", "latest"),
            "--to and --to-channel both name the target; give one of them",
            id="two targets",
        ),
        pytest.param(("schedule", "--to", "5.1.0"), "need --every TIME", id="a target without an interval"),
        pytest.param(("schedule", "--to-channel", "latest"), "need --every TIME", id="a channel without an interval"),
        pytest.param(("schedule", "--every", "24h", "--remove"), "give one of them", id="made and removed"),
    ],
)
def test_flags_that_contradict_each_other(two: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    """No cluster is asked, and nothing is made."""
    ran = run("preflight", *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert {entry.name for entry in two.iterdir()} == {"before", "after"}


def test_a_baseline_of_a_dump_under_another_name(two: Path, run: Run) -> None:
    """By the cluster's ID: what it has is known; without it everything counts."""
    run("preflight", "run", "--dump", "before", "-o", "json=last.json")
    assert run("preflight", "run", "--dump", "before").code == 2
    shutil.copytree(two / "before", two / "must-gather.2")
    assert run("preflight", "run", "--dump", "must-gather.2", "--baseline", "last.json").code == 0
    run("preflight", "run", "--dump", "after", "-o", "json=well.json")
    assert run("preflight", "run", "--dump", "must-gather.2", "--baseline", "well.json").code == 2


@pytest.mark.parametrize("option", [("--store", "kept"), ("--baseline", "last.json")])
def test_two_dumps_of_one_name(two: Path, run: Run, option: tuple[str, str]) -> None:
    """A store and a baseline use the name: one cluster would be taken for the other."""
    run("preflight", "run", "--dump", "before", "-o", "json=last.json")
    shutil.copytree(two / "after", two / "else" / "before")
    ran = run("preflight", "run", "--dump", "before", "--dump", "else/before", *option)
    assert (ran.code, ran.out) == (1, "")
    assert "before and else/before are both called before" in ran.err
    assert not (two / "kept").exists()
    assert run("preflight", "run", "--dump", "before", "--dump", "else/before").code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [("preflight", "run", "--dump"), ("fleet", "preflight", "--dumps")])
def test_a_disk_that_is_full_costs_one_output(two: Path, run: Run, command: tuple[str, ...]) -> None:
    """The findings are printed and written to the other file, and the command fails."""
    place = "before" if "run" in command else "."
    ran = run(*command, place, "-o", "json=/dev/full,markdown=-", "-o", "junit=a.xml")
    assert ran.code == 1
    assert "**ClusterOperatorDegraded-dns**" in ran.out
    assert ran.err.endswith("error: -o: /dev/full cannot be written: No space left on device\n")
    assert ElementTree.parse(two / "a.xml").getroot().tag == "testsuites"


@pytest.mark.parametrize("place", ["sqlite:no/x.db", "sqlite:before", "before/0.json"])
def test_a_store_that_cannot_be_written_costs_no_run(two: Path, run: Run, place: str) -> None:
    """It is reported before anything is read, and nothing is made."""
    ran = run("preflight", "run", "--dump", "nowhere", "--store", place)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --store {place}: ")
    assert {entry.name for entry in two.iterdir()} == {"before", "after"}


@pytest.mark.parametrize("form", ["dumps", "outputs", "kept", "days", "sqlite"])
def test_a_risk_that_went(two: Path, run: Run, form: str) -> None:
    """In whatever form the two results are."""
    place = "sqlite:kept.db" if form == "sqlite" else "kept"
    run("preflight", "run", "--dump", "before", "--dump", "after", "--store", place)
    words: tuple[str | Path, ...] = ("before", "after")
    if form == "outputs":
        for name in words:
            run("preflight", "run", "--dump", name, "-o", f"json={name}.json")
        words = ("before.json", "after.json")
    elif form == "kept":
        words = tuple(report_store.reports_of(two / "kept", str(name))[0].path for name in words)
    elif form in ("days", "sqlite"):
        words = ("before@2026-01-14", "after@2026-01-14", "--store", place)
    shown = json.loads(run("preflight", "compare", *words, "-o", "json").out)
    assert [risk["name"] for risk in shown["gone"]] == ["ClusterOperatorDegraded-dns"]
    assert shown["new"] == []


@pytest.mark.parametrize(("code", "state"), [(0, "completed"), (1, "failed"), (2, "completed"), (3, "completed")])
def test_what_a_run_that_failed_printed_may_lack_risks(two: Path, run: Run, code: int, state: str) -> None:
    """Its exit code is in what it printed; one of 2 or 3 is about what was found."""
    for name in ("before", "after"):
        run("preflight", "run", "--dump", name, "-o", f"json={name}.json")
    printed = json.loads((two / "before.json").read_text())
    (two / "before.json").write_text(json.dumps({**printed, "exitCode": code}))
    ran = run("preflight", "compare", "before.json", "after.json")
    warning = "warning: the report of before.json is failed: it may lack risks"
    assert (warning in ran.out + ran.err) is (state == "failed")


STORED: dict[str, tuple[tuple[str, ...], str]] = {
    "a day before all": (
        ("before@2020-01-01", "after"),
        "before@2020-01-01: the store kept has no report of before until the end of that day",
    ),
    "a day of nobody": (("yesterday", "today"), "yesterday: which cluster is meant is not said (--cluster NAME)"),
    "no such cluster": (("x", "after"), "x: is not in the store kept, which has reports of after, before"),
    "no such day": (("before@2026-02-30", "after"), "2026-02-30: is not a day such as 2026-11-22"),
    "no report of that target": (("before", "after", "--to", "4.19.0"), "has no report of 4.19.0 of before"),
}


@pytest.mark.parametrize(("words", "said"), STORED.values(), ids=list(STORED))
def test_what_the_store_does_not_have(two: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    """The word that was typed, and what there is."""
    run("preflight", "run", "--dump", "before", "--dump", "after", "--store", "kept")
    ran = run("preflight", "compare", *words, "--store", "kept")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_a_live_cluster_is_kept_by_the_name_of_its_context(server: Server, run: Run, tmp_path: Path) -> None:
    """As a fleet has it: reports of two clusters in one folder are not those of one."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "quay.io/x@sha256:1"}})
    run("preflight", "run", "--kubeconfig", server.kubeconfig, "--to", "5.1.0", "--store", tmp_path / "kept")
    assert report_store.clusters_in(tmp_path / "kept") == (config.load(str(server.kubeconfig)).context,)


def test_reports_in_a_config_map_of_the_cluster(two: Path, server: Server, run: Run) -> None:
    """Kept by one command, and read by the others, through the cluster that the options name."""
    with suppress(NotFound):
        server.client.send(calls.delete(CONFIG_MAP, "typed", "default"))
    where = ("--store", "configmap:default/typed", "--kubeconfig", server.kubeconfig)
    run("preflight", "run", "--dump", "before", "--dump", "after", *where)
    shown = json.loads(run("preflight", "compare", "before", "after", *where, "-o", "json").out)
    assert [risk["name"] for risk in shown["gone"]] == ["ClusterOperatorDegraded-dns"]
    history = json.loads(run("fleet", "history", *where, "-o", "json").out)
    assert sorted((step["cluster"], step["completed"]) for step in history) == [("after", True), ("before", True)]


@pytest.mark.parametrize("command", [("preflight", "run", "--dump", "before"), ("fleet", "history")])
def test_a_config_map_of_no_cluster(two: Path, run: Run, command: tuple[str, ...]) -> None:
    """The store is named, and the kubeconfig."""
    ran = run(*command, "--store", "configmap:default/typed", "--kubeconfig", "no")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: --store configmap:default/typed: ")
    assert ran.err.count("\n") == 1


def test_ten_of_many_clusters_of_a_store_are_named(two: Path, run: Run) -> None:
    """The others are counted."""
    run("preflight", "run", "--dump", "before", "--store", "kept")
    (kept,) = report_store.reports_of(two / "kept", "before")
    for number in range(12):
        report_store.keep(two / "kept", f"c{number:02}", kept.report(), kept.observed)
    ran = run("preflight", "compare", "x", "before", "--store", "kept")
    assert (ran.code, ran.out) == (1, "")
    assert "which has reports of before, c00, c01, c02, c03, c04, c05, c06, c07, c08 and 3 more" in ran.err


def test_a_kept_report_that_cannot_be_read_is_left_out(two: Path, run: Run) -> None:
    """It is named, and the others are reported."""
    run("preflight", "run", "--dump", "before", "--dump", "after", "--store", "kept")
    (broken,) = report_store.reports_of(two / "kept", "before")
    broken.path.write_text("{")
    ran = run("fleet", "history", "--store", "kept", "-o", "json")
    assert (ran.code, [step["cluster"] for step in json.loads(ran.out)]) == (0, ["after"])
    assert ran.err.startswith("warning: left out: ")
    assert broken.path.name in ran.err
    (other,) = report_store.reports_of(two / "kept", "after")
    other.path.write_text("")
    ran = run("fleet", "history", "--store", "kept")
    assert (ran.code, ran.out) == (1, "")
    assert "--store kept has no report that can be read (left out: " in ran.err
