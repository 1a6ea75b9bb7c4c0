"""Commands that are typed against a live cluster evaluate by its time, here of 2023, and not by the machine's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cli.commands import PAST, Run, Server
from tests.cli.preflight.test_any_kubernetes import reported_node
from tests.preflight.control.test_catalog_images import definition
from tests.preflight.control.test_cluster_runs import RUN

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock, machine_now
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.console.control import worker_tasks
from runup.console.decide.board import is_old
from runup.evaluation.request import RequestedUpdate
from runup.fleet.control.cluster_sources import members_of_hub
from runup.fleet.decide.members import Member
from runup.preflight.control.cluster_runs import ClusterRun
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.process.connection import Connection
from runup.rehearse.control.cluster_source import read_cluster_source
from runup.rehearse.control.drain_source import read_cluster_objects
from runup.report.report import FORMAT, Report

JSON = dict[str, Any]
NODES, CONFIG_MAPS, DEFINITIONS = map(resource_of, (Node, ConfigMap, CustomResourceDefinition))
DESIRED = {"version": "5.0.0", "image": "quay.io/x@sha256:1"}
TODAY = f"{PAST:%Y-%m-%d}"


@pytest.fixture
def openshift(past_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The cluster with a ClusterVersion; its operator would be in the namespace `default`."""
    monkeypatch.setenv("CVO_NAMESPACE", "default")
    past_server.set_cluster_version(status={"desired": DESIRED})
    return past_server


@pytest.fixture
def kubernetes(past_server: Server) -> Iterator[Server]:
    """The cluster without one, with a node."""
    past_server.remove_cluster_version()
    body = reported_node("only", "v1.27.3")
    past_server.client.send(calls.create(NODES, body))
    past_server.client.send(calls.merge_patch(NODES, "only", {"status": body["status"]}, subresource="status"))
    yield past_server
    past_server.client.send(calls.delete(NODES, "only"))


@pytest.fixture
def config_maps(openshift: Server) -> Iterator[Callable[[str, dict[str, str]], object]]:
    """Creates a ConfigMap of the operator, which goes after the test."""
    names: list[str] = []

    def create(name: str, data: dict[str, str]) -> object:
        names.append(name)
        body = {"metadata": {"name": name, "namespace": "default"}, "data": data}
        return openshift.client.send(calls.create(CONFIG_MAPS, body))

    yield create
    for name in names:
        openshift.client.send(calls.delete(CONFIG_MAPS, name, "default"))


def preflight(run: Run, server: Server, *words: str) -> JSON:
    """What `preflight run -o json` prints."""
    printed: JSON = json.loads(run("preflight", "run", "--kubeconfig", server.kubeconfig, "-o", "json", *words).out)
    return printed


@pytest.mark.slow
def test_a_report_has_the_clusters_time(openshift: Server, run: Run) -> None:
    """It is as of then, as a report that a process in the cluster writes."""
    assert preflight(run, openshift, "--to", "5.2.0")["observedTime"].startswith(TODAY)


@pytest.mark.parametrize(
    ("target", "ended"),
    [
        pytest.param("1.28", False, id="ends a year after that, and has ended since"),
        pytest.param("1.23", True, id="had ended even then"),
    ],
)
def test_support_ends_by_the_clusters_calendar(kubernetes: Server, run: Run, target: str, ended: bool) -> None:
    """A check that uses age says what it would have said then."""
    source = f"1.{int(target.partition('.')[2]) - 1}.0"
    found = preflight(run, kubernetes, "--from", source, "--to", target)
    assert found["observedTime"].startswith(TODAY)
    (check,) = [check for check in found["checks"] if check["name"] == "TargetSupportEnded"]
    assert check["result"] == ("Applies" if ended else "Clear")


@pytest.mark.parametrize(
    ("until", "counts"),
    [
        pytest.param(PAST + timedelta(days=30), True, id="by the machine's clock it has ended"),
        pytest.param(PAST - timedelta(days=30), False, id="it has ended"),
    ],
)
def test_an_acceptance_ends_by_the_clusters_time(
    until: Any, counts: bool, openshift: Server, run: Run, config_maps: Callable[..., object]
) -> None:
    """As the operator evaluates it."""
    name = min(risk["name"] for risk in preflight(run, openshift, "--to", "5.1.0")["risks"])
    config_maps("accepted-risks", {name: json.dumps({"name": name, "until": f"{until:%Y-%m-%dT%H:%M:%SZ}"})})
    openshift.patch_spec(desiredUpdate={"acceptRisks": [{"name": name}]})
    found = preflight(run, openshift, "--to", "5.1.0")
    assert {risk["name"] for risk in found["risks"] if risk["accepted"]} == ({name} if counts else set())


