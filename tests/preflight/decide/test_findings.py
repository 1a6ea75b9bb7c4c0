"""A preflight's findings out of ClusterVersion and the stored reports: what each side decides, and in which order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW, cluster_version

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Accepted, accepted, accepted_names
from runup.api.config_v1 import AcceptRisk, ClusterVersion, ConditionalUpdate, ConditionalUpdateRisk, Release, Update
from runup.preflight.decide.findings import (
    Findings,
    Risk,
    count_risks,
    current_findings,
    entry_of,
    findings_of_target,
    known_risk_names,
    not_recommended,
    report_of,
    requested_preflight,
    risk_of_report,
    with_counted_risks,
    worst_first,
)
from runup.preflight.decide.preflight_state import Phase
from runup.preflight.decide.published_risks import line_for
from runup.preflight.decide.stored_reports import History
from runup.report import documentation
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk

IMAGE = "example.com/release@sha256:" + "5" * 64
MOVED = "mirror.example.com/moved@sha256:" + "5" * 64
OTHER = "example.com/release@sha256:" + "6" * 64


def status_condition(type_: str, status: ConditionStatus, reason: str = "R", message: str = "") -> Condition:
    """A condition."""
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=NOW)


def risk(name: str, *conditions: Condition, message: str = "m") -> ConditionalUpdateRisk:
    """A risk of an update."""
    return ConditionalUpdateRisk(name=name, message=message, url=f"https://example.com/{name}", conditions=conditions)


def update(version: str, *risks: ConditionalUpdateRisk, image: str = IMAGE, **more: Any) -> ConditionalUpdate:
    """An update with risks."""
    return ConditionalUpdate(Release(version=version, image=image), risks=risks, **more)


def report(target: str = "5.2.0", *risks: ReportedRisk, **changes: Any) -> Report:
    """A report that was complete."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "preflight_id": f"of-{target}",
        "source_version": "5.0.0",
        "target_version": target,
        "target_image": IMAGE,
        "execution_status": "completed",
        "observed_time": NOW,
        "checks": (ReportedCheck(name="Nodes", result="Clear"),),
        "risks": risks,
    }
    return Report(**fields | changes)


ASKED = Update(mode="Preflight", version="5.2.0")
DONE = (
    status_condition("PreflightCompleted", "True"),
    status_condition("PreflightFailed", "False"),
    status_condition("PreflightRunning", "True"),
)
TRUE, UNKNOWN, FALSE = (status_condition("Applies", status) for status in ("True", "Unknown", "False"))  # type: ignore[arg-type]


def shown_risk(name: str = "A", applies: ConditionStatus = "True", **changes: Any) -> Risk:
    """A risk as it is shown."""
    return Risk(**{"name": name, "applies": applies, "accepted": False, "message": "m", "url": "", **changes})


@pytest.mark.parametrize(
    ("conditions", "risks", "code"),
    [
        pytest.param((), (), 1, id="no result"),
        pytest.param((status_condition("PreflightCompleted", "False"),), (), 1, id="not complete"),
        pytest.param((status_condition("PreflightCompleted", "Unknown"),), (), 1, id="nobody knows whether it is"),
        pytest.param(DONE, (), 0, id="nothing"),
        pytest.param(DONE, (shown_risk(applies="False"),), 0, id="what does not apply"),
        pytest.param(
            DONE, (shown_risk(accepted=True), shown_risk("B", "Unknown", accepted=True)), 0, id="all accepted"
        ),
        pytest.param(DONE, (shown_risk(applies="Unknown"),), 3, id="unknown"),
        pytest.param(DONE, (shown_risk(applies="Unknown"), shown_risk("B")), 2, id="one applies and one is unknown"),
        pytest.param(
            DONE, (shown_risk(applies="Unknown"), shown_risk("B", accepted=True)), 3, id="what applies is accepted"
        ),
    ],
)
def test_exit_codes(conditions: tuple[Condition, ...], risks: tuple[Risk, ...], code: int) -> None:
    """0 nothing in the way, 2 risks apply, 3 something unknown, 1 no result; of one that has ended nobody knows."""
    shown = Findings(source="5.0.0", target="5.2.0", conditions=conditions, risks=risks)
    assert shown.exit_code == code
    assert replace(shown, phase=Phase.ENDED).exit_code == 3


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, False),
        ({"image": IMAGE}, False),
        ({"conditions": DONE}, True),
        ({"risks": (shown_risk(),)}, True),
        ({"checks": (ReportedCheck(name="Nodes", result="Clear"),)}, True),
        ({"observed": NOW}, True),
    ],
    ids=["nothing", "its image", "how it goes", "risks", "checks", "when it was looked"],
)
def test_whether_anything_is_known(changes: dict[str, Any], known: bool) -> None:
    """Each is enough alone; a name is nothing."""
    assert Findings(source="5.0.0", target="5.2.0", **changes).known is known


