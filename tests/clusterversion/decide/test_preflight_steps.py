"""Tests how a preflight handles leftovers, repeated image checks, and pods that do not end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_preflight import started, terminated
from tests.clusterversion.decide.world import OWN, World, image, risk
from tests.factories import NOW

from kubekit.api.core_v1 import Pod, PodSpec
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.error_types import Terminal
from runup.api.config_v1 import Update
from runup.clusterversion.decide import preflight_workload, preflights, targets, view, work
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.work import ReadImages, ReadRelease, ReadRights, VerifyRelease, Work
from runup.preflight.decide import preflight_deployment, stored_reports
from runup.preflight.decide.deployment_steps import Trust
from runup.report.report import FORMAT, Report, ReportedContainer

IMAGE = "registry.example/release@sha256:" + "5" * 64


def given_up() -> tuple[World, Any]:
    """A preflight that has failed for good, and the Deployment that it had."""
    world = started()
    deployment = world.observed.deployment
    assert deployment is not None
    world.pod(state=terminated("OOMKilled", 137), restart_count=2).settle()
    assert world.observed.deployment is None
    world.change(pods=())
    return world, deployment


OOM = ("True", "OOMKilled")


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_a_deployment_that_is_there_after_the_end_is_removed_again(whose: str) -> None:
    """If the Deployment is recreated, or the first removal was lost, the failure stays and nothing begins."""
    world, deployment = given_up()
    annotations = deployment.metadata.annotations
    if whose == "another's":
        annotations = annotations | {preflight_deployment.ID_ANNOTATION: "preflight-1-0000000000"}
    world.change(deployment=with_fields(deployment, metadata=with_fields(deployment.metadata, annotations=annotations)))
    world.log.clear()
    world.step()
    assert world.log.count("delete Deployment") == 1
    assert world.condition("PreflightFailed") == OOM
    assert world.condition("PreflightRunning") == ("False", "OOMKilled")
    assert "apply Deployment" not in world.settle().log


def test_an_attempt_that_is_over_waits_for_nothing() -> None:
    """While its Deployment or its pods still end it is reported as what it is."""
    world, deployment = given_up()
    metadata = with_fields(deployment.metadata, deletion_timestamp=world.now)
    world.change(deployment=with_fields(deployment, metadata=metadata)).settle()
    assert world.condition("PreflightFailed") == OOM
    world.change(deployment=None).pod().settle()
    assert world.condition("PreflightFailed") == OOM
    assert world.condition("PreflightRunning") == ("False", "OOMKilled")


def ending_pod(name: str, *, node: str = "", going_for_s: float | None = None) -> Pod:
    """A pod of a preflight that has been asked to end so long ago."""
    gone = None if going_for_s is None else NOW - timedelta(seconds=going_for_s)
    return Pod(metadata=ObjectMeta(name=name, deletion_timestamp=gone), spec=PodSpec(node_name=node))


FORCE = (
    "if the node is lost, `kubectl -n openshift-cluster-version-operator delete pod "
    "-l app=cluster-version-operator-preflight --force`"
)
ENDING: dict[str, tuple[tuple[Pod, ...], str]] = {
    "none": ((), ""),
    "one": ((ending_pod("a"),), ": a"),
    "three, by name": ((ending_pod("c"), ending_pod("a", node="n"), ending_pod("b")), ": a on node n, b, c"),
    "more than are named": (tuple(ending_pod(name) for name in "dcab"), ": a, b, c"),
    "for less than a minute": ((ending_pod("a", going_for_s=59),), ": a"),
    "for a minute": ((ending_pod("a", going_for_s=60),), f": a since 2026-01-14T09:59:00Z; {FORCE}"),
    "one of them for a minute": (
        (ending_pod("a", going_for_s=1), ending_pod("b", going_for_s=60), ending_pod("c")),
        f": a, b, c since 2026-01-14T09:59:00Z; {FORCE}",
    ),
}


@pytest.mark.parametrize(("pods", "text"), ENDING.values(), ids=ENDING.keys())
def test_pods_that_are_waited_for(pods: tuple[Pod, ...], text: str) -> None:
    """Which they are; after a minute since when, and what helps where their node is lost."""
    observed = World.new().change(pods=pods).observed
    assert preflight_workload.ending_text(view.look(observed, NOW)) == text


def check(**known: Any) -> ReleaseCheck:
    """Returns what is known about an image."""
    return ReleaseCheck(**known)


SINCE = {seconds: NOW - timedelta(seconds=seconds) for seconds in (-1, 0, 59, 60)}
VERIFY = (VerifyRelease(IMAGE),)
CHECKED: dict[str, tuple[ReleaseCheck | None, tuple[Any, ...]]] = {
    "nobody looked": (None, VERIFY),
    "it is being verified": (check(running=True), ()),
    "it is being verified again": (check(running=True, trust=Trust.FAILED, at=SINCE[60]), ()),
    "it is good": (check(trust=Trust.VERIFIED, at=SINCE[60]), ()),
    "it was not good just now": (check(trust=Trust.FAILED, at=SINCE[0]), ()),
    "it was not good for less than a minute": (check(trust=Trust.FAILED, at=SINCE[59]), ()),
    "it was not good a minute ago": (check(trust=Trust.FAILED, at=SINCE[60]), VERIFY),
    "it was not good later than now": (check(trust=Trust.FAILED, at=SINCE[-1]), VERIFY),
    "nobody knows since when": (check(trust=Trust.FAILED), VERIFY),
}


@pytest.mark.parametrize(("known", "due"), CHECKED.values(), ids=CHECKED.keys())
def test_when_a_signature_is_verified(known: ReleaseCheck | None, due: tuple[Any, ...]) -> None:
    """At first, and a minute after it went wrong; a clock that was set back keeps nobody waiting."""
    assert work.check_work(IMAGE, known, NOW) == due


READ = (ReadRelease(IMAGE),)
WAS_READ: dict[str, tuple[ReleaseCheck | None, tuple[Any, ...]]] = {
    "nobody looked": (None, READ),
    "it is being read": (check(reading=True), ()),
    "it is known": (check(version="5.2.0", read_at=SINCE[60]), ()),
    "it could not be read just now": (check(read_at=SINCE[0]), ()),
    "it could not be read for less than a minute": (check(read_at=SINCE[59]), ()),
    "it could not be read a minute ago": (check(read_at=SINCE[60]), READ),
    "it could not be read later than now": (check(read_at=SINCE[-1]), READ),
}


@pytest.mark.parametrize(("known", "due"), WAS_READ.values(), ids=WAS_READ.keys())
def test_when_a_version_is_read(known: ReleaseCheck | None, due: tuple[Any, ...]) -> None:
    """At first, and a minute after it went wrong."""
    assert work.read_work(IMAGE, known, NOW) == due


def test_without_an_image_nothing_is_read() -> None:
    """A version has no metadata of its own."""
    assert work.read_work("", None, NOW) == ()


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param(targets.UNREADABLE, {"work": VERIFY, "requeue_after_s": 60.0}, id="it cannot be read"),
        pytest.param(targets.UNTRUSTED, {"work": VERIFY, "requeue_after_s": 60.0}, id="it is not trusted"),
        pytest.param("TagNotDigest", {}, id="only another request helps"),
    ],
)
def test_which_refusal_another_look_may_lift(reason: str, expected: dict[str, Any]) -> None:
    """Registries come back, and signatures are added; a tag stays a tag."""
    seen = view.look(World.new().observed, NOW)
    assert work.retry_unreadable(seen, Update(image=IMAGE), Terminal("no", reason=reason)) == expected


def test_a_request_that_does_not_say_yet_what_it_means_leaves_what_runs_alone() -> None:
    """An image whose version nobody has read is no other target yet."""
    world = started().report(risk("Kept")).settle()
    before = world.attempt_id
    world.log.clear()
    world.ask(Update(mode="Preflight", image=image("5.7.0"))).step()
    assert world.condition("PreflightRunning") == ("True", "VerifyingImage")
    assert "delete Deployment" not in world.log
    assert world.attempt_id == before
    assert world.plans[-1].requeue_after_s == 60.0


def test_the_last_words_of_a_preflight_that_is_cleared_are_a_complete_report() -> None:
    """A preflight that was still running when it was cleared has no result."""
    world = started().report(risk("Early"), execution_status="running").settle()
    world.ask(None).settle()
    assert stored_reports.read(world.observed.history).reports == ()
    world = started().report(risk("Late"))
    world.ask(None).settle()
    assert [found.name for found in stored_reports.read(world.observed.history).reports[0].risks] == ["Late"]


def test_what_was_found_in_part_takes_no_results_place() -> None:
    """An attempt that ends without a whole report is kept where nothing better is known, and only there."""
    world = started().report(risk("Part"), execution_status="running").settle().pass_time(600).settle()
    (kept,) = stored_reports.read(world.observed.history).reports
    assert (kept.execution_status, [found.name for found in kept.risks]) == ("failed", ["Part"])
    world = started().report(risk("Whole")).settle().ask(None).settle().ask_preflight().settle()
    world.report(risk("Part"), execution_status="running").settle().pass_time(600).settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")
    (kept,) = stored_reports.read(world.observed.history).reports
    assert (kept.execution_status, [found.name for found in kept.risks]) == ("completed", ["Whole"])


@pytest.mark.parametrize(("silent_s", "frees"), [(599.0, False), (600.0, True)])
def test_how_long_a_silent_target_holds_an_update_up(silent_s: float, frees: bool) -> None:
    """As long as its time limit, to the second."""
    world = World.new().settle().ask_preflight("5.0.3").settle().report(risk("Found")).settle()
    report = world.observed.report
    assert report is not None
    world.change(report=with_fields(report, unchanged_s=silent_s)).ask(Update(version="5.0.3")).settle()
    assert (world.version.status.desired.version == "5.0.3") is frees


def planned(world: World, kind: type[ReadImages | ReadRights]) -> list[type[Work]]:
    """The works of this kind that a pass plans, for the target's image."""
    plan = preflights.decide(view.look(world.observed, world.now))
    return [type(work) for work in plan.work if isinstance(work, kind) and work.image == world.container_image]


