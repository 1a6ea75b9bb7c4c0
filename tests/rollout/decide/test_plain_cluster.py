"""A cluster without a ClusterVersion as its runs see it, and which reports and versions count for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api.meta_v1 import ObjectMeta
from runup.api.update_policy_v1alpha1 import PolicyTarget, UpdateRun, UpdateRunSpec, UpdateRunStatus
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report
from runup.rollout.decide.candidate import choose
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Health
from runup.rollout.decide.plain_cluster import (
    PlainCluster,
    Request,
    cluster_version_of,
    is_at,
    is_version,
    release_of,
    reports_for,
)
from runup.rollout.decide.run_steps import Situation, decide

NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
TARGET = "v1.35.1+k3s1"
OLD = PlainCluster(server="v1.34.2+k3s1", kubelets=("v1.34.2+k3s1",))
MIXED = replace(OLD, server=TARGET)
ONE_NODE = replace(OLD, kubelets=("v1.34.2+k3s1", TARGET))
NEW = PlainCluster(server=TARGET, kubelets=(TARGET,))
OURS = Request(is_ours=True)
OPEN = Verdict((Gate(name="window", state="Open", reason="Always", message=""),))
CLOSED = Verdict((Gate(name="window", state="Closed", reason="OutsideWindow", message=""),))


def steps(run: UpdateRun, *seen: tuple[PlainCluster, Request, Verdict]) -> UpdateRun:
    """The run after these passes."""
    for plain, request, verdict in seen:
        found = cluster_version_of(plain, TARGET, request, begun=run.status.started is not None)
        situation = Situation(
            cluster=found, verdict=verdict, health=Health(healthy_since=NOW), owns_request=request.is_ours
        )
        run = replace(run, status=decide(run, situation, NOW).status)
    return run


def run_of(actuator: Any) -> UpdateRun:
    """A run to the target."""
    spec = UpdateRunSpec(target=release_of(TARGET), actuator=actuator)
    return UpdateRun(metadata=ObjectMeta(name="r", uid="u"), spec=spec, status=UpdateRunStatus())


@pytest.mark.parametrize(
    ("actuator", "seen", "step", "reason"),
    [
        pytest.param("None", [(OLD, Request(), CLOSED)], "Waiting", "OutsideWindow", id="nothing has changed"),
        pytest.param("None", [(OLD, Request(), OPEN)] * 3, "Waiting", "AllOpen", id="a tool has not begun"),
        pytest.param(
            "None",
            [(OLD, Request(), OPEN), (MIXED, Request(), CLOSED)],
            "ControlPlane",
            "Latched",
            id="the API server has the version: the gate stays open",
        ),
        pytest.param(
            "Extension",
            [(OLD, Request(), OPEN), (ONE_NODE, Request(), CLOSED)],
            "ControlPlane",
            "Latched",
            id="one kubelet has the version",
        ),
        pytest.param("None", [(OLD, Request(), OPEN), (NEW, Request(), OPEN)], "Soaking", "Latched", id="all have it"),
        pytest.param("Field", [(OLD, Request(), OPEN)], "Committing", "AllOpen", id="an intent comes first"),
        pytest.param(
            "Field", [(OLD, Request(), OPEN), (OLD, OURS, CLOSED)], "ControlPlane", "Latched", id="the field is written"
        ),
        pytest.param(
            "Field",
            [(OLD, Request(), OPEN), (OLD, OURS, OPEN), (OLD, Request(other="no version"), OPEN)],
            "Superseded",
            "Latched",
            id="34: the field was removed before anything changed",
        ),
        pytest.param(
            "Field",
            [(OLD, Request(), OPEN), (OLD, OURS, OPEN), (ONE_NODE, Request(other="no version"), OPEN)],
            "ControlPlane",
            "Latched",
            id="the field was removed after a node began",
        ),
    ],
)
def test_a_run_follows_the_versions(actuator: Any, seen: Any, step: str, reason: str) -> None:
    """A run is latched from the first sign of the new version, and nothing closes its gate afterwards."""
    status = steps(run_of(actuator), *seen).status
    [gates] = [each for each in status.conditions if each.type == "GatesOpen"]
    assert (status.step, gates.reason) == (step, reason)


@pytest.mark.parametrize(
    ("running", "target", "expected"),
    [
        ("v1.35.1+k3s1", "v1.35.1+k3s1", True),
        ("v1.35.1+k3s1", "1.35.1", True),
        ("v1.35.1-eks-a737599", "v1.35.1", True),
        ("v1.35.1+k3s1", "v1.35.1+k3s2", False),
        ("v1.35.1", "v1.35.10", False),
        ("", "v1.35.1", False),
    ],
)
def test_compares_versions(running: str, target: str, expected: bool) -> None:
    """A target without a build is any build of that version; two builds are two versions."""
    assert is_at(running, target) is expected


@pytest.mark.parametrize("text", ["1.36", "latest", "v1.36.0; reboot", "v5.1.0", "", f"v1.36.0+{'a' * 60}"])
def test_refuses_what_is_no_version_of_kubernetes(text: str) -> None:
    """A hub's run cannot write any text into a field."""
    assert not is_version(text)
    assert is_version(TARGET)


@pytest.mark.parametrize(
    ("target", "plain", "reason"),
    [
        (PolicyTarget(follow="Exact", version=TARGET), OLD, ""),
        (PolicyTarget(follow="Exact", version=TARGET), MIXED, ""),
        (PolicyTarget(follow="Exact", version=TARGET), NEW, "UpToDate"),
        (PolicyTarget(follow="Exact", version="v1.33.0"), OLD, "NoPath"),
        (PolicyTarget(follow="Exact", version="new"), OLD, "NoPath"),
        (PolicyTarget(follow="Exact", version=TARGET, block_versions=(TARGET,)), OLD, "Blocked"),
        (PolicyTarget(follow="Minor"), OLD, "NoPath"),
    ],
)
def test_chooses_the_named_version(target: PolicyTarget, plain: PlainCluster, reason: str) -> None:
    """Without an update service only a version that the policy names is chosen."""
    choice = choose(target, cluster_version_of(plain), NOW, plain=plain)
    assert (choice.reason, choice.candidate is None) == (reason, bool(reason))
    assert choice.candidate in (None, release_of(TARGET))


@pytest.mark.parametrize(
    ("source", "target", "kind", "counts"),
    [
        ("1.34.2", "1.35.0", "Kubernetes", True),
        ("1.34.2", "1.35.1", "Kubernetes", True),
        ("1.34.2", "1.36.0", "Kubernetes", False),
        ("1.34.1", "1.35.0", "Kubernetes", False),
        ("1.34.2", "1.35.3", "Kubernetes", False),
        ("1.34.2", "1.35.0", "OpenShift", False),
        ("1.34.2", "", "Kubernetes", False),
    ],
)
def test_reports_count_for_their_minor_version(source: str, target: str, kind: Any, counts: bool) -> None:
    """A report about 1.35 counts for every 1.35.z, from the running version, and then names the run's release."""
    report = Report(
        format=FORMAT, source_version=source, target_version=target, execution_status="completed", cluster_kind=kind
    )
    found = reports_for(History(reports=(report,)), OLD, TARGET).reports
    assert [each.target_image for each in found] == ([release_of(TARGET).image] if counts else [])
    assert not reports_for(History(reports=(replace(report, target_version="1.34.0"),)), OLD, "v1.34.5").reports