def test_the_conditions_of_a_preflight() -> None:
    """It has failed where that holds; how far it is, is reported whatever its status."""
    shown = Findings(
        source="5.0.0", target="5.2.0", conditions=(status_condition("PreflightFailed", "True", "OOMKilled"), DONE[2])
    )
    assert shown.failed is shown.conditions[0]
    assert shown.running is shown.conditions[1]
    quiet = Findings(source="5.0.0", target="5.2.0", conditions=(status_condition("PreflightFailed", "Unknown"),))
    assert (quiet.failed, quiet.running, quiet.completed) == (None, None, False)
    assert Findings(source="5.0.0", target="5.2.0").failed is None


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (None, None),
        (Update(version="5.2.0"), None),
        (ASKED, ("5.2.0", "")),
        (Update(mode="Preflight", image=IMAGE), ("", IMAGE)),
    ],
    ids=["nothing is asked for", "an update is", "a preflight by version", "a preflight by image"],
)
def test_which_preflight_is_asked_for(asked: Update | None, target: tuple[str, str] | None) -> None:
    """None without the mode."""
    cluster = cluster_version(desired_update=asked, conditional_updates=(update("5.2.0", risk("A", TRUE)),))
    assert requested_preflight(cluster) == target
    now = current_findings(cluster, History())
    assert (now and (now.target, now.image)) == (("5.2.0", IMAGE) if target else None)


@pytest.mark.parametrize(
    ("version", "image", "place"),
    [
        ("5.2.0", "", 1),
        ("5.2.0", OTHER, 1),
        ("", MOVED, 0),
        ("", OTHER, 2),
        ("5.9.0", IMAGE, None),
        ("", "", None),
        ("", "example.com/release:tag", None),
    ],
    ids=["version", "version, whatever its image", "digest, wherever it is", "another digest", "none such", "-", "tag"],
)
def test_which_update_is_meant(version: str, image: str, place: int | None) -> None:
    """By version; by digest where only the image is known."""
    updates = (update("5.1.0"), update("5.2.0"), update("5.3.0", image=OTHER))
    entry = entry_of(cluster_version(conditional_updates=updates), version, image)
    assert entry is (None if place is None else updates[place])


@pytest.mark.parametrize(
    ("version", "image", "source", "id_"),
    [
        ("5.2.0", "", "5.0.0", "a"),
        ("5.2.0", OTHER, "5.0.0", "a"),
        ("", MOVED, "5.0.0", "a"),
        ("", OTHER, "5.0.0", "d"),
        ("5.2.0", "", "4.9.0", "c"),
        ("5.9.0", IMAGE, "5.0.0", None),
        ("5.2.0", "", "5.0.1", None),
    ],
)
def test_which_report_is_meant(version: str, image: str, source: str, id_: str | None) -> None:
    """The newest of this hop: the same target, from the same source."""
    reports = (
        report(preflight_id="a"),
        report(preflight_id="b"),
        report(preflight_id="c", source_version="4.9.0"),
        report("5.3.0", preflight_id="d", target_image=OTHER),
    )
    meant = report_of(History(reports=reports), source, version, image)
    assert (meant and meant.preflight_id) == id_