IMAGES: dict[str, tuple[dict[str, Any], list[type[Work]]]] = {
    "nobody asked": ({}, [ReadImages]),
    "they are being read": ({"listing": True}, []),
    "they are known": ({"images": {"x": "y"}}, []),
    "they are known for another second": ({"images": {"x": "y"}, "images_until": NOW + timedelta(seconds=1)}, []),
    "they were known until now": ({"images": {"x": "y"}, "images_until": NOW}, [ReadImages]),
    "they are being read again": ({"images": {"x": "y"}, "images_until": NOW, "listing": True}, []),
}


@pytest.mark.parametrize(("known", "work"), IMAGES.values(), ids=IMAGES.keys())
def test_when_a_releases_images_are_read(known: dict[str, Any], work: list[str]) -> None:
    """When a check wants one, once at a time, and again when what was found has had its time."""
    world = started().report(containers=(ReportedContainer(check="a", image="network"),))
    check = world.observed.releases[world.container_image]
    world.change(releases={world.container_image: replace(check, **known)})
    assert planned(world, ReadImages) == work
    world.report()
    assert planned(world, ReadImages) == []


RIGHTS: dict[str, tuple[dict[str, Any] | None, list[type[Work]]]] = {
    "nothing is known of the image": (None, [ReadRights]),
    "nobody asked": ({"rights": None}, [ReadRights]),
    "they are being read": ({"rights": None, "asking": True}, []),
    "they are known": ({"rights": ()}, []),
    "they are known for another second": ({"rights": (), "rights_until": NOW + timedelta(seconds=1)}, []),
    "they were known until now": ({"rights": (), "rights_until": NOW}, [ReadRights]),
}


