"""`runup fleet update` as typed, over sandboxed clusters. Numbers are those of the cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.commands import Ran, Run
from tests.cli.preflight.test_published_forms import junit_faults
from tests.fleet.control.fleet_world import FILE, Fleet, fleet

from runup.report.report import ReportedRisk
from runup.rollout.control import observe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two clusters without the component update-policy."""
    with fleet(tmp_path_factory.mktemp("two"), harbour=False, lighthouse=False) as found:
        yield found


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A cluster with the component update-policy."""
    with fleet(tmp_path_factory.mktemp("mixed"), harbour=True) as found:
        yield found


Type = Callable[..., Ran]
RED = ReportedRisk(name="NodeCordoned", applies="True", severity="warning", message="m")


@pytest.fixture
def type_(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Types `runup fleet update WORDS` in a folder with the file; there is no Thanos: no alerts fire."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(observe.thanos, "alerts", lambda *_: ())
    (tmp_path / "update.yaml").write_text(FILE, encoding="utf-8")
    return lambda *words: run("fleet", "update", *words)


def states(ran: Ran) -> dict[str, tuple[str, str]]:
    """State and reason by cluster."""
    return {each["name"]: (each["state"], each["reason"]) for each in json.loads(ran.out)["clusters"]}


def test_an_update_of_two_clusters(two: Fleet, type_: Type) -> None:
    """The canary first; each start is one write; the second stage follows when the first is done."""
    two.heal()
    written = {name: len(two.writes(name)) for name in two.clusters}
    resume = ("resume", "update.yaml", "--once", "--kubeconfig", str(two.kubeconfig), "-o", "json")
    started = type_("start", "update.yaml", *two.words, "--once", "-o", "json")
    assert (started.code, states(started)) == (
        2,
        {"harbour": ("running", "ControlPlane"), "lighthouse": ("ready", "StageNotDone")},
    )
    assert (two.started("harbour"), two.started("lighthouse")) == (True, False)
    assert type_(*resume).code == 2
    two.finish("harbour")
    again = type_(*resume)
    assert (again.code, states(again)["harbour"][0], two.started("lighthouse")) == (2, "done", True)
    two.finish("lighthouse")
    ended = type_(*resume)
    assert (ended.code, states(ended)) == (0, {"harbour": ("done", "Succeeded"), "lighthouse": ("done", "Succeeded")})
    assert {name: len(two.writes(name)) - written[name] for name in two.clusters} == {"harbour": 1, "lighthouse": 1}
    assert type_("start", "update.yaml", *two.words).err.startswith(
        "error: 5.1.journal exists: `runup fleet update resume"
    )


def test_46_plan_check_and_status_write_nothing(two: Fleet, type_: Type, tmp_path: Path) -> None:
    """No request but reads, and no file; the plan agrees with what the start does."""
    two.heal()
    before = {name: _changes(each.server.kubeconfig) for name, each in two.clusters.items()}
    planned = type_("plan", "update.yaml", *two.words, "-o", "json")
    assert (planned.code, states(planned)) == (0, {"harbour": ("ready", ""), "lighthouse": ("ready", "StageNotDone")})
    assert [each["wave"] for each in json.loads(planned.out)["clusters"]] == [1, 2]
    assert type_("check", "update.yaml", *two.words).code == 0
    two.clusters["lighthouse"].report(RED)
    checked = type_("check", "update.yaml", *two.words, "-o", "json")
    assert (checked.code, states(checked)["lighthouse"]) == (2, ("waiting", "PreflightRisks"))
    assert {name: _changes(each.server.kubeconfig) for name, each in two.clusters.items()} | {"lighthouse": ""} == (
        before | {"lighthouse": ""}
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["update.yaml"]


def test_names_the_missing_component_of_a_cluster_without_runs(two: Fleet, run: Run) -> None:
    """The definition of UpdateRun is part of the component."""
    listed = run("upgrade", "runs", "--context", "harbour", "--kubeconfig", str(two.kubeconfig))
    assert (listed.code, "update-policy, which creates them, is not installed" in listed.out) == (0, True)


def _changes(kubeconfig: Path) -> int:
    """The number of requests that change anything."""
    lines = (kubeconfig.parent / "audit.log").read_text(encoding="utf-8").splitlines()
    reviews = ("selfsubject", "/tokenreviews")
    events = [json.loads(line) for line in lines]
    return sum(
        e["verb"] not in ("get", "list", "watch") and not any(r in e["requestURI"] for r in reviews) for e in events
    )


def test_39_a_red_cluster_has_no_turn_and_a_failure_stops(two: Fleet, type_: Type, tmp_path: Path) -> None:
    """40: the cluster that went elsewhere counts; retry continues with it."""
    two.heal()
    text = FILE.replace("soak: 0s,", "soak: 0s, deadline: 0s,").replace("name: canary", "name: canary\n    minDone: 0%")
    (tmp_path / "update.yaml").write_text(text, encoding="utf-8")
    two.clusters["lighthouse"].report(RED)
    connection = ("--kubeconfig", str(two.kubeconfig))
    failed = type_("start", "update.yaml", *two.words, "--once", "-o", "json")
    assert (failed.code, states(failed)["harbour"]) == (1, ("failed", "ControlPlaneDeadline"))
    assert not two.started("lighthouse")
    two.clusters["lighthouse"].report()
    assert type_("resume", "update.yaml", "--once", *connection).code == 1
    assert not two.started("lighthouse")
    skipped = type_("skip", "update.yaml", "harbour", "--reason", "gone", *connection)
    assert (skipped.code, skipped.out) == (0, "Skipped harbour; `runup fleet update resume` carries it out\n")
    for words, error in (
        (("skip", "update.yaml", "pier"), "the update has no cluster pier; it has harbour, lighthouse"),
        (("retry", "update.yaml", "lighthouse"), "only a cluster that failed or was skipped is retried"),
    ):
        assert error in type_(*words, *connection).err
    two.finish("harbour")
    type_("retry", "update.yaml", "harbour", *connection)
    again = type_("resume", "update.yaml", "--once", "-o", "json", *connection)
    assert states(again)["harbour"] == ("done", "AlreadyThere")


def test_41_hold_resume_approve_and_abort(two: Fleet, type_: Type, tmp_path: Path) -> None:
    """Nothing starts while held or without its approval; an abort takes the preflights back."""
    two.heal()
    (tmp_path / "update.yaml").write_text(
        FILE.replace("name: canary", "name: canary\n    before: [{type: Approval, name: go}]"), encoding="utf-8"
    )
    connection = ("--kubeconfig", str(two.kubeconfig))
    waiting = type_("start", "update.yaml", *two.words)
    assert (waiting.code, "canary does not start: Approval go of 5.1.0 is missing" in waiting.out) == (4, True)
    for words, error in (
        (("--stage", "man", "--gate", "go"), "there is no stage man; give --stage canary or main"),
        (("--stage", "main", "--gate", "go"), "stage main has no approval go: it has no approvals"),
        (("--stage", "canary", "--gate", "no"), "stage canary has no approval no: give --gate go"),
    ):
        assert error in type_("approve", "5.1", *words, "--reason", "4711").err
    assert type_("hold", "5.1", "--reason", "incident", *connection).code == 0
    approved = type_("approve", "5.1", "--stage", "canary", "--gate", "go", "--reason", "4711")
    assert approved.out.startswith("Approved go of stage canary for 5.1.0 as ")
    assert type_("status", "5.1", *connection).code == 4
    assert not two.started("harbour")
    assert type_("resume", "5.1", "--once", *connection).code == 2
    assert two.started("harbour")
    aborted = type_("abort", "5.1", *connection)
    assert (aborted.code, type_("status", "5.1", *connection).code) == (0, 1)
    assert two.started("harbour")
    assert "was aborted: begin another update" in type_("resume", "5.1", *connection).err


def test_63_a_changed_file_and_a_second_process(two: Fleet, type_: Type, tmp_path: Path) -> None:
    """The journal counts; what was started is not changed by an edit."""
    two.heal()
    type_("start", "update.yaml", *two.words, "--once")
    (tmp_path / "update.yaml").write_text(FILE.replace("soak: 0s", "soak: 1s"), encoding="utf-8")
    assert "update.yaml has changed since 5.1.journal was begun" in type_("resume", "update.yaml").err
    whole = (tmp_path / "5.1.journal").read_bytes()
    (tmp_path / "5.1.journal").write_bytes(whole[:9000])
    cut = type_("resume", "5.1")
    assert (cut.code, "5.1.journal cannot be used as a journal" in cut.err) == (1, True)


def test_an_unreachable_cluster_is_unknown(two: Fleet, type_: Type, tmp_path: Path) -> None:
    """Never fine, never done; the other one continues."""
    two.heal()
    (tmp_path / "update.yaml").write_text(
        FILE.replace("name: canary", "name: canary\n    minDone: 0%"), encoding="utf-8"
    )
    config = json.loads(two.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    words = ("--contexts", "harbour,lighthouse", "--kubeconfig", str(tmp_path / "kubeconfig"))
    started = type_("start", "update.yaml", *words, "--once", "-o", "json")
    assert states(started)["harbour"] == ("unknown", "Unreachable")
    assert (started.code, two.started("lighthouse")) == (2, True)
    two.finish("lighthouse")
    ended = type_("resume", "update.yaml", "--once", "-o", "json", *words[2:])
    assert (ended.code, states(ended)["lighthouse"][0]) == (3, "done")
    # Reachable again, the cluster is the one that its UID says.
    config["clusters"][0] = {**config["clusters"][1], "name": "harbour"}
    config["contexts"][0]["context"]["user"] = "lighthouse"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    same = json.loads(type_("status", "update.yaml", "-o", "json", *words[2:]).out)["clusters"][0]
    assert same["message"] == "it is the same cluster as lighthouse, which counts once"


@pytest.mark.parametrize("form", ["junit", "markdown", "html", "yaml"])
def test_views_render_the_plan(form: str, two: Fleet, type_: Type) -> None:
    """Each form has every cluster and the reason."""
    two.heal()
    two.clusters["lighthouse"].report(RED)
    ran = type_("plan", "update.yaml", *two.words, "-o", form)
    assert ran.code == 0
    assert all(word in ran.out for word in ("harbour", "lighthouse", "PreflightRisks"))
    if form == "junit":
        document = ElementTree.fromstring(ran.out)
        assert junit_faults(document) == []
        suites = document.findall("testsuite")
        assert [each.get("skipped") for each in suites] == ["1", "1"]


def test_a_cluster_with_the_component_gets_an_update_run(mixed: Fleet, type_: Type, tmp_path: Path) -> None:
    """The run is created without a permit; the turn permits it, the cluster's own controller starts, hold revokes."""
    cluster = mixed.clusters["harbour"]
    cluster.begin(calendars=["Always"], remote="Only", soak="0s")
    (tmp_path / "update.yaml").write_text(FILE.partition("  - name: main")[0] + FILE[FILE.index("  policy:") :])
    connection = ("--kubeconfig", str(mixed.kubeconfig))
    resume = ("resume", "update.yaml", "--once", "-o", "json", *connection)
    created = type_("start", "update.yaml", *mixed.words, "--once", "-o", "json")
    assert (created.code, states(created)["harbour"]) == (3, ("waiting", "PreflightMissing"))
    [run] = mixed.runs("harbour")
    assert run.spec.requested_by
    assert run.spec.permit_until is not None
    cluster.passes(3)
    assert cluster.desired()["mode"] == "Preflight"
    cluster.report()
    cluster.passes(2)
    assert cluster.desired()["mode"] == "Preflight"
    permitted = type_(*resume)
    assert (permitted.code, states(permitted)["harbour"][0]) == (2, "ready")
    assert type_("hold", "update.yaml", *connection).code == 0
    cluster.passes(3)
    assert not mixed.started("harbour")
    assert type_(*resume).code == 2
    cluster.passes(3)
    assert mixed.started("harbour")
    cluster.update("Completed")
    cluster.passes(4)
    ended = type_(*resume)
    assert (ended.code, states(ended)["harbour"]) == (0, ("done", "Succeeded"))
    assert len(mixed.runs("harbour")) == 1