SEEN = ReportedRisk(
    name="A",
    message="Seen by the target.",
    url="https://example.com/report",
    reason="Found",
    remediation="Mend it.",
    severity="critical",
    resources=(ReportedResource(kind="Node", name="a"),),
)


def test_a_risk_has_its_verdict_from_the_cluster_and_its_details_from_the_report() -> None:
    """Which of the two says what, field by field."""
    shown = risk("A", status_condition("Applies", "Unknown", "PreflightValidation"), message="Preflight=5.2.0: Told.")
    cluster = cluster_version(desired_update=ASKED, conditional_updates=(update("5.2.0", shown),))
    (alone,) = findings_of_target(cluster, History(), "5.2.0").risks
    assert alone == Risk(
        name="A",
        applies="Unknown",
        accepted=False,
        message="Told.",
        url="https://example.com/A",
        reason="PreflightValidation",
        from_preflight=True,
        since=NOW,
    )
    whole = findings_of_target(cluster, History(reports=(report("5.2.0", SEEN),)), "5.2.0")
    assert whole.risks == (
        replace(alone, message="Seen by the target.", fix="Mend it.", severity="critical", resources=SEEN.resources),
    )
    assert (whole.checks, whole.observed, whole.ended) == (report().checks, NOW, False)
    assert (whole.source, whole.target, whole.image) == ("5.0.0", "5.2.0", IMAGE)
    unnamed = findings_of_target(cluster, History(), "", IMAGE)
    assert (unnamed.target, unnamed.image) == ("5.2.0", IMAGE)
    nowhere = findings_of_target(cluster, History(), "", OTHER)
    assert (nowhere.target, nowhere.image, nowhere.risks) == (OTHER, OTHER, ())


@pytest.mark.parametrize(
    ("asked", "status", "ended"),
    [
        (None, "completed", True),
        (None, "running", True),
        (ASKED, "completed", False),
        (Update(mode="Preflight", version="5.1.0"), "completed", True),
        (Update(version="5.2.0"), "completed", True),
    ],
    ids=["nobody asks", "it was never complete", "it is asked for", "another is", "its update is"],
)
def test_whether_a_preflight_has_ended(asked: Update | None, status: Any, ended: bool) -> None:
    """It left a report, complete or not, and nobody looks any more."""
    cluster = cluster_version(desired_update=asked, conditional_updates=(update("5.2.0"),))
    stored = History(reports=(report(execution_status=status),))
    assert findings_of_target(cluster, stored, "5.2.0").ended is ended
    assert findings_of_target(cluster, History(), "5.2.0").ended is False


def test_only_a_preflight_s_own_conditions_are_about_it() -> None:
    """Of all that a cluster says."""
    shown = cluster_version(desired_update=ASKED, conditions=(status_condition("Failing", "True"), *DONE))
    assert findings_of_target(shown, History(), "5.2.0").conditions == DONE
    assert findings_of_target(shown, History(), "5.1.0").conditions == ()


@pytest.mark.parametrize(
    ("conditions", "reported", "applies"),
    [
        (DONE, "True", "True"),
        (DONE, "Unknown", "Unknown"),
        (DONE, None, "Unknown"),
        ((DONE[0], status_condition("PreflightFailed", "True")), "True", "Unknown"),
        ((status_condition("PreflightCompleted", "False"), DONE[1]), "True", "Unknown"),
    ],
    ids=["the report says so", "the report does not know", "no word", "it failed since", "it is not complete"],
)
def test_a_risk_without_a_verdict(conditions: tuple[Condition, ...], reported: Any, applies: str) -> None:
    """As of the older API: by the report, as long as its preflight holds."""
    cluster = cluster_version(
        desired_update=ASKED, conditions=conditions, conditional_updates=(update("5.2.0", risk("A")),)
    )
    seen = (replace(SEEN, applies=reported),) if reported else ()
    (shown,) = findings_of_target(cluster, History(reports=(report("5.2.0", *seen),)), "5.2.0").risks
    assert (shown.applies, shown.reason, shown.since) == (applies, "", None)


