"""The phase of a preflight from ClusterVersion's conditions and reports, whatever `spec.desiredUpdate.mode` is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import cluster_version
from tests.preflight.decide.test_findings import ASKED, DONE, IMAGE, report, status_condition, update

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import Release, Update
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.findings import current_findings, findings_of_target
from runup.preflight.decide.preflight_state import Phase
from runup.preflight.decide.stored_reports import History
from runup.report.report import ReportedRisk

UPDATE = Update(version="5.2.0", image=IMAGE)
STARTING = (status_condition("PreflightRunning", "True", "TargetStarting"),)
CHECKING = (status_condition("PreflightRunning", "True", "ChecksRunning"),)
SILENT = (
    status_condition("PreflightRunning", "True", "ReportStale"),
    status_condition("PreflightCompleted", "False", "ReportStale"),
    status_condition("PreflightFailed", "True", "ReportStale"),
)
ATTEMPT = Attempt(id="preflight-1-0123456789", source_version="5.0.0", target_version="5.2.0", target_image=IMAGE)
RISK = ReportedRisk(name="A", message="m", severity="critical")
LAST = report("5.2.0", RISK)
OF_ATTEMPT = replace(LAST, preflight_id=ATTEMPT.id)


@pytest.mark.parametrize(
    ("asked", "conditions", "phase"),
    [
        pytest.param(None, (), None, id="nothing is requested"),
        pytest.param(UPDATE, (), None, id="an update without a preflight"),
        pytest.param(ASKED, (), Phase.REQUESTED, id="not taken up"),
        pytest.param(ASKED, STARTING, Phase.WAITING, id="before the first report"),
        pytest.param(ASKED, CHECKING, Phase.RUNNING, id="checks run"),
        pytest.param(ASKED, DONE, Phase.LIVE, id="complete"),
        pytest.param(UPDATE, DONE, Phase.WAITED_FOR, id="complete, and its update waits"),
        pytest.param(UPDATE, CHECKING, Phase.WAITED_FOR, id="checks run, and its update waits"),
        pytest.param(ASKED, SILENT, Phase.FAILED, id="silent"),
        pytest.param(UPDATE, SILENT, Phase.FAILED, id="silent, and its update waits"),
    ],
)
def test_the_phase_of_the_current_preflight(
    asked: Update | None, conditions: tuple[Condition, ...], phase: Phase | None
) -> None:
    """`show` without a version, `recommend` and `upgrade` list exactly these."""
    cluster = cluster_version(desired_update=asked, conditions=conditions, conditional_updates=(update("5.2.0"),))
    found = current_findings(cluster, History())
    assert (found.phase if found else None) is phase
    assert found is None or (found.conditions == conditions and not found.ended)


@pytest.mark.parametrize(
    ("attempt", "asked", "phase"),
    [
        pytest.param(None, ASKED, Phase.REQUESTED, id="nothing is known of an attempt"),
        pytest.param(ATTEMPT, ASKED, Phase.LIVE, id="the same target: accepted risks changed"),
        pytest.param(ATTEMPT, UPDATE, Phase.WAITED_FOR, id="the same target: the mode was removed"),
        pytest.param(replace(ATTEMPT, target_version="5.1.0"), ASKED, Phase.REQUESTED, id="another target"),
        pytest.param(replace(ATTEMPT, target_version="5.1.0"), UPDATE, None, id="an update to another target"),
    ],
)
def test_conditions_of_an_earlier_request(attempt: Attempt | None, asked: Update, phase: Phase | None) -> None:
    """Conditions of another target say nothing about a request that the operator has not seen."""
    cluster = cluster_version(desired_update=asked, conditions=DONE, observed_generation=1)
    cluster = replace(cluster, metadata=replace(cluster.metadata, generation=2))
    found = current_findings(cluster, History(attempt=attempt))
    assert (found.phase if found else None) is phase


@pytest.mark.parametrize(
    ("changes", "phase", "partial"),
    [
        ({}, Phase.ENDED, False),
        ({"source_version": "4.9.0"}, Phase.OUTDATED, False),
        ({"execution_status": "failed"}, Phase.ENDED, True),
    ],
    ids=["the report of this release", "of the release before", "a partial one"],
)
@pytest.mark.parametrize("offered", [(update("5.2.0"),), ()], ids=["still ahead", "the cluster has it"])
def test_a_preflight_that_is_over_shows_its_report(
    changes: dict[str, Any], phase: Phase, partial: bool, offered: Any
) -> None:
    """With the counts that it was stored with, whatever ClusterVersion lists now."""
    other = ReportedRisk(name="B", message="m", applies="Unknown")
    stored = replace(LAST, others=(other, ReportedRisk(name="C", message="m")), accepted=("C",), **changes)
    cluster = cluster_version(conditional_updates=offered)
    found = findings_of_target(cluster, History(reports=(stored,)), "5.2.0")
    assert (found.phase, found.partial, found.ended, found.exit_code) == (phase, partial, True, 3)
    assert [(risk.name, risk.applies, risk.accepted, risk.from_preflight) for risk in found.risks] == [
        ("A", "True", False, True),
        ("B", "Unknown", False, False),
        ("C", "True", True, False),
    ]
    assert found.passed is False
    there = cluster_version(desired=Release(version="5.2.0", image=IMAGE), conditional_updates=offered)
    assert findings_of_target(there, History(reports=(stored,)), "5.2.0").passed is True
    assert (found.observed, found.source) == (stored.observed_time, stored.source_version)


@pytest.mark.parametrize(
    ("desired", "pending"),
    [
        pytest.param(None, "", id="no request"),
        pytest.param(Update(version="5.1.0"), "5.1.0", id="an update that has not begun"),
        pytest.param(Update(image=f"q/r@sha256:{'7' * 64}"), f"q/r@sha256:{'7' * 64}", id="one by its image"),
        pytest.param(Update(image=IMAGE), "", id="the running release by its digest in another registry"),
        pytest.param(Update(version="5.0.0"), "", id="one that has begun"),
        pytest.param(Update(version="5.1.0", mode="Preflight"), "", id="a preflight"),
    ],
)
def test_which_request_a_new_preflight_would_replace(desired: Update | None, pending: str) -> None:
    """The verdict of an ended preflight names it next to the command that checks again."""
    cluster = cluster_version(desired_update=desired)
    assert findings_of_target(cluster, History(reports=(LAST,)), "5.2.0").pending_update == pending


OVER = tuple(replace(condition, status="False") if condition.type == "PreflightRunning" else condition
             for condition in SILENT)  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "conditions", "words", "names"),
    [
        pytest.param("refused", OVER, "was ended before its first report", [], id="its request was refused"),
        pytest.param(None, OVER, "could not run", [], id="no report"),
        pytest.param(LAST, OVER, "could not run", ["A"], id="the report of an earlier preflight"),
        pytest.param(OF_ATTEMPT, SILENT, "no longer confirms its result", [], id="its report, and it may heal"),
        pytest.param(
            replace(OF_ATTEMPT, execution_status="failed"), OVER, "failed before it was complete", ["A"], id="partial"
        ),
    ],
)
def test_what_a_failed_preflight_did(
    stored: Any, conditions: tuple[Condition, ...], words: str, names: list[str]
) -> None:
    """One that ran is not one that could not run; what it found stays."""
    cluster = cluster_version(desired_update=ASKED, conditions=conditions, conditional_updates=(update("5.2.0"),))
    refused = stored == "refused"
    attempt = replace(ATTEMPT, refused="FeatureGateDisabled") if refused else ATTEMPT
    history = History(attempt=attempt, reports=(stored,) if stored and not refused else ())
    found = findings_of_target(cluster, history, "5.2.0")
    assert (found.failure, [risk.name for risk in found.risks]) == (words, names)
