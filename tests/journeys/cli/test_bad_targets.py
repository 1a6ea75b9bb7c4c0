"""A target that misbehaves ends in one condition and exit code 1; no update starts, the last good result stays."""

from __future__ import annotations

import pytest
from bench.releases_world import events
from tests.journeys.conftest import Sandbox

from kubekit.api.conditions import find

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("misbehaving"), pytest.mark.timeout(180)]

MEND = "choose another target, or clear the request"
REASONS = {
    "has no preflight command": ("5.1.1", "TargetUnsupported", "choose a newer target or update without"),
    "crashes": ("5.1.2", "TargetCrashed", "see the log of Deployment cluster-version-operator-preflight"),
    "is killed for memory": (
        "5.1.4",
        "OOMKilled",
        "raise memoryLimit in ConfigMap cluster-version-operator-preflight-config",
    ),
    "writes truncated JSON": ("5.1.5", "ReportInvalid", MEND),
    "writes 2 MiB": ("5.1.6", "ReportTooLarge", MEND),
    "writes a risk with a bad name": ("5.1.7", "InvalidRiskName", MEND),
    "writes an unknown format": ("5.1.9", "UnknownFormat", MEND),
    "is not signed": ("5.1.11", "ImageVerificationFailed", "name a signed release"),
    "puts a symlink in the report's place": ("5.1.12", "ReportInvalid", MEND),
    "writes 501 risks": ("5.1.13", "TooManyRisks", MEND),
    "is no release that anybody knows": ("5.9.9", "TargetNotFound", "or name the release by image and digest"),
    "is older": ("4.22.0", "TargetIsDowngrade", "choose a newer target"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_target_that(name: str, misbehaving: Sandbox) -> None:
    """The condition's reason and way out are what the verdict says, and nothing is updated."""
    version, reason, way_out = REASONS[name]
    done = misbehaving.run("upgrade", "--preflight", f"--to={version}", "--wait")
    assert done.code == 1, done.out + done.err
    assert done.verdict.startswith(f"Verdict: the preflight could not run. {reason}: "), done.out + done.err
    assert way_out in done.verdict
    cluster = misbehaving.cluster_version()
    failed = find(cluster.status.conditions, "PreflightFailed")
    assert failed is not None
    assert (failed.status, failed.reason) == ("True", reason)
    assert way_out in failed.message
    assert cluster.status.desired.version == "5.0.0"
    assert len(cluster.status.history) == 1


def test_a_target_that_writes(misbehaving: Sandbox) -> None:
    """The server refuses it for the account that the target has; its words and the audit log say so."""
    done = misbehaving.run("upgrade", "--preflight", "--to=5.1.14", "--wait")
    assert done.code == 1, done.out + done.err
    account = "system:serviceaccount:openshift-cluster-version-operator:cluster-version-operator-preflight"
    refusal = (
        f'refused: clusterversions.config.openshift.io "version" is forbidden: User "{account}" cannot patch resource '
        '"clusterversions" in API group "config.openshift.io" at the cluster scope'
    )
    assert refusal in done.out
    log = events(misbehaving.data / "audit.log", 0)
    tried = [event for event in log if event.get("userAgent") == "misbehaving-release"]
    assert {(event["verb"], event["responseStatus"]["code"]) for event in tried} == {("patch", 403)}
    assert {event["user"]["username"] for event in tried} == {account}
    cluster = misbehaving.cluster_version()
    assert cluster.status.desired.version == "5.0.0"
    assert (misbehaving.desired_update() or {})["mode"] == "Preflight"


ALLOWED = {"leaves out a url": "5.1.8", "adds a field that nobody knows": "5.1.10"}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_report_that(name: str, misbehaving: Sandbox) -> None:
    """These are used: a url is filled in, an unknown field is ignored."""
    done = misbehaving.run("upgrade", "--preflight", f"--to={ALLOWED[name]}", "--wait")
    assert done.code == 2, done.out + done.err
    assert "SomeRisk" in done.out


def test_a_target_that_hangs(misbehaving: Sandbox) -> None:
    """Waiting ends in time, the preflight continues, and how to end it is reported."""
    done = misbehaving.run("upgrade", "--preflight", "--to=5.1.3", "--wait", "--timeout=4s")
    assert done.code == 1
    assert "error: timed out waiting for the preflight, which continues: " in done.err
    assert (misbehaving.desired_update() or {})["mode"] == "Preflight"
    assert misbehaving.run("upgrade", "--clear-preflight").out == "Ended the preflight of 5.1.3\n"


def test_the_last_good_result_stays(misbehaving: Sandbox) -> None:
    """Another target's failure takes nothing away from what was found before."""
    good = misbehaving.run("upgrade", "--preflight", "--to=5.1.10", "--wait")
    assert good.code == 2, good.out + good.err
    bad = misbehaving.run("upgrade", "--preflight", "--to=5.1.1", "--wait")
    assert bad.code == 1
    kept = [u for u in misbehaving.cluster_version().status.conditional_updates if u.release.version == "5.1.10"]
    assert [risk.name for update in kept for risk in update.risks] == ["SomeRisk"]


def test_a_well_behaved_target_after_them(misbehaving: Sandbox) -> None:
    """After all that, an ordinary preflight works."""
    done = misbehaving.run("upgrade", "--preflight", "--to=5.1.0", "--wait")
    assert (done.code, done.verdict) == (0, "Verdict: nothing blocks an update to 5.1.0.")