def test_a_verdict_may_stand_beside_the_update() -> None:
    """In the list of all risks; the first that has one counts, and a name alone is no risk."""
    beside = (risk("A", TRUE), risk("B", FALSE))
    cluster = cluster_version(
        conditional_updates=(update("5.2.0", risk("A"), risk("B", UNKNOWN), risk_names=("A", "B", "Gone")),),
        conditional_update_risks=beside,
    )
    shown = {each.name: each.applies for each in findings_of_target(cluster, History(), "5.2.0").risks}
    assert shown == {"A": "True", "B": "Unknown"}
    assert known_risk_names(cluster) == ["A", "B", "Gone"]
    more = cluster_version(conditional_updates=(update("5.1.0", risk("Z")),), conditional_update_risks=(risk("Y"),))
    assert known_risk_names(more) == ["Y", "Z"]
    assert known_risk_names(cluster_version()) == []


def accepting(*names: str) -> ClusterVersion:
    """A cluster that accepts these, and has a condition of noon."""
    wish = Update(accept_risks=tuple(AcceptRisk(name=name) for name in names))
    return cluster_version(desired_update=wish, conditions=(status_condition("Failing", "False"),))


def kept(name: str, until: Any = None) -> dict[str, str]:
    """A record of an acceptance."""
    return {name: acceptance.encode_record(acceptance.Acceptance(name=name, reason=f"why {name}", until=until))}


def why(records: Accepted) -> dict[str, str]:
    """The reasons alone."""
    return {name: record.reason for name, record in records.items()}


def test_what_is_accepted_and_why() -> None:
    """Names of the list alone count; a record can end one, or say why."""
    assert accepted_names(cluster_version()) == frozenset()
    assert accepted_names(accepting("A", "B")) == {"A", "B"}
    assert why(accepted(accepting("B", "A"))) == {"A": "", "B": ""}
    assert accepted(accepting(), kept("A"), NOW) == {}
    assert why(accepted(accepting("A", "B"), kept("A"), NOW)) == {"A": "why A", "B": ""}
    assert accepted(accepting("A"), kept("A", NOW), NOW) == {}
    assert why(accepted(accepting("A"), kept("A", NOW + timedelta(seconds=1)), NOW)) == {"A": "why A"}


def test_of_files_the_newest_time_that_the_cluster_tells_of_is_now() -> None:
    """Without any nothing has ended."""
    wish = Update(accept_risks=(AcceptRisk(name="A"),))
    times = (NOW, NOW + timedelta(hours=1), None)
    conditions = tuple(
        replace(status_condition(f"C{place}", "True"), last_transition_time=at) for place, at in enumerate(times)
    )
    cluster = cluster_version(desired_update=wish, conditions=conditions)
    assert accepted(cluster, kept("A", NOW + timedelta(hours=1))) == {}
    assert why(accepted(cluster, kept("A", NOW + timedelta(hours=1, seconds=1)))) == {"A": "why A"}
    timeless = cluster_version(desired_update=wish, conditions=conditions[2:])
    assert why(accepted(timeless, kept("A", NOW))) == {"A": "why A"}


