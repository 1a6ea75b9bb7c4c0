"""Runs `runup preflight run --in-cluster` on a server: its output, stored and remaining objects, and refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Ran, Run
from tests.kubekit.oci.registries import odd_registry, release
from tests.preflight.control.test_cluster_runs import Steps
from tests.preflight.decide.test_kept_reports import report
from tests.servers import Server

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.oci.layout import Layout
from runup.api.preflight_reads_v1 import FILE
from runup.checks.decide.rights import to_file
from runup.preflight.control import cluster_runs
from runup.preflight.decide import kept_history
from runup.preflight.decide.cluster_run import JOB, KINDS, NAMESPACE, RUN_LABEL
from runup.preflight.decide.preflight_deployment import report_map
from runup.report.report import FILE_NAME, encode
from runup.target import in_cluster

JSON = dict[str, Any]
MAPS = resource_of(ConfigMap)
IMAGE = "registry.example/runup@sha256:" + "5" * 64
RUNNING = {"desired": {"version": "5.0.0", "image": "registry.example/release@sha256:" + "0" * 64}}


class Cluster:
    """A server on which a preflight's Job comes to what `step` does."""

    def __init__(self, server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self._run = run
        self._monkeypatch = monkeypatch

    def typed(self, *words: str, step: Callable[[JSON], object] = lambda _: None) -> Ran:
        """A command; `step` gets the Job at the first wait for it."""
        clock = Steps(lambda: [step(job) for job in self.left(JOB)])
        self._monkeypatch.setattr(in_cluster, "SystemClock", lambda: clock)
        return self._run("preflight", *words, "--kubeconfig", self.server.kubeconfig)

    def left(self, *kinds: Any) -> list[JSON]:
        """Metadata of the objects of runs."""
        found = [cluster_runs.labelled_metadata(self.server.client, kind, RUN_LABEL) for kind in kinds or KINDS]
        return [metadata for each in found for metadata in each]

    def reports(self, *risks: str) -> Callable[[JSON], object]:
        """A step: the process writes a report with those risks."""

        def write(job: JSON) -> None:
            run = job["labels"][RUN_LABEL]
            data = {FILE_NAME: encode(report(1, *risks, preflightID=run)).decode()}
            obj = {"metadata": {"name": report_map(run), "namespace": NAMESPACE}, "data": data}
            self.server.client.send(calls.apply(MAPS, obj, field_manager="process"))

        return write

    def deletes(self, job: JSON) -> None:
        """A step: somebody deletes the Job."""
        self.server.client.send(calls.delete(JOB, job["name"], NAMESPACE))


@pytest.fixture
def cluster(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster at 5.0.0, without reports."""
    server.set_cluster_version(status=RUNNING)
    found = Cluster(server, run, monkeypatch)
    # Other files have made runs on the same server.
    _clear_runs(found)
    yield found
    _clear_runs(found)


def _clear_runs(cluster: Cluster) -> None:
    """Deletes the objects of all runs, and the reports that are kept of them."""
    server = cluster.server
    for kind in KINDS:
        for metadata in cluster.left(kind):
            server.client.send(calls.delete(kind, metadata["name"], metadata.get("namespace", "")))
    for name in ("runup-preflight-history", "preflight-history"):
        try:
            server.client.send(calls.delete(MAPS, name, NAMESPACE))
        except NotFound:
            continue


RUN = ("run", "--in-cluster", "--to", "5.1.1")


def test_a_preflight_in_the_cluster_is_told_kept_and_gone(cluster: Cluster) -> None:
    """Its risks are those of the report; `show` and `history` have it from then on."""
    ran = cluster.typed(*RUN, "--image", IMAGE, step=cluster.reports("PoolPaused"))
    assert "PoolPaused" in ran.out
    seen = ran.err.splitlines()
    assert re.fullmatch(
        r"Job runup-preflight-\d+-[0-9a-f]{10} in namespace runup-preflight checks the update to 5\.1\.1", seen[0]
    )
    assert seen[1:2] == ["its pod starts"]
    assert cluster.left() == []
    shown = cluster.typed("show", "5.1.1", "--in-cluster")
    assert (shown.code, "PoolPaused" in shown.out) == (ran.code, True), shown.err
    assert cluster.typed("show", "--in-cluster").out == shown.out
    kept = json.loads(cluster.typed("history", "--in-cluster", "-o", "json").out)
    assert "5.1.1" in json.dumps(kept)
    missing = cluster.typed("show", "9.9.9", "--in-cluster")
    assert (missing.code, missing.err) == (
        1,
        "error: no preflight of 9.9.9 was made in the cluster; make one: runup preflight run --in-cluster\n",
    )


def test_a_report_that_cannot_be_kept(cluster: Cluster) -> None:
    """Somebody has made the ConfigMap immutable: the report is reported all the same, and why nobody finds it later."""
    frozen = {"metadata": {"name": kept_history.NAME, "namespace": NAMESPACE}, "immutable": True}
    reports = cluster.reports("PoolPaused")

    def then_frozen(job: JSON) -> None:
        reports(job)
        cluster.server.client.send(calls.apply(MAPS, frozen, field_manager="administrator"))

    ran = cluster.typed(*RUN, "--image", IMAGE, step=then_frozen)
    assert "PoolPaused" in ran.out
    assert re.search(r"the report is not kept in the cluster: .*immutable", ran.out + ran.err)
    assert cluster.left() == []


@pytest.mark.parametrize(("words", "stays"), [((), False), (("--keep",), True)], ids=["removed", "kept"])
def test_a_job_that_comes_to_nothing(cluster: Cluster, words: tuple[str, ...], stays: bool) -> None:
    """Is an error with the way out; what it was made of goes, unless somebody wants to look at it."""
    ran = cluster.typed(*RUN, "--image", IMAGE, *words, step=cluster.deletes)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(
        "error: the preflight in the cluster failed: its Job was deleted by somebody else; start it again\n"
    )
    assert bool(cluster.left()) is stays


def test_nothing_was_made_in_the_cluster_yet(cluster: Cluster) -> None:
    """It is said how one is."""
    ran = cluster.typed("show", "--in-cluster")
    assert (ran.code, ran.err) == (
        1,
        "error: no preflight was made in the cluster; make one: runup preflight run --in-cluster\n",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("--to", "5.1.1"), in_cluster.NO_IMAGE, id="no image"),
        pytest.param(
            ("--to", "5.1.1", "--image", "oci:here"),
            "--image oci:here: the cluster cannot pull it; give an image in a registry",
            id="an image of this machine",
        ),
        pytest.param(
            ("--to-image", "oci:here", "--image", IMAGE),
            "--to-image oci:here: the cluster cannot pull it; give an image in a registry",
            id="a release of this machine",
        ),
        *(
            pytest.param(
                ("--image", IMAGE, flag, "{folder}"),
                f"--in-cluster checks the cluster from within; {flag} is about this machine: leave it out",
                id=flag,
            )
            for flag in ("--dump", "--release-dir", "--target-catalog")
        ),
    ],
)
def test_what_is_refused_before_anything_is_made(
    cluster: Cluster, words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    """With the flag."""
    ran = cluster.typed("run", "--in-cluster", *(word.format(folder=tmp_path) for word in words))
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: {says}\n")
    assert cluster.left() == []


@pytest.mark.parametrize(
    ("reads", "runs_itself"),
    [pytest.param(None, False, id="without our checks"), pytest.param(to_file(()), True, id="with our checks")],
)
def test_whose_image_checks_a_release(cluster: Cluster, tmp_path: Path, reads: bytes | None, runs_itself: bool) -> None:
    """Uses the release's image by digest if it declares its rights, otherwise the named image, and reports which."""
    made = release(tmp_path / "made", "5.1.1", **({} if reads is None else {FILE: reads}))
    images: list[str] = []

    def step(job: JSON) -> None:
        found = cluster.server.client.send(calls.get_raw(JOB, job["name"], NAMESPACE))
        images.extend(each["image"] for each in found["spec"]["template"]["spec"]["containers"])
        cluster.reports()(job)

    with odd_registry(Layout.open(made.layout)) as odd:
        words = () if runs_itself else ("--image", IMAGE)
        ran = cluster.typed("run", "--in-cluster", "--to-image", f"{odd.host}/a:5.1.1", *words, step=step)
        pinned = f"{odd.host}/a@{made.digest}"
    assert "checks the update to 5.1.1" in ran.err
    assert images == [pinned if runs_itself else IMAGE]
    seen = f"{pinned} has no checks of runup's ({FILE} is not in it): those of runup's own image are made"
    assert (seen in ran.out + ran.err) is not runs_itself


def test_what_a_release_reads_cannot_be_read(cluster: Cluster, tmp_path: Path) -> None:
    """Then its checks do not run with the rights of nobody knows what: nothing is made."""
    made = release(tmp_path / "made", "5.1.1", **{FILE: b"{}"})
    with odd_registry(Layout.open(made.layout)) as odd:
        image = f"{odd.host}/a:5.1.1"
        ran = cluster.typed("run", "--in-cluster", "--to-image", image)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --to-image {image}: {FILE} is not as expected: ")
    assert cluster.left() == []


@pytest.mark.parametrize(
    ("words", "target"),
    [
        pytest.param((), "1.{next}.0", id="the next minor version"),
        pytest.param(("--to", "1.{after_next}"), "1.{after_next}.0", id="a version of Kubernetes"),
        pytest.param(("--to", "5.1.1"), "5.1.1", id="a release"),
    ],
)
def test_a_cluster_of_kubernetes_alone(cluster: Cluster, words: tuple[str, ...], target: str) -> None:
    """It goes to the next minor version after its server's, if none is named; that of a release is as it was typed."""
    cluster.server.remove_cluster_version()
    minor = int(json.loads(cluster.server.client.send(calls.get_path("/version")))["minor"])
    names = {"next": minor + 1, "after_next": minor + 2}
    typed = [word.format(**names) for word in words]
    ran = cluster.typed("run", "--in-cluster", "--image", IMAGE, *typed, step=cluster.deletes)
    assert f"checks the update to {target.format(**names)}\n" in ran.err
