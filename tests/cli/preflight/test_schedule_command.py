"""`runup preflight schedule` as typed, at a server: what it shows of the last runs, and what `--remove` leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.commands import Ran, Run
from tests.factories import NOW
from tests.preflight.decide.test_kept_reports import report
from tests.servers import Server

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.clock import ManualClock
from runup.preflight.control import cluster_runs
from runup.preflight.control.kept_reports import HistorySink
from runup.preflight.decide.cluster_run import JOB, NAMESPACE
from runup.preflight.decide.packed_reports import SERIES
from runup.preflight.decide.schedule import CRON_JOB, NAME, SCHEDULED_LABEL
from runup.report.report import encode

JSON = dict[str, Any]
MAPS = resource_of(ConfigMap)
IMAGE = "registry.example/runup@sha256:" + "5" * 64
RUNNING = {"desired": {"version": "5.0.0", "image": "registry.example/release@sha256:" + "0" * 64}}
ELEVEN = [f"Risk{number:02}" for number in range(11)]


class Scheduled:
    """A cluster with a schedule."""

    def __init__(self, server: Server, run: Run) -> None:
        self.server = server
        self._run = run

    def typed(self, *words: str) -> Ran:
        """`runup preflight schedule`."""
        return self._run("preflight", "schedule", *words, "--kubeconfig", self.server.kubeconfig)

    def made(self) -> Ran:
        """The schedule, of a day."""
        return self.typed("--every", "24h", "--to", "5.1.1", "--image", IMAGE)

    def reports(self, *risks: str, **changes: Any) -> None:
        """What the process of a scheduled run writes."""
        sink = HistorySink(config.load(str(self.server.kubeconfig)), ManualClock(NOW))
        sink.write(encode(report(1, *risks, **changes)))

    def job(self, name: str, **condition: str) -> None:
        """A Job of the schedule, with a condition."""
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {SCHEDULED_LABEL: "true"}}
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        body = {"metadata": metadata, "spec": {"template": {"spec": pod}}}
        made = self.server.client.send(calls.create(JOB, body))
        assert made["metadata"]["name"] == name
        if condition:
            status = {"conditions": [{"type": "Failed", "status": "True"} | condition]}
            call = calls.merge_patch(JOB, name, {"status": status}, NAMESPACE, subresource="status")
            self.server.client.send(call)


@pytest.fixture
def cluster(server: Server, run: Run) -> Iterator[Scheduled]:
    """A cluster at 5.0.0 without a schedule, and without reports."""
    server.set_cluster_version(status=RUNNING)
    found = Scheduled(server, run)
    _clear(found)
    yield found
    _clear(found)


def _clear(cluster: Scheduled) -> None:
    cluster.typed("--remove")
    client = cluster.server.client
    for each in cluster_runs.labelled_metadata(client, JOB, f"{SCHEDULED_LABEL}=true"):
        client.send(calls.delete(JOB, each["name"], NAMESPACE))
    for name in ("preflight-history", SERIES):
        try:
            client.send(calls.delete(MAPS, name, NAMESPACE))
        except NotFound:
            continue


NOT_SCHEDULED = "error: no preflight is scheduled; schedule one: runup preflight schedule --every 24h\n"


def test_a_schedule_is_made_shown_and_removed(cluster: Scheduled) -> None:
    """The ConfigMaps that its account may only change are there before it, and stay after it."""
    assert (cluster.typed().code, cluster.typed().err) == (1, NOT_SCHEDULED)
    made = cluster.made()
    client = cluster.server.client
    cron = client.send(calls.get_raw(CRON_JOB, NAME, NAMESPACE))["spec"]["schedule"]
    assert (made.code, made.err) == (0, "")
    assert made.out == (
        f"a preflight of 5.1.1 runs every 24h ({cron} UTC), first within minutes\n"
        "no alert is made: the cluster serves no PrometheusRule (docs/how-to/preflight-in-cluster.md has it)\n"
    )
    shown = cluster.typed()
    assert (shown.code, shown.out) == (
        0,
        f"Scheduled: every 24h ({cron} UTC), target 5.1.1\nLast run:  none has ended yet\n",
    )
    data = json.loads(cluster.typed("-o", "json").out)
    assert data == {
        "every": "24h",
        "schedule": cron,
        "target": "5.1.1",
        "suspended": False,
        "last": None,
        "failed": "",
        "exitCode": 0,
    }
    removed = cluster.typed("--remove")
    assert (removed.code, removed.out) == (0, f"the schedule was removed; the reports stay in namespace {NAMESPACE}\n")
    assert (cluster.typed("--remove").code, cluster.typed("--remove").out) == (0, "no preflight is scheduled\n")
    assert cluster.typed().err == NOT_SCHEDULED
    for name in ("preflight-history", SERIES):
        client.send(calls.get_raw(MAPS, name, NAMESPACE))


def test_what_is_new_of_the_last_run(cluster: Scheduled) -> None:
    """It is named, ten at most, and ends with 2; what an earlier run had found is no news."""
    cluster.made()
    cluster.reports(*ELEVEN)
    when = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    shown = cluster.typed()
    assert (shown.code, shown.out.splitlines()[1:]) == (
        2,
        [f"Last run:  {when}, 5.1.1: 11 risks, new: {', '.join(ELEVEN[:10])} and 1 more"],
    )
    data = json.loads(cluster.typed("-o", "json").out)
    assert (data["exitCode"], data["last"]) == (
        2,
        {"id": "run-1", "time": when, "target": "5.1.1", "risks": 11, "new": ELEVEN, "error": ""},
    )
    for risks, said in ((ELEVEN, "11 risks"), (ELEVEN[:1], "1 risk")):
        cluster.reports(*risks, preflightID="run-2", observedTime="2026-12-24T00:00:00Z")
        shown = cluster.typed()
        assert (shown.code, shown.out.splitlines()[1:]) == (0, [f"Last run:  {when}, 5.1.1: {said}, nothing new"])


def test_what_has_grown_in_the_last_run(cluster: Scheduled) -> None:
    """It is named with its new objects, and ends with 2, as a new risk does."""
    cluster.made()
    for number, nodes in enumerate(("a", "abc"), 1):
        resources = [{"kind": "Node", "name": name} for name in nodes]
        risks = [{"name": "NodeCordoned", "message": "so", "resources": resources}]
        cluster.reports(risks=risks, preflightID=f"run-{number}", observedTime=f"2026-12-2{number}T00:00:00Z")
    shown = cluster.typed()
    line = f"Last run:  {NOW:%Y-%m-%dT%H:%M:%SZ}, 5.1.1: 1 risk, grown: NodeCordoned (Node b, Node c)"
    assert (shown.code, shown.out.splitlines()[1:]) == (2, [line])
    last = json.loads(cluster.typed("-o", "json").out)["last"]
    assert (last["new"], last["grown"]) == ([], [{"name": "NodeCordoned", "objects": ["Node b", "Node c"]}])


def test_a_run_that_found_nothing_out(cluster: Scheduled) -> None:
    """Ends with 1, and its error is what the last run came to."""
    cluster.made()
    cluster.reports(status="failed", message="no release")
    shown = cluster.typed()
    assert (shown.code, shown.out.splitlines()[1:]) == (1, [f"Last run:  {NOW:%Y-%m-%dT%H:%M:%SZ}, 5.1.1: no release"])


@pytest.mark.parametrize(
    ("job", "by", "code"),
    [
        pytest.param({"reason": "DeadlineExceeded", "message": "too late"}, "other-1", 1, id="without a report"),
        pytest.param({"reason": "DeadlineExceeded", "message": "too late"}, f"{NAME}-9-x", 0, id="after its report"),
        pytest.param({"status": "False", "reason": "Fine", "message": "so far"}, "other-1", 0, id="not failed"),
        pytest.param({}, "other-1", 0, id="running"),
    ],
)
def test_a_job_that_failed(cluster: Scheduled, job: dict[str, str], by: str, code: int) -> None:
    """By itself, if it left no report: why it failed is reported, and where its log is."""
    cluster.made()
    cluster.reports("A", preflightID="run-0", observedTime="2026-01-01T00:00:00Z")
    cluster.reports("A", preflightID=by)
    cluster.job(f"{NAME}-9", **job)
    seen = f"Job {NAME}-9 failed (DeadlineExceeded): too late"
    lines = [f"Failed:    {seen}; see its log: kubectl -n {NAMESPACE} logs job/..."] if code else []
    shown = cluster.typed()
    assert (shown.code, shown.out.splitlines()[2:]) == (code, lines)
    data = json.loads(cluster.typed("-o", "json").out)
    assert (data["exitCode"], data["failed"]) == (code, seen if code else "")


def test_a_schedule_that_is_suspended(cluster: Scheduled) -> None:
    """It is said, for somebody waits for a run that never starts."""
    cluster.made()
    cluster.server.client.send(calls.merge_patch(CRON_JOB, NAME, {"spec": {"suspend": True}}, NAMESPACE))
    assert "Suspended: nothing is started until spec.suspend of the CronJob is false\n" in cluster.typed().out
    assert json.loads(cluster.typed("-o", "json").out)["suspended"] is True


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("--every", "7h"), "error: --every '7h' is not an interval that a CronJob can keep", id="every"),
        pytest.param(("--every", "24h", "--to", "x"), "error: --to: ", id="a version"),
    ],
)
def test_what_is_refused(cluster: Scheduled, words: tuple[str, ...], says: str) -> None:
    """Before anything is made."""
    ran = cluster.typed("--image", IMAGE, *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(says)
    assert cluster.typed().err == NOT_SCHEDULED
