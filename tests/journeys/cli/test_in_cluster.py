"""A preflight as a Job of the cluster, as typed: its result, its rights, what it leaves, and the schedule."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench.releases_world import events
from msgspec.structs import replace
from tests.journeys.conftest import COMMAND_S, RUNUP, Done, Sandbox
from tests.servers import eventually

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import CronJob, Job
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, NotFound
from kubekit.kube.calls import list_kinds
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue.apis.shared import written_versions
from runup.checks.catalogue.own_rights import own_rights
from runup.preflight.control.cluster_runs import apply_all, delete_all, labelled_metadata
from runup.preflight.decide import cluster_run, kept_history, packed_reports
from runup.preflight.decide.cluster_run import CONFIG_MAP, JOB, KINDS, NAMESPACE, RUN_LABEL, Checking, Run
from runup.preflight.decide.preflight_deployment import report_map
from runup.preflight.decide.schedule import CRON_JOB, NAME, PROMETHEUS_RULE, SCHEDULED_LABEL
from runup.preflight.decide.service_account import CLUSTER_ROLE, ROLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("in-cluster")]

JSON = dict[str, Any]
QUOTA = Resource(group="", version="v1", kind="ResourceQuota", plural="resourcequotas", namespaced=True)
READING = {"get", "list", "watch"}


@dataclass(frozen=True)
class InCluster:
    """A sandbox, with the image of the release that it runs: the same code as the command's."""

    sandbox: Sandbox
    image: str

    def run(self, *words: str) -> Done:
        """`runup preflight run --in-cluster` with that image."""
        return self.sandbox.run("preflight", "run", "--in-cluster", "--image", self.image, *words)

    def left(self, label: str = RUN_LABEL) -> list[tuple[str, str]]:
        """The kinds and names of the objects with a label that are there now."""
        kinds = (*KINDS, CRON_JOB, PROMETHEUS_RULE)
        return [
            (kind.kind, meta["name"]) for kind in kinds for meta in labelled_metadata(self.sandbox.client, kind, label)
        ]


@pytest.fixture
def here(skip_level: Sandbox) -> InCluster:
    """5.0.0 with things in the way of 5.1.0."""
    return InCluster(skip_level, skip_level.cluster_version().status.desired.image)


@pytest.fixture
def offered(skip_level: Sandbox) -> str:
    """The pull spec of 5.0.3, which the cluster's channel offers."""
    updates = skip_level.until(lambda version: version.status.available_updates, "updates are known")
    return next(release.image for release in updates if release.version == "5.0.3")


def risks(text: str) -> dict[str, str]:
    """The risks of `-o json`, and whether they apply."""
    return {risk["name"]: risk["applies"] for risk in json.loads(text)["risks"]}


def test_it_finds_what_the_command_finds_and_writes_one_config_map(here: InCluster) -> None:
    """The audit log has every request: none of the Job's account and none of the command's writes ClusterVersion."""
    # Both look at a cluster of which everything is said that will be.
    here.sandbox.until(lambda version: find(version.status.conditions, "Upgradeable"), "Upgradeable is told")
    log = here.sandbox.data / "audit.log"
    since = log.stat().st_size
    within = here.run("--to", "5.1.0", "-o", "json")
    outside = here.sandbox.run("preflight", "run", "--to", "5.1.0", "-o", "json")
    assert within.code == outside.code == 2, within.err
    assert risks(within.out) == risks(outside.out)
    # The log is written a moment after the answer.
    ours = [event for event in events(log, since) if "runup" in event.get("userAgent", "") or _is_job(event)]
    assert any(_is_job(event) for event in ours)
    on_version = {e["verb"] for e in ours if (e.get("objectRef") or {}).get("resource") == "clusterversions"}
    assert on_version <= READING
    writes = {
        (event["verb"], event["objectRef"]["resource"], event["objectRef"]["name"][:17])
        for event in ours
        if _is_job(event) and event["verb"] not in READING
    }
    assert writes == {("patch", "configmaps", "preflight-report-")}
    assert here.left() == []


def _is_job(event: JSON) -> bool:
    return str(event["user"]["username"]).startswith(f"system:serviceaccount:{NAMESPACE}:")


