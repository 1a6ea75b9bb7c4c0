"""What is read of a cluster for the console: its preflight with the objects that risks name, live and in a dump."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import Server

from kubekit.lang import yaml as kyaml
from runup.cli.connection import Connection
from runup.console.cli import work
from runup.fleet.decide.members import Member
from runup.preflight.cli.evaluate import RequestedUpdate
from runup.preflight.control.release import TargetRelease
from runup.updatestatus.cli.status_reading import StatusReading

EXAMPLES = Path(__file__).parents[3] / "examples"
ANY = RequestedUpdate(TargetRelease())


def test_a_dump() -> None:
    """Each object that a risk names is there with its YAML, and ClusterVersion's own updates."""
    member = Member("harbour", dump=str(EXAMPLES / "skip-level"))
    judged = work.judge(member, connection=Connection(), wanted=ANY)
    assert judged.found.completed
    assert judged.offered is not None
    assert judged.offered.origin == "5.0.0"
    by_name = {each.name: each for each in judged.evidence}
    node = kyaml.load(by_name["Node worker-1"].yaml)
    assert (node["kind"], node["metadata"]["name"]) == ("Node", "worker-1")
    assert "NodeCordoned" in by_name["Node worker-1"].risks
    assert isinstance(work.status_of(member, connection=Connection()), StatusReading)


@pytest.mark.parametrize("member", [Member("a", dump="/nowhere"), Member("b", kubeconfig="/nowhere", context="b")])
def test_a_cluster_that_cannot_be_read(member: Member) -> None:
    """The reason is the result, of the preflight and of the status."""
    judged = work.judge(member, connection=Connection(), wanted=ANY)
    assert judged.found.failed is not None
    assert "/nowhere" in judged.found.failed.message
    assert isinstance(work.status_of(member, connection=Connection()), str)


@pytest.mark.slow
def test_a_live_cluster(server: Server) -> None:
    """The objects are read by name; what the server refuses or no longer has is told in their place."""
    server.set_cluster_version(
        spec={"channel": "stable-5", "overrides": []},
        status={"desired": {"version": "5.0.0", "image": "i@sha256:" + "a" * 64}},
    )
    member = Member("a", kubeconfig=str(server.kubeconfig))
    judged = work.judge(member, connection=Connection(), wanted=ANY)
    assert judged.found.completed, judged.found.failed
    assert judged.offered is not None
    assert (judged.offered.origin, judged.offered.channel) == ("5.0.0", "stable-5")
    assert all(each.yaml or each.why for each in judged.evidence)