@pytest.mark.parametrize(("known", "work"), RIGHTS.values(), ids=RIGHTS.keys())
def test_when_it_is_read_what_a_targets_checks_read(known: dict[str, Any] | None, work: list[str]) -> None:
    """Before its own account is given anything, here since a setting changed under a preflight that runs."""
    world = started(service_account="dedicated")
    check = world.observed.releases[world.container_image]
    world.change(releases={} if known is None else {world.container_image: replace(check, **known)})
    assert planned(world, ReadRights) == []
    quantities = with_fields(world.observed.facts.place.quantities, memory_limit="1Gi")
    place = with_fields(world.observed.facts.place, quantities=quantities)
    world.change(facts=replace(world.observed.facts, place=place))
    assert planned(world, ReadRights) == work


def of_target(version: str, *, source: str = "5.0.0", pinned: str = "") -> Report:
    """A stored report of that target."""
    return Report(
        format=FORMAT,
        preflight_id=f"preflight-1-{version}",
        source_version=source,
        target_version=version,
        target_image=pinned,
        execution_status="completed",
        observed_time=NOW,
    )


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        pytest.param(of_target("5.2.0", pinned="i@sha256:2"), ["5.2.0"], id="from the version that runs"),
        pytest.param(of_target("5.2.0", source="4.9.0", pinned="i@sha256:2"), ["5.2.0"], id="from an older one"),
        pytest.param(of_target("5.2.0", source="5.0.1", pinned="i@sha256:2"), ["5.2.0"], id="from a newer one"),
        pytest.param(of_target("5.0.0", source="4.9.0", pinned="i@sha256:2"), [], id="of the version that runs"),
        pytest.param(of_target("5.0.0", pinned="i@sha256:2"), ["5.0.0"], id="of another image of it"),
        pytest.param(of_target("5.0.0", pinned=OWN), [], id="of the image that runs"),
        pytest.param(of_target("4.9.0", source="4.8.0", pinned="i@sha256:2"), [], id="of what is behind"),
        pytest.param(of_target("5.2.0"), [], id="of an image that was not shown"),
    ],
)
def test_which_results_are_kept(report: Report, shown: list[str]) -> None:
    """Those of targets that are still ahead."""
    seen = replace(view.look(World.new().observed, NOW), history=stored_reports.History(reports=(report,)))
    assert [found.release.version for found in preflights.decide(seen).checked] == shown


@pytest.mark.parametrize("other", [("5.0.0", "i@sha256:1"), ("5.1.0", "")], ids=["of what runs", "of no image"])
def test_a_result_that_is_not_kept_hides_no_other(other: tuple[str, str]) -> None:
    """The one that follows it says as much as if it stood alone."""
    reports = (of_target(other[0], source="4.9.0", pinned=other[1]), of_target("5.2.0", pinned="i@sha256:2"))
    seen = replace(view.look(World.new().observed, NOW), history=stored_reports.History(reports=reports))
    assert [found.release.version for found in preflights.decide(seen).checked] == ["5.2.0"]