def test_ages_of_reports(openshift: Server, run: Run, config_maps: Callable[..., object]) -> None:
    """Of two that are compared, and of the page of one."""
    reports = tuple(
        Report(
            format=FORMAT,
            preflight_id=f"preflight-of-{target}",
            source_version="5.0.0",
            target_version=target,
            execution_status="completed",
            observed_time=PAST - timedelta(days=days),
        )
        for target, days in (("5.2.0", 2), ("5.1.0", 3))
    )
    stored = stored_reports.config_map(History(reports=reports), "default")
    config_maps(stored["metadata"]["name"], stored["data"])
    words = ("--kubeconfig", openshift.kubeconfig)
    compared = " ".join(run("preflight", "compare", "5.1.0", "5.2.0", *words).out.split())
    assert "5.1.0 was checked 3 days ago" in compared
    assert "5.2.0 was checked 2 days ago" in compared
    page = re.sub(r"<[^>]*>", "", run("preflight", "show", "5.2.0", *words, "-o", "html").out)
    assert f"As of {TODAY}" in page


def test_a_job_is_as_old_as_the_cluster_says(past_server: Server) -> None:
    """So one that has just been made is not given up."""
    looked = ClusterRun(past_server.client, RUN, ManualClock(), lambda _: None).observed()
    assert f"{looked.now:%Y-%m-%d}" == TODAY


def test_drains_and_rehearsals_are_as_of_the_clusters_time(openshift: Server) -> None:
    """The moment is part of what was read."""
    assert f"{read_cluster_objects(openshift.client).now:%Y-%m-%d}" == TODAY
    source = asyncio.run(read_cluster_source(config.load(str(openshift.kubeconfig))))
    assert f"{source.now:%Y-%m-%d}" == TODAY


def test_the_next_window_is_the_clusters(kubernetes: Server, run: Run) -> None:
    """`upgrade forecast --between`."""
    words = ("--between", "22:00-06:00", "-o", "json", "--kubeconfig", kubernetes.kubeconfig)
    forecast = json.loads(run("upgrade", "forecast", *words).out)
    assert forecast["window"]["opens"] == f"{TODAY}T22:00:00Z"


def test_the_console_counts_ages_by_its_own_clock(openshift: Server) -> None:
    """A fresh result is new, even if the cluster's clock is years behind."""
    member = Member(name="past", kubeconfig=str(openshift.kubeconfig))
    evaluated = worker_tasks.evaluate(member, connection=Connection(), requested_update=RequestedUpdate())
    assert evaluated.findings.completed
    assert not is_old(evaluated.findings, machine_now(), timedelta(hours=1))


def test_reports_of_a_hub_are_as_old_as_the_hub_says(kubernetes: Server) -> None:
    """Its time is known once it has answered, which is before its clusters are evaluated."""
    client = SyncClient(config.load(str(kubernetes.kubeconfig)))
    for kind in (ManagedCluster, ManifestWork):
        client.send(calls.create(DEFINITIONS, definition(resource_of(kind))))
    clusters = resource_of(ManagedCluster)
    named = {"apiVersion": clusters.api_version, "kind": clusters.kind, "metadata": {"name": "a"}}
    client.send(calls.create(clusters, named))
    times: list[datetime] = []

    def evaluate(clusters: Sequence[ManagedCluster], _works: object, now: datetime, **_more: object) -> list[Member]:
        times.append(now)
        return [Member(name=cluster.metadata.name) for cluster in clusters]

    # A new client, which has not heard of any time.
    members, _ = members_of_hub(SyncClient(config.load(str(kubernetes.kubeconfig))), "hub", "", evaluate)
    assert [member.name for member in members] == ["a"]
    assert [f"{now:%Y-%m-%d}" for now in times] == [TODAY]
