"""Reads a cluster for the console: its preflight with the objects that risks name, live and in a dump."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.commands import Server
from tests.preflight.control.test_report_store import NOON, REPORT

from kubekit.lang import yaml as kyaml
from runup.console.control import worker_tasks
from runup.console.decide.outlook import Outlook
from runup.evaluation.request import RequestedUpdate
from runup.fleet.decide.members import Member
from runup.preflight.control import report_store
from runup.process.connection import Connection
from runup.updatestatus.control.status_reading import StatusReading

EXAMPLES = Path(__file__).parents[3] / "examples"
ANY = RequestedUpdate()


def test_a_dump() -> None:
    """Each object that a risk names is there with its YAML, and ClusterVersion's own updates."""
    member = Member(name="harbour", dump=str(EXAMPLES / "skip-level"))
    evaluated = worker_tasks.evaluate(member, connection=Connection(), requested_update=ANY)
    assert evaluated.findings.completed
    assert evaluated.offered is not None
    assert evaluated.offered.origin == "5.0.0"
    by_name = {each.name: each for each in evaluated.evidence}
    node = kyaml.load(by_name["Node worker-1"].yaml)
    assert (node["kind"], node["metadata"]["name"]) == ("Node", "worker-1")
    assert "NodeCordoned" in by_name["Node worker-1"].risks
    assert isinstance(worker_tasks.status_of(member, connection=Connection()), StatusReading)
    outlook = worker_tasks.outlook_of(member, connection=Connection())
    assert isinstance(outlook, Outlook)
    assert {drain.node for drain in outlook.slow.nodes} >= {"master-0"}
    assert outlook.why_no_events == "the dump holds no events"


@pytest.mark.parametrize(
    "member", [Member(name="a", dump="/nowhere"), Member(name="b", kubeconfig="/nowhere", context="b")]
)
def test_a_cluster_that_cannot_be_read(member: Member) -> None:
    """The reason is the result, of the preflight and of the status."""
    evaluated = worker_tasks.evaluate(member, connection=Connection(), requested_update=ANY)
    assert evaluated.findings.failed is not None
    assert "/nowhere" in evaluated.findings.failed.message
    assert isinstance(worker_tasks.status_of(member, connection=Connection()), str)
    outlook = worker_tasks.outlook_of(member, connection=Connection())
    assert isinstance(outlook, str)
    assert "/nowhere" in outlook


LATER = replace(REPORT, observed_time=NOON + timedelta(days=1), risks=())
GONE = Member(name="a", dump="/nowhere")


@pytest.fixture
def kept(tmp_path: Path) -> list[Path]:
    """Two reports of cluster a, the oldest first."""
    return [report_store.keep(tmp_path, "a", report, NOON + timedelta(days=2)) for report in (REPORT, LATER)]


@pytest.mark.parametrize("member", [Member(name="a"), GONE], ids=["kept reports alone", "beside a dump"])
def test_a_report_that_cannot_be_read(member: Member, kept: list[Path], tmp_path: Path) -> None:
    """The others are reported, and that it is left out."""
    kept[1].write_text("{")
    if member is GONE:
        evaluated = worker_tasks.evaluate_with_history(
            member, connection=Connection(), requested_update=ANY, store=str(tmp_path), days=0
        )
    else:
        evaluated = worker_tasks.evaluate_kept(member, connection=Connection(), store=str(tmp_path), days=0)
    assert evaluated.findings.failed is not None
    assert [step.observed for step in evaluated.steps] == [NOON]
    assert [kept[1].name in note for note in evaluated.history_notes] == [True]


def test_a_store_that_cannot_be_read() -> None:
    """It is not the same as one without reports."""
    evaluated = worker_tasks.evaluate_with_history(
        GONE, connection=Connection(), requested_update=ANY, store="sqlite:/nowhere", days=0
    )
    assert evaluated.steps == ()
    assert ["/nowhere: there is no such file" in note for note in evaluated.history_notes] == [True]


def test_a_long_history(kept: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its oldest reports are not told, and that is said."""
    monkeypatch.setattr(worker_tasks, "_MOST_STEPS", len(kept) - 1)
    evaluated = worker_tasks.evaluate_kept(Member(name="a"), connection=Connection(), store=str(tmp_path), days=0)
    assert [step.observed for step in evaluated.steps] == [NOON + timedelta(days=1)]
    assert evaluated.history_notes == ("only the newest 1 of 2 reports are shown",)


@pytest.mark.slow
def test_a_live_cluster(server: Server) -> None:
    """The objects are read by name; what the server refuses or no longer has is reported in their place."""
    server.set_cluster_version(
        spec={"channel": "stable-5", "overrides": []},
        status={"desired": {"version": "5.0.0", "image": "i@sha256:" + "a" * 64}},
    )
    member = Member(name="a", kubeconfig=str(server.kubeconfig))
    evaluated = worker_tasks.evaluate(member, connection=Connection(), requested_update=ANY)
    assert evaluated.findings.completed, evaluated.findings.failed
    assert evaluated.offered is not None
    assert (evaluated.offered.origin, evaluated.offered.channel) == ("5.0.0", "stable-5")
    assert all(each.yaml or each.why for each in evaluated.evidence)
