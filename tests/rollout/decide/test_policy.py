"""Which runs a policy creates and keeps. Numbers are those of the cases."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.observed_cluster import IMAGE, NOW, OTHER_IMAGE

from kubekit.api.meta_v1 import ObjectMeta
from runup.api.update_policy_v1alpha1 import (
    FINALIZER,
    CalendarWindow,
    Candidate,
    OfferedRelease,
    PolicyPools,
    UpdateCalendar,
    UpdateCalendarSpec,
    UpdatePolicy,
    UpdatePolicySpec,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.rollout.decide.candidate import Choice
from runup.rollout.decide.policy import (
    ACKNOWLEDGED,
    POLICY_LABEL,
    is_of_hub,
    needs_finalizer,
    new_run,
    policy_status,
    surplus_runs,
)

CHOICE = Choice(candidate=Candidate(version="5.1.0", image=IMAGE))


def policy(**spec: Any) -> UpdatePolicy:
    """A policy."""
    return UpdatePolicy(metadata=ObjectMeta(name="cluster"), spec=UpdatePolicySpec(**spec))


def run_of(name: str = "r", step: Any = "Done", image: str = OTHER_IMAGE, **metadata: Any) -> UpdateRun:
    """A run of the policy."""
    fields: dict[str, Any] = {"name": name, "labels": {POLICY_LABEL: "cluster"}}
    return UpdateRun(
        metadata=ObjectMeta(**fields | metadata),
        spec=UpdateRunSpec(target=Candidate(version="5.0.9", image=image)),
        status=UpdateRunStatus(step=step),
    )


@pytest.mark.parametrize(
    ("spec", "runs", "creates"),
    [
        pytest.param({}, (), True, id="1: nothing is in the way"),
        pytest.param({"paused": True}, (), False, id="31: paused"),
        pytest.param({"paused_until": NOW.replace(hour=23)}, (), False, id="31: paused until later"),
        pytest.param({"paused_until": NOW}, (), True, id="31: the pause is over"),
        pytest.param({"remote": "Only"}, (), False, id="45: only a hub creates runs"),
        pytest.param({"remote": "Deny"}, (), True, id="45: only the policy creates runs"),
        pytest.param({}, (run_of(step="Waiting"),), False, id="45: another run is active"),
        pytest.param({}, (run_of(step="Failed"),), False, id="33: a run has failed"),
        pytest.param({}, (run_of(step="Failed", annotations={ACKNOWLEDGED: "true"}),), True, id="33: acknowledged"),
        pytest.param({}, (run_of(step="Aborted", image=IMAGE),), False, id="32: somebody has aborted this release"),
        pytest.param({}, (run_of(step="Superseded", image=IMAGE),), True, id="29: offered again"),
    ],
)
def test_new_runs(spec: dict[str, Any], runs: tuple[UpdateRun, ...], creates: bool) -> None:
    """A policy creates one run at a time, none while it is paused, and none after a failure."""
    assert (new_run(policy(**spec), CHOICE, runs, NOW) is not None) is creates


def test_61_a_new_run_has_a_finalizer_and_the_policys_label() -> None:
    """The finalizer is part of the creation: a run without one could be removed while its update begins."""
    made = new_run(policy(), CHOICE, (), NOW)
    assert made is not None
    assert (made.metadata.finalizers, made.metadata.labels) == ((FINALIZER,), {POLICY_LABEL: "cluster"})


@pytest.mark.parametrize(
    ("run", "needed"),
    [
        pytest.param(run_of(step="Waiting"), True, id="a run of a hub gets one"),
        pytest.param(run_of(step="ControlPlane", finalizers=(FINALIZER,), deletion_timestamp=NOW), True, id="begun"),
        pytest.param(run_of(step="ControlPlane", deletion_timestamp=NOW), False, id="none is added to a deleted run"),
        pytest.param(run_of(step="Aborted", finalizers=(FINALIZER,), deletion_timestamp=NOW), False, id="it has ended"),
        pytest.param(run_of(step="Done", finalizers=(FINALIZER,)), False, id="a finished run can be deleted at once"),
    ],
)
def test_61_the_finalizer_of_a_run(run: UpdateRun, needed: bool) -> None:
    """A run is kept until the update that it has begun is over."""
    assert needs_finalizer(run) is needed


NIGHTS = UpdateCalendar(
    metadata=ObjectMeta(name="nights"),
    spec=UpdateCalendarSpec(time_zone="UTC", windows=(CalendarWindow(opens="0 22 * * *", for_="6h"),)),
)
LEAP_DAY = replace(NIGHTS, spec=replace(NIGHTS.spec, windows=(CalendarWindow(opens="0 3 29 2 *", for_="2h"),)))
BERLN = replace(NIGHTS, spec=replace(NIGHTS.spec, time_zone="Europe/Berln"))


@pytest.mark.parametrize(
    ("spec", "calendars", "changes", "condition"),
    [
        pytest.param({}, (), {}, ("Ready", "False", "NoCalendar"), id="16: no calendar"),
        pytest.param(
            {"calendars": ("nights",)}, (LEAP_DAY,), {}, ("Ready", "False", "NeverOpens"), id="16: 29 February only"
        ),
        pytest.param(
            {"calendars": ("nights",)}, (BERLN,), {}, ("Ready", "False", "UnknownTimeZone"), id="15: a zone's typo"
        ),
        pytest.param(
            {"calendars": ("days",)}, (NIGHTS,), {}, ("Ready", "False", "InvalidCalendar"), id="15: another name"
        ),
        pytest.param({"calendars": ("nights",)}, (NIGHTS,), {}, ("Ready", "True", "AsExpected"), id="16: a calendar"),
        pytest.param(
            {"calendars": ("nights",), "pools": PolicyPools(when="NextWindow")},
            (NIGHTS,),
            {"may_pause": "whether the controller may pause pools"},
            ("Ready", "Unknown", "RightsMissing"),
            id="11: rights that are not known",
        ),
        pytest.param(
            {},
            (),
            {"choice": Choice(reason="GraphNotAnswering", unknown=True)},
            ("Candidate", "Unknown", "GraphNotAnswering"),
            id="29: the update service does not answer",
        ),
        pytest.param(
            {}, (), {"choice": Choice(reason="UpToDate")}, ("Candidate", "False", "UpToDate"), id="nothing is offered"
        ),
        pytest.param({"paused": True}, (), {}, ("Paused", "True", "ByPolicy"), id="31: paused"),
        pytest.param(
            {"paused_until": NOW.replace(hour=23)}, (), {}, ("Paused", "True", "Until"), id="31: paused until later"
        ),
        pytest.param(
            {"paused_until": NOW.replace(hour=21)}, (), {}, ("Paused", "False", "Running"), id="31: the pause is over"
        ),
        pytest.param(
            {}, (), {"runs": (run_of(step="Failed"),)}, ("Paused", "True", "ByFailure"), id="33: a run has failed"
        ),
    ],
)
def test_the_conditions_of_a_policy(
    spec: dict[str, Any], calendars: tuple[UpdateCalendar, ...], changes: dict[str, Any], condition: tuple[str, ...]
) -> None:
    """Why nothing will start, and whether that is known."""
    fields: dict[str, Any] = {"choice": CHOICE, "runs": ()} | changes
    choice, runs = fields.pop("choice"), fields.pop("runs")
    status = policy_status(policy(**spec), choice, runs, NOW, calendars=calendars, **fields)
    assert condition in [(each.type, each.status, each.reason) for each in status.conditions]


def names(*runs: UpdateRun, offered: tuple[OfferedRelease, ...] = (), **spec: Any) -> list[str]:
    """The names of the runs to delete."""
    return [run.metadata.name for run in surplus_runs(policy(**spec), CHOICE, runs, offered=offered)]


def test_surplus_runs() -> None:
    """The oldest finished runs of the policy go; runs of others, active ones, and those to offered releases stay."""
    many = [run_of(str(number)) for number in range(12)]
    assert names(*many) == ["0", "1"]
    assert names(*many, keep_runs=11) == ["0"]
    assert names(*many[:10]) == []
    assert names(run_of("a", step="Waiting"), run_of("b", labels={}), *many[:1], keep_runs=1) == []
    aborted = run_of("a", step="Aborted", image=IMAGE)
    assert names(aborted, *many[:2], keep_runs=1) == ["0"]
    withdrawn = run_of("b", step="Aborted")
    shown = OfferedRelease(version="5.0.9", image=OTHER_IMAGE, first_seen=NOW)
    assert names(withdrawn, *many[:1], keep_runs=1, offered=(shown,)) == []
    assert (
        names(replace(withdrawn, metadata=replace(withdrawn.metadata, deletion_timestamp=NOW)), *many[:1], keep_runs=1)
        == []
    )


def test_whose_run() -> None:
    """A run with neither the policy's label nor a verified name is one of a hub."""
    assert is_of_hub(run_of(labels={}))
    assert not is_of_hub(run_of())
    person = run_of(labels={})
    assert not is_of_hub(replace(person, spec=replace(person.spec, requested_by="jane")))