def test_an_accepted_risk_says_why() -> None:
    """What was looked up counts instead of the list; the list where nobody looked."""
    cluster = replace(accepting("A"))
    status = replace(cluster.status, conditional_updates=(update("5.2.0", risk("A", TRUE), risk("B", TRUE)),))
    cluster = replace(cluster, status=status)

    def risk_rows(**how: Any) -> list[tuple[str, bool, str]]:
        risks = findings_of_target(cluster, History(), "5.2.0", **how).risks
        return [(each.name, each.accepted, each.because) for each in risks]

    assert risk_rows() == [("B", False, ""), ("A", True, "")]
    assert risk_rows(accepted={}) == [("A", False, ""), ("B", False, "")]
    assert risk_rows(accepted={"B": acceptance.Acceptance(name="B", reason="why")}) == [
        ("A", False, ""),
        ("B", True, "why"),
    ]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("plain", "plain"),
        ("Preflight=5.1.0: a\nPreflight=5.2.0: b\nPreflight=5.2.0: c", "b\nc"),
        ("Preflight=5.1.0: a", "Preflight=5.1.0: a"),
        ("", ""),
    ],
)
def test_the_lines_of_a_target(message: str, line: str) -> None:
    """All of them, without the target's name; where it does not exist, all that is said."""
    assert line_for(message, "5.2.0") == line


def test_the_order_of_risks() -> None:
    """What is in the way, of that what applies, the gravest on top, by name; an unknown severity is a warning."""
    risks = [
        shown_risk("taken", severity="critical", accepted=True),
        shown_risk("over", "False", severity="critical"),
        shown_risk("dim", "Unknown", severity="critical"),
        shown_risk("d-told", severity="info"),
        shown_risk("c-unsaid"),
        shown_risk("b-odd", severity="odd"),
        shown_risk("a-warned", severity="warning"),
        shown_risk("z-grave", severity="critical"),
    ]
    names = ["z-grave", "a-warned", "b-odd", "c-unsaid", "d-told", "dim", "over", "taken"]
    assert [each.name for each in worst_first(risks)] == names


def test_counts_leave_out_what_does_not_apply() -> None:
    """Accepted or not."""
    risks = [
        shown_risk(),
        shown_risk("B", "Unknown"),
        shown_risk("C", "Unknown"),
        shown_risk("D", "False", accepted=True),
    ]
    risks += [shown_risk("E", accepted=True), shown_risk("F", "Unknown", accepted=True), shown_risk("G", accepted=True)]
    assert count_risks(risks) == (1, 2, 3)


def test_a_risk_of_a_report_alone() -> None:
    """It came from a preflight; without an address it has the page of its name."""
    shown = risk_of_report(replace(SEEN, applies="Unknown"), report())
    assert shown == Risk(
        name="A",
        applies="Unknown",
        accepted=False,
        message="Seen by the target.",
        url="https://example.com/report",
        reason="Found",
        fix="Mend it.",
        severity="critical",
        from_preflight=True,
        since=NOW,
        resources=SEEN.resources,
    )
    taken = risk_of_report(SEEN, report(), acceptance.Acceptance(name="A", reason="because"))
    assert (taken.applies, taken.accepted, taken.because) == ("True", True, "because")
    bare = risk_of_report(SEEN, report(), acceptance.Acceptance(name="A"))
    assert (bare.accepted, bare.because) == (True, "")
    assert risk_of_report(replace(SEEN, url=""), report()).url == documentation.page("A")


def test_reports_are_completed_by_what_counted_when_they_were_stored() -> None:
    """By name; what the target found itself is reported once."""
    others = tuple(replace(SEEN, name=name, message="Of elsewhere.") for name in ("Z", "A", "B"))
    stored = report("5.2.0", SEEN, others=others)
    (whole,) = with_counted_risks(History(reports=(stored,))).reports
    assert [(each.name, each.message) for each in whole.risks] == [
        ("A", "Seen by the target."),
        ("B", "Of elsewhere."),
        ("Z", "Of elsewhere."),
    ]


def test_updates_that_are_not_recommended() -> None:
    """What says nothing, or says that it is, is none of them."""
    updates = tuple(
        update(f"5.{place}.0", conditions=(status_condition("Recommended", status),) if status else ())
        for place, status in enumerate(("False", "True", "Unknown", None))  # type: ignore[arg-type]
    )
    shown = not_recommended(updates)
    assert [(each.release.version, condition.status) for each, condition in shown] == [
        ("5.0.0", "False"),
        ("5.2.0", "Unknown"),
    ]
