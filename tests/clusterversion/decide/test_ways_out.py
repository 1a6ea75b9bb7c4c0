"""Every way in which a preflight fails names a way out, in the condition that an administrator reads first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.clusterversion.decide.test_preflight import started, terminated
from tests.clusterversion.decide.world import World
from tests.factories import feature_gate

from kubekit.api.core_v1 import ContainerState, ContainerStateWaiting
from runup.api.config_v1 import Update
from runup.report import report


def waiting(reason: str) -> dict[str, Any]:
    """A container that waits for that reason."""
    return {"state": ContainerState(waiting=ContainerStateWaiting(reason=reason, message="words of the node"))}


CRASHED = {**waiting("CrashLoopBackOff"), "last_state": terminated(message="Traceback"), "restart_count": 3}
UNKNOWN_COMMAND = 'error: unknown command "preflight" for "cluster-version-operator"'
AGAIN = "it is tried again: "

FAILED = [
    pytest.param(
        lambda w: w.pod(state=terminated(message=UNKNOWN_COMMAND)),
        "TargetUnsupported",
        "choose a newer target or update without",
        id="no preflight command",
    ),
    pytest.param(
        lambda w: w.pod(state=terminated("OOMKilled", 137), restart_count=2),
        "OOMKilled",
        "raise memoryLimit in ConfigMap cluster-version-operator-preflight-config and ask again",
        id="killed for memory",
    ),
    pytest.param(
        lambda w: w.pod(**CRASHED),
        "TargetCrashed",
        "it is started again: see the log of Deployment cluster-version-operator-preflight, or choose another target",
        id="crashes",
    ),
    pytest.param(
        lambda w: w.pod(**waiting("ImagePullBackOff")),
        "ImagePullFailed",
        f"{AGAIN}make its registry or a mirror reachable for the nodes, or correct the pull secret",
        id="image cannot be pulled",
    ),
    pytest.param(
        lambda w: w.pod(**waiting("CreateContainerError")),
        "ContainerNotStarted",
        f"{AGAIN}see the events of Deployment cluster-version-operator-preflight",
        id="container cannot be started",
    ),
    pytest.param(
        lambda w: w.report(execution_status="failed", message="No check could run."),
        "TargetFailed",
        "; see the log of Deployment cluster-version-operator-preflight, or choose another target",
        id="the target says so itself",
    ),
    pytest.param(
        lambda w: w.bad_report("TooManyRisks", f"the report has 501 risks; an update can carry {report.MAX_RISKS}"),
        "TooManyRisks",
        "release 5.2.0 has to fix that: choose another target, or clear the request",
        id="a report that cannot be used",
    ),
    pytest.param(
        lambda w: w.pass_time(600),
        "DeadlineExceeded",
        "and nobody says why; ask again, or raise timeout in ConfigMap cluster-version-operator-preflight-config",
        id="hangs",
    ),
    pytest.param(
        lambda w: w.pod(**CRASHED).pass_time(600),
        "DeadlineExceeded",
        "Traceback; ask again, or raise timeout in ConfigMap cluster-version-operator-preflight-config",
        id="crashes until the time is up",
    ),
]


@pytest.mark.parametrize(("happen", "reason", "way_out"), FAILED)
def test_a_preflight_that_failed(happen: Any, reason: str, way_out: str) -> None:
    """What happened, then the way out, and it stays when the operator looks again."""
    world = happen(started()).settle()
    assert world.condition("PreflightFailed") == ("True", reason)
    assert world.message("PreflightFailed").startswith("Preflight of 5.2.0 from 5.0.0")
    assert world.message("PreflightFailed").endswith(f"{way_out}.")
    before = world.message("PreflightFailed")
    assert world.pass_time(1).settle().message("PreflightFailed") == before
    assert world.version.status.desired.version == "5.0.0"


def test_what_was_found_before_is_kept_and_said() -> None:
    """After the way out, so that nobody takes the old result for the new one."""
    world = started().report().settle().bad_report("ReportInvalid", "the report is not a JSON object").settle()
    said = world.message("PreflightFailed")
    assert "choose another target, or clear the request. " in said
    assert said.endswith("is kept.")


REFUSED = [
    pytest.param(Update(mode="Frobnicate", version="5.2.0"), "use 'Preflight', or clear the request", id="a mode"),
    pytest.param(
        Update(mode="Preflight"), "set version or image together with mode, or clear the request", id="no target"
    ),
    pytest.param(
        Update(mode="Preflight", version="5.7.7"),
        "another channel, or name the release by image and digest",
        id="a version that nobody knows",
    ),
    pytest.param(Update(mode="Preflight", version="five"), "such as 5.2.0", id="no version"),
    pytest.param(Update(mode="Preflight", version="9.0.0"), "check a nearer release first", id="far away"),
    pytest.param(Update(mode="Preflight", version="4.22.0"), "choose a newer target", id="an older one"),
    pytest.param(Update(mode="Preflight", version="5.0.0"), "choose a newer target", id="the running one"),
    pytest.param(Update(mode="Preflight", image="quay.io/ocp:5.2.0"), "use name@sha256:...", id="a tag"),
]


@pytest.mark.parametrize(("desired", "way_out"), REFUSED)
def test_a_request_that_is_refused(desired: Update, way_out: str) -> None:
    """Nothing is started, and the condition says what to ask for instead."""
    world = World.new().settle().ask(desired).settle()
    assert way_out in world.message("PreflightFailed")
    assert world.observed.deployment is None
    assert world.version.status.desired.version == "5.0.0"


def test_an_image_that_is_not_trusted() -> None:
    """Nothing of it is run; three ways out."""
    world = World.new()
    world.trusted = False
    world.settle().ask_preflight("5.0.3").settle()
    said = world.message("PreflightFailed")
    assert "name a signed release, add the store that holds its signature, or force the request" in said
    assert world.observed.deployment is None


def test_a_closed_gate() -> None:
    """It is named, and both ways out."""
    gates = feature_gate(enabled=("ClusterUpdateAcceptRisks",))
    world = World.new().change(feature_gate=gates).settle().ask_preflight("5.0.3").settle()
    said = "feature gate ClusterUpdatePreflight is not enabled for version 5.0.0. Enable it, or clear the request"
    assert said in world.message("PreflightFailed")