def test_the_report_is_kept_and_shown(here: InCluster) -> None:
    """By `show` and `history`, with the exit code of the run."""
    done = here.run("--to", "5.0.3")
    shown = here.sandbox.run("preflight", "show", "5.0.3", "--in-cluster")
    assert (shown.code, shown.verdict) == (done.code, done.verdict), done.err + shown.err
    kept = json.loads(here.sandbox.run("preflight", "history", "--in-cluster", "-o", "json").out)
    assert "5.0.3" in [report["targetVersion"] for report in kept]
    missing = here.sandbox.run("preflight", "show", "9.9.9", "--in-cluster")
    assert (missing.code, missing.out) == (1, "")
    assert "no preflight of 9.9.9 was made in the cluster" in missing.err


def test_a_targets_own_checks(here: InCluster, offered: str) -> None:
    """Its image runs, pinned, with what it declares that its checks read."""
    done = here.sandbox.run("preflight", "run", "--in-cluster", "--keep", "--to-image", offered, "-o", "json")
    try:
        assert json.loads(done.out)["target"] == "5.0.3", done.err
        (job,) = labelled_metadata(here.sandbox.client, JOB, RUN_LABEL)
        found = here.sandbox.client.send(calls.get_raw(JOB, job["name"], NAMESPACE))
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert container["image"] == offered
    finally:
        _delete(here, RUN_LABEL)


def _delete(here: InCluster, label: str) -> None:
    for kind in KINDS:
        for meta in labelled_metadata(here.sandbox.client, kind, label):
            here.sandbox.client.send(calls.delete(kind, meta["name"], meta.get("namespace", "")))


def test_what_its_account_may(here: InCluster) -> None:
    """The server is asked as that account: it reads what checks read, writes its report, and nothing else."""
    client = here.sandbox.client
    run = Run(
        id="preflight-1-00000000ab", checking=Checking(image=here.image), rights=own_rights(), started=client.now()
    )
    apply_all(client, (cluster_run.namespace_object(), *cluster_run.objects(run)[:-1]))
    try:
        user = f"system:serviceaccount:{NAMESPACE}:{run.name}"
        as_account = SyncClient(replace(client.config, headers=(("Impersonate-User", user),)))
        own = {"metadata": {"name": report_map(run.id), "namespace": NAMESPACE}, "data": {}}
        other = {"metadata": {"name": "preflight-history", "namespace": NAMESPACE}, "data": {}}
        allowed = [
            calls.list_raw(resource_of(Node)),
            calls.get_raw(resource_of(ClusterVersion), "version"),
            calls.apply(CONFIG_MAP, own, field_manager="x"),
            calls.get_raw(CONFIG_MAP, report_map(run.id), NAMESPACE),
        ]
        for call in allowed:
            as_account.send(call)
        pod = {"metadata": {"name": "p", "namespace": NAMESPACE}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        refused = [
            calls.list_raw(Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)),
            calls.apply(CONFIG_MAP, other, field_manager="x"),
            calls.create(CONFIG_MAP, {"metadata": {"name": "mine", "namespace": NAMESPACE}}),
            calls.delete(CONFIG_MAP, report_map(run.id), NAMESPACE),
            calls.merge_patch(resource_of(ClusterVersion), "version", {"spec": {"channel": "x"}}),
            calls.merge_patch(resource_of(Node), "worker-0", {}),
            calls.create(resource_of(Pod), pod),
            calls.delete(JOB, run.name, NAMESPACE),
        ]
        for call in refused:
            with pytest.raises(Forbidden):
                as_account.send(call)
    finally:
        assert delete_all(client, cluster_run.deletions(run)) == ()
    assert here.left() == []


def test_every_right_is_used_and_none_is_missing(here: InCluster) -> None:
    """By the audit log: nothing that the account asks for is refused, and each kind that it may read, it reads.

    A kind that the server does not know is not asked for, and counts for neither.
    """
    client = here.sandbox.client
    log = here.sandbox.data / "audit.log"
    since = log.stat().st_size
    done = here.run("--keep", "--to", "5.1.0", "-o", "json")
    try:
        (job,) = labelled_metadata(client, JOB, RUN_LABEL)
        account = f"system:serviceaccount:{NAMESPACE}:{job['name']}"
        granted = {
            (group, resource)
            for kind in (CLUSTER_ROLE, ROLE)
            for meta in labelled_metadata(client, kind, RUN_LABEL)
            for rule in client.send(calls.get_raw(kind, meta["name"], meta.get("namespace", "")))["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
    finally:
        _delete(here, RUN_LABEL)
    asked = [event for event in events(log, since) if event["user"]["username"] == account]
    assert asked, done.err
    assert [event["requestURI"] for event in asked if event["responseStatus"]["code"] == 403] == []
    used = {
        (ref.get("apiGroup", ""), "/".join(filter(None, (ref["resource"], ref.get("subresource")))))
        for event in asked
        if (ref := event.get("objectRef"))
    }
    assert len(used) > 20
    assert used - granted == set()
    # An update that crosses no change of the API lifecycle reads none of its kinds.
    at_changes = {(read.group, read.plural) for read in written_versions.ALL}
    assert {right for right in granted - used - at_changes if _is_served(client, *right)} == set()


def _is_served(client: SyncClient, group: str, resource: str) -> bool:
    """Whether the server knows the kind, in any version of its group."""
    try:
        versions = json.loads(client.send(calls.get_path(f"/apis/{group}")))["versions"] if group else ()
    except NotFound:
        return False
    found = [client.send(list_kinds(each["groupVersion"])) for each in versions] or [client.send(list_kinds("v1"))]
    return any(each.plural == resource for kinds in found for each in kinds)


def test_what_a_killed_command_left_goes_with_the_next(here: InCluster) -> None:
    """Once its time is over, and not before."""
    client = here.sandbox.client
    old = Run(
        id="preflight-1-00000000cd",
        checking=Checking(image=here.image),
        rights=(),
        started=client.now() - timedelta(hours=2),
    )
    young = Run(id="preflight-2-00000000cd", checking=Checking(image=here.image), rights=(), started=client.now())
    for run in (old, young):
        apply_all(client, (cluster_run.namespace_object(), *cluster_run.objects(run)[:-1]))
        report = {"metadata": {"name": report_map(run.id), "namespace": NAMESPACE}}
        client.send(calls.create(CONFIG_MAP, report))
    try:
        assert here.run("--to", "5.0.3").code in (0, 2, 3)
        assert {name for _, name in here.left()} == {young.name}
        with pytest.raises(NotFound):
            client.send(calls.get(ConfigMap, report_map(old.id), NAMESPACE))
        client.send(calls.get(ConfigMap, report_map(young.id), NAMESPACE))
    finally:
        delete_all(client, cluster_run.deletions(young))


def test_two_at_once(here: InCluster) -> None:
    """Each has its own result, both are kept, and nothing is left."""
    done: dict[str, Done] = {}

    def run(version: str) -> None:
        done[version] = here.run("--to", version, "-o", "json")

    threads = [threading.Thread(target=run, args=(version,)) for version in ("5.0.3", "5.1.0")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(COMMAND_S)
    assert {version: json.loads(each.out)["target"] for version, each in done.items()} == {v: v for v in done}
    kept = json.loads(here.sandbox.run("preflight", "history", "--in-cluster", "-o", "json").out)
    assert {"5.0.3", "5.1.0"} <= {report["targetVersion"] for report in kept}
    assert here.left() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_who_ends_the_command_ends_the_job(here: InCluster, number: int, code: int) -> None:
    """A cancelled pipeline leaves nothing in the cluster."""
    words = [*RUNUP, "preflight", "run", "--in-cluster", "--image", _missing(here), "--to", "5.1.0"]
    process = subprocess.Popen(
        words, env=here.sandbox.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        eventually(lambda: any(kind == "Job" for kind, _ in here.left()), "the Job is there")
        os.kill(process.pid, number)
        process.communicate(timeout=COMMAND_S)
    finally:
        process.kill()
    assert process.returncode == code
    assert here.left() == []


def _missing(here: InCluster) -> str:
    """An image that its registry does not have."""
    return f"{here.image.partition('@')[0]}@sha256:{'0' * 64}"


def test_an_image_that_nobody_has(here: InCluster) -> None:
    """Told while the Job waits, in the words of the node, and again at the end of the time."""
    done = here.sandbox.run(
        "preflight", "run", "--in-cluster", "--image", _missing(here), "--to", "5.1.0", "--timeout", "12"
    )
    assert (done.code, done.out) == (1, "")
    waits, last = done.err.splitlines()[-2:]
    assert "its image could not be pulled" in waits
    assert "was not done in time" in last or "was not done within" in last
    assert "its image could not be pulled" in last
    assert here.left() == []


@pytest.fixture
def full(here: InCluster) -> Iterator[InCluster]:
    """The runs' namespace has no room for a pod."""
    apply_all(here.sandbox.client, (cluster_run.namespace_object(),))
    quota = {"metadata": {"name": "none", "namespace": NAMESPACE}, "spec": {"hard": {"pods": "0"}}}
    here.sandbox.client.send(calls.apply(QUOTA, quota, field_manager="test"))
    read = calls.get_raw(QUOTA, "none", NAMESPACE)
    eventually(lambda: here.sandbox.client.send(read).get("status", {}).get("hard"), "the quota counts")
    yield here
    here.sandbox.client.send(calls.delete(QUOTA, "none", NAMESPACE))


def test_a_quota_that_leaves_no_room(full: InCluster) -> None:
    """Told at once in the server's words, and given up soon: only a change of the quota helps."""
    done = full.run("--to", "5.1.0")
    assert (done.code, done.out) == (1, "")
    waits, last = done.err.splitlines()[-2:]
    for line in (waits, last):
        assert "exceeded quota: none" in line
    assert "change what refuses it" in last
    assert full.left() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("--in-cluster", "--to", "5.1.0"), "it is not known which image", id="no image"),
        pytest.param(
            ("--in-cluster", "--to", "5.1.0", "--image", "A B"), "invalid reference format", id="no reference"
        ),
        pytest.param(("--in-cluster", "--image", "r.example/a", "--dump", "."), "leave it out", id="a dump"),
        pytest.param(("--in-cluster", "--to-image", "oci:here"), "give an image in a registry", id="a folder"),
        pytest.param(("--keep",), "give --in-cluster too", id="a flag of the Job without one"),
        pytest.param(("--in-cluster", "--image", "r.example/a", "--to", "4.0.0"), "4.0.0", id="a target behind"),
    ],
)
def test_what_is_refused_before_anything_is_made(here: InCluster, words: tuple[str, ...], message: str) -> None:
    """The error names the flag and the way out."""
    done = here.sandbox.run("preflight", "run", *words)
    assert done.code == 1
    assert message in done.err
    assert here.left() == []


@pytest.fixture
def scheduled(here: InCluster) -> Iterator[InCluster]:
    """A cluster that checks the newest release of its channel each day."""
    done = here.sandbox.run("preflight", "schedule", "--every", "24h", "--image", here.image)
    assert done.code == 0, done.err
    yield here
    here.sandbox.run("preflight", "schedule", "--remove")


def start(here: InCluster, number: int) -> str:
    """Start the CronJob's Job as its controller does; how it ended."""
    client = here.sandbox.client
    cron = client.send(calls.get_raw(resource_of(CronJob), NAME, NAMESPACE))
    template = cron["spec"]["jobTemplate"]
    metadata = {"name": f"{NAME}-{number}", "namespace": NAMESPACE, "labels": template["metadata"]["labels"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    client.send(calls.create(JOB, job))

    def ended() -> str:
        found = client.send(calls.get(Job, metadata["name"], NAMESPACE)).status.conditions
        return next((each for each in ("Complete", "Failed") if status_of(found, each) == "True"), "")

    return str(eventually(ended, "the Job has ended"))


def test_a_schedule_says_what_is_new(scheduled: InCluster) -> None:
    """The first run fails, because nobody has seen what it found; the second finds nothing new."""
    sandbox = scheduled.sandbox
    # What is said about the cluster between two runs would be news.
    sandbox.until(lambda version: find(version.status.conditions, "Upgradeable"), "Upgradeable is told")
    _forget(scheduled)
    sandbox.run("preflight", "schedule", "--every", "24h", "--image", scheduled.image)
    before = sandbox.run("preflight", "schedule")
    assert (before.code, before.verdict) == (0, "Last run:  none has ended yet")
    assert start(scheduled, 1) == "Failed"
    first = sandbox.run("preflight", "schedule", "-o", "json")
    said = json.loads(first.out)
    assert first.code == said["exitCode"] == 2
    assert (said["target"], said["last"]["target"]) == ("channel latest", "5.1.0")
    assert set(said["last"]["new"]) == set(risks(sandbox.run("preflight", "show", "--in-cluster", "-o", "json").out))
    assert start(scheduled, 2) == "Complete"
    second = sandbox.run("preflight", "schedule")
    assert (second.code, second.verdict[-11:]) == (0, "nothing new")
    # Both are in the series, where the first ConfigMap has the newer one alone.
    series = f"configmap:{NAMESPACE}/{packed_reports.SERIES}"
    history = json.loads(sandbox.run("fleet", "history", "--store", series, "-o", "json").out)
    assert len({step["observedTime"] for step in history if step["target"] == "5.1.0"}) >= 2


def _forget(here: InCluster) -> None:
    here.sandbox.client.send(calls.delete(CONFIG_MAP, kept_history.NAME, NAMESPACE))


def test_scheduled_twice_is_scheduled_once(scheduled: InCluster) -> None:
    """The same command changes nothing, not even the time of day."""
    read = calls.get_raw(CRON_JOB, NAME, NAMESPACE)
    before = scheduled.sandbox.client.send(read)["metadata"]["generation"]
    done = scheduled.sandbox.run("preflight", "schedule", "--every", "24h", "--image", scheduled.image)
    assert done.code == 0
    assert scheduled.sandbox.client.send(read)["metadata"]["generation"] == before


def test_a_run_that_left_no_report(scheduled: InCluster) -> None:
    """The newest Job failed without a word in the reports: what the cluster says about it is shown."""
    image = _missing(scheduled)
    client = scheduled.sandbox.client
    job = {
        "metadata": {"name": f"{NAME}-lost", "namespace": NAMESPACE, "labels": {SCHEDULED_LABEL: "true"}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}},
        },
    }
    client.send(calls.create(JOB, {"apiVersion": "batch/v1", "kind": "Job", **job}))
    eventually(
        lambda: status_of(client.send(calls.get(Job, f"{NAME}-lost", NAMESPACE)).status.conditions, "Failed") == "True",
        "the Job has failed",
    )
    shown = scheduled.sandbox.run("preflight", "schedule")
    assert shown.code == 1
    assert f"Job {NAME}-lost failed (DeadlineExceeded)" in shown.out


def test_what_is_removed(scheduled: InCluster) -> None:
    """The reports stay, nothing else does; removed twice, there is nothing to remove."""
    assert ("CronJob", NAME) in scheduled.left(SCHEDULED_LABEL)
    removed = scheduled.sandbox.run("preflight", "schedule", "--remove")
    assert (removed.code, removed.out) == (0, f"the schedule was removed; the reports stay in namespace {NAMESPACE}\n")
    assert scheduled.left(SCHEDULED_LABEL) == []
    eventually(lambda: not scheduled.sandbox.client.list_all(Pod, NAMESPACE)[0], "its pods are gone")
    again = scheduled.sandbox.run("preflight", "schedule", "--remove")
    assert (again.code, again.out) == (0, "no preflight is scheduled\n")
    shown = scheduled.sandbox.run("preflight", "schedule")
    assert (shown.code, shown.err[:37]) == (1, "error: no preflight is scheduled; sch")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("--every", "5h"), "is not an interval that a CronJob can keep", id="an interval"),
        pytest.param(("--every", "24h", "--to", "five"), "is not a semantic version", id="a version"),
        pytest.param(
            ("--every", "24h", "--to-channel", "stable-9"), "lists no update in channel stable-9", id="channel"
        ),
        pytest.param(
            ("--every", "24h", "--to", "5.1.0", "--to-channel", "latest"), "give one of them", id="two targets"
        ),
        pytest.param(("--to", "5.1.0"), "need --every TIME", id="a target without an interval"),
        pytest.param(("--every", "24h", "--remove"), "give one of them", id="made and removed"),
    ],
)
def test_what_cannot_be_scheduled(here: InCluster, words: tuple[str, ...], message: str) -> None:
    """Refused before anything is made."""
    done = here.sandbox.run("preflight", "schedule", *words, *(("--image", here.image) if "--every" in words else ()))
    assert done.code == 1
    assert message in done.err
    with pytest.raises(NotFound):
        here.sandbox.client.send(calls.get(CronJob, NAME, NAMESPACE))


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "preflight-in-cluster.md"


def typed(page: str) -> list[str]:
    """The commands in the page's blocks of shell, without their remarks."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]


def test_the_page_is_typed(here: InCluster) -> None:
    """Each command as it is there, in its order, by a shell: none of them is refused."""
    commands = typed(PAGE.read_text())
    assert len(commands) > 10
    environment = {**here.sandbox.environment(), "IMAGE": here.image}
    program = shlex.join(RUNUP)
    for command in commands:
        line = f'runup() {{ {program} "$@"; }}; {command}'
        done = subprocess.run(
            ["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False, timeout=COMMAND_S
        )
        # 2: risks apply. What cannot be done is 1, and says so.
        assert done.returncode in (0, 2), f"{command}\n{done.stderr}"
        assert "error:" not in done.stderr, f"{command}\n{done.stderr}"
