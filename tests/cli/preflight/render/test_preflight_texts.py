"""Tests the texts of a preflight: section, verdict, history, two reports side by side, one risk in full."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.preflight.render import samples
from tests.cli.preflight.render.samples import WHEN

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import InputError
from runup.advice.decide.acceptance import Growth
from runup.advice.decide.preflight_reasons import OUTDATED, REPAIRED
from runup.api.config_v1 import AcceptRisk, ClusterVersion, ClusterVersionSpec, Update
from runup.cli.preflight.render import history_tables as rendered
from runup.cli.preflight.render.explain import Explanation, explain_from_reports, explanation, explanation_data
from runup.cli.preflight.render.finding_texts import (
    AGAIN,
    CORRECT,
    HEALING,
    as_data,
    brief_table,
    counted_risks,
    ended_preflight_lines,
    result,
    risk_data,
    risk_table,
    section,
    severity_counts_text,
    summary,
    verdict,
    verdict_on,
)
from runup.cli.render.screen import Screen
from runup.cli.render.table import draw_table, plain_table
from runup.clusterversion.decide.upgrade_request import end_preflight
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_state import Phase
from runup.preflight.decide.stored_reports import History
from runup.report.causes import group_by_cause
from runup.report.report import FORMAT, Report, ReportedResource, ReportedRisk


def found(*risks: Risk, **changes: Any) -> Findings:
    """A preflight that is complete."""
    return Findings(source="5.0.0", target="5.2.0", risks=risks, **{"conditions": samples.conditions(), **changes})


def failed(reason: str, message: str = "It ended", running: str = "False") -> Findings:
    """One that could not run."""
    return found(conditions=samples.conditions(running, "False", "True", reason=reason, message=message))


ABOUT = "Preflight of 5.2.0 from 5.0.0"
A = samples.risk("A", "It is so.")
UNSURE = replace(A, name="U", applies="Unknown")
TAKEN = replace(A, name="T", accepted=True)
OVER = replace(A, name="O", applies="False")
STUCK = replace(A, name="S", acceptable=False)
REPAIRS = replace(A, name="R", reason=REPAIRED)
GREW = Growth(added=("Node b",), more=2, since=WHEN, accepted_for=1, at=WHEN - timedelta(days=1))
MINUTES = timedelta(minutes=5)
GUARDS = tuple(Condition(type=type_, status="True") for type_ in ("Failing", "Invalid"))


@pytest.mark.parametrize(
    ("risks", "said"),
    [
        ((), "no risks found"),
        ((OVER,), "no risks found"),
        ((A,), "1 risk applies"),
        ((A, A), "2 risks apply"),
        ((UNSURE,), "1 unknown"),
        ((TAKEN,), "1 accepted"),
        ((A, UNSURE, TAKEN, TAKEN), "1 risk applies, 1 unknown, 2 accepted"),
    ],
    ids=["none", "one that is over", "one", "two", "one is unknown", "one is accepted", "all sorts"],
)
def test_risks_are_counted(risks: tuple[Risk, ...], said: str) -> None:
    """Risks that do not apply are not counted; notes follow the risks that apply."""
    assert counted_risks(risks) == said
    aside = counted_risks(risks, " (x)")
    assert aside.replace(" (x)", "") == said
    assert (" (x)" in aside) is ("appl" in said)
    assert " (x), 1 could" in aside or "applies, 1 could" not in said


def test_severities_are_counted_in_their_order() -> None:
    """Of those in the way; none of them are no word."""
    risks = tuple(replace(A, severity=severity) for severity in ("info", "", "critical", "warning", "info"))
    shown = " (1 critical, 1 warning, 2 info, 1 of unknown severity)"
    assert severity_counts_text((*risks, TAKEN, replace(OVER, severity="critical"))) == shown
    assert severity_counts_text((TAKEN,)) == ""


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (failed("OOMKilled"), "could not run (OOMKilled): It ended"),
        (
            found(conditions=samples.conditions("True", "False", "False", message="4 of 7 checks done")),
            "4 of 7 checks done",
        ),
        (
            found(conditions=samples.conditions("True", "False", "False", message=f"{ABOUT}: waiting.")),
            "waiting.",
        ),
        (failed("OOMKilled", f"{ABOUT}: it ended."), "could not run (OOMKilled): it ended."),
        (found(conditions=()), "requested"),
        (found(A, TAKEN), "completed; 1 risk applies, 1 accepted"),
    ],
    ids=["failed", "running", "running, as the operator words it", "failed, too", "asked for", "completed"],
)
def test_the_section_begins_with_how_it_stands(one: Findings, said: str) -> None:
    """In half a line."""
    assert summary(one) == said
    text = "".join(part for _, part in section(one))
    assert text.startswith(f"\nPreflight of 5.2.0 from 5.0.0: {said}\n\n")
    assert text.endswith("End the preflight: runup upgrade --clear-preflight\n")


def test_the_section_has_the_causes_where_something_stands() -> None:
    """And then says how to read on; wide, it is the table."""
    text = "".join(part for _, part in section(found(A, OVER)))
    assert "\n\n1. warning: A: It is so.\n\nEvery check: runup preflight show -v. Details of one risk: " in text
    wide = "".join(part for _, part in section(found(A, OVER), wide=True))
    assert wide.splitlines()[3].split()[:5] == ["SEVERITY", "STATE", "RISK", "MESSAGE", "FIX"]
    clear = "".join(part for _, part in section(found(OVER)))
    assert "1. " not in clear
    assert "Details" not in clear


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (found(), "nothing blocks an update to 5.2.0."),
        (found(TAKEN), "nothing blocks an update to 5.2.0 (1 accepted)."),
        (failed("OOMKilled"), f"the preflight could not run. OOMKilled: It ended. {AGAIN}"),
        (failed("DeadlineExceeded", "Over!"), f"the preflight could not run. DeadlineExceeded: Over! {AGAIN}"),
        (failed("TargetUnsupported", "Is it?"), f"the preflight could not run. TargetUnsupported: Is it? {AGAIN}"),
        (failed("Pull", "No.", "True"), f"the preflight could not run. Pull: No. {HEALING}"),
        (failed("OOMKilled", "No.", "True"), f"the preflight could not run. OOMKilled: No. {AGAIN}"),
        (failed("Pull", "No.", "Unknown"), f"the preflight could not run. Pull: No. {CORRECT}"),
        (failed("OOMKilled", f"{ABOUT}: No."), f"the preflight could not run. OOMKilled: No. {AGAIN}"),
        (found(conditions=()), "the preflight of 5.2.0 has no result yet."),
        (found(A, UNSURE), "1 risk applies, 1 unknown. Fix them, or accept them by name: {accept} A,U"),
        (found(A, UNSURE, of_dump=True), "1 risk applies, 1 unknown. Fix them, or accept them by name, on "
         "the cluster: {accept} A"),
        (found(UNSURE, of_dump=True), "1 unknown."),
        (found(A, takes_names=False), "1 risk applies. Fix them, or continue: runup upgrade --to=5.2.0 "
         "--allow-not-recommended"),
        (found(A, takes_names=False, guards=GUARDS), "1 risk applies. `--to` also wants "
         "--allow-upgrade-with-warnings while Failing=True, Invalid=True. Fix them, or continue: runup upgrade "
         "--to=5.2.0 --allow-not-recommended --allow-upgrade-with-warnings"),
        (found(A, STUCK, takes_names=False), "the update is refused while S applies, accepted or not. Fix the others."),
        (found(STUCK, TAKEN), "the update is refused while S applies, accepted or not."),
        (found(A, STUCK), "the update is refused while S applies, accepted or not. Fix the others, or accept them by "
         "name: {accept} A"),
        (found(replace(STUCK, applies="Unknown")), "1 unknown. S is unknown, and acceptance does not lift "
         "it."),
        (found(TAKEN, guards=GUARDS), "1 accepted, but `--to` refuses while Failing=True, Invalid=True (`runup upgrade`"
         " says why). Wait for that to pass, or continue anyway: runup upgrade --to=5.2.0 "
         "--allow-upgrade-with-warnings"),
        (found(REPAIRS, guards=GUARDS), "1 describes what this may repair, but `--to` refuses while Failing=True, "
         "Invalid=True (`runup "
         "upgrade` says why). Continue anyway with: runup upgrade --to=5.2.0 --allow-upgrade-with-warnings"),
        (found(TAKEN, waived=True), "nothing blocks an update to 5.2.0 (1 accepted). Its signature was "
         "waived (force): nobody vouches for the image that checked."),
        (found(A, phase=Phase.ENDED, pending_update="5.1.0"), "this preflight has ended; what it found may have "
         "changed since. Check again in place of the request to update to 5.1.0: "
         "runup upgrade --mode=preflight --to=5.2.0 --wait"),
        (found(A, phase=Phase.OUTDATED, passed=True), "this preflight has ended, and the cluster has come to 5.2.0 or "
         "past it."),
        (found(A, phase=Phase.ENDED), "this preflight has ended; what it found may have changed since. Check again: "
         "runup upgrade --mode=preflight --to=5.2.0 --wait"),
    ],
)  # fmt: skip
def test_the_verdict(one: Findings, said: str) -> None:
    """Shows the verdict and the remedy."""
    assert verdict(one) == f"Verdict: {said.format(accept='runup upgrade accept')}"


def test_the_verdict_on_a_terminal_has_the_command_on_a_line_of_its_own() -> None:
    """To be copied; in a pipe all of it is one line."""
    shown = "Verdict: 1 risk applies. Fix them, or accept them by name:"
    assert verdict_on(found(A), Screen(80, 24)) == f"{shown}\n  runup upgrade accept A\n"
    assert verdict_on(found(A), Screen()) == f"{shown} runup upgrade accept A\n"


def test_ended_preflights() -> None:
    """Each with what it found then, and how old it is."""
    old = replace(A, reason=OUTDATED)
    one = found(old, replace(UNSURE, from_preflight=False), replace(old, name="B"), observed=WHEN - MINUTES)
    text = "".join(part for _, part in ended_preflight_lines((one,), now=WHEN))
    assert text == (
        "\nEnded preflights; what they found may have changed since and holds no update up:\n"
        "\n  TARGET   FOUND THEN   AGE         OBSERVED\n"
        "  5.2.0    A, B         5 min ago   2026-11-21T07:25:00Z\n"
        "\nCheck again: runup upgrade --mode=preflight --to=VERSION\n"
    )


def nodes(count: int) -> tuple[ReportedResource, ...]:
    """So many objects."""
    return tuple(ReportedResource(kind="Node", name=f"n{place}") for place in range(count))


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, " and 1 more"), (13, " and 3 more")])
def test_ten_objects_are_named_in_a_wide_table(count: int, more: str) -> None:
    """The others are counted; what else is known has a column each."""
    one = replace(A, resources=nodes(count), fix=" Mend it.\n", url="https://docs.example/A")
    head, row = plain_table(risk_table([one], wide=True)).splitlines()
    assert head.split() == ["SEVERITY", "STATE", "RISK", "MESSAGE", "FIX", "OBJECTS", "REASON", "SINCE", "URL"]
    named = ", ".join(f"Node n{place}" for place in range(10))
    assert f"   Mend it.   {named}{more}   PreflightValidation   2026-11-21T07:30:00Z   https://docs.example/A" in row


def test_remedies_stand_below_their_risk() -> None:
    """Tables are printed line by line without empty lines; a running preflight has no table."""
    one = replace(A, fix="\nDo this.\n\nThen that.\n")
    assert risk_table([one]).rows[0].notes == ("Fix: Do this.", "     Then that.")
    assert risk_table([one], remedies=False).rows[0].notes == ()
    assert (
        plain_table(brief_table(group_by_cause([one]), indent=1))
        == " STATE     RISK   MESSAGE\n applies   A      It is so.\n"
    )


def test_a_long_name_is_folded_on_a_narrow_terminal() -> None:
    """It stays next to its state: by it a risk is accepted."""
    head, row, rest, *_ = draw_table(risk_table([replace(A, name="N" * 40)]), Screen(45, 24)).splitlines()
    assert head.split() == ["SEVERITY", "STATE", "RISK"]
    assert (row, rest) == (f"warning   applies  {'N' * 26}", f"{' ' * 19}{'N' * 14}")


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (A, "applies"),
        (UNSURE, "unknown"),
        (OVER, "clear"),
        (TAKEN, "accepted"),
        (replace(UNSURE, accepted=True), "accepted"),
    ],
)
def test_a_state_is_a_word(one: Risk, word: str) -> None:
    """An accepted risk is shown as accepted, whatever its state."""
    assert one.state == word


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (ReportedResource(kind="Node", name="a"), "Node a"),
        (ReportedResource(kind="Pod", namespace="apps", name="db-0"), "Pod apps/db-0"),
        (ReportedResource(group="apps", kind="Deployment", namespace="n", name="d"), "Deployment.apps n/d"),
    ],
)
def test_an_object_is_named_as_people_do(item: ReportedResource, said: str) -> None:
    """Kind and group, namespace and name."""
    assert item.text == said


def test_what_ending_a_preflight_prints() -> None:
    """Shows the former state and what remains."""

    def cleared_text(update: Update | None) -> str:
        cluster = ClusterVersion(spec=ClusterVersionSpec(desired_update=update))
        return "".join(text for _, text in end_preflight(cluster, None, None).said)

    names = (AcceptRisk(name="A"), AcceptRisk(name="B"))
    assert cleared_text(None) == "info: No preflight is requested\n"
    assert cleared_text(Update(mode="Preflight", version="5.2.0", image="i")) == "Ended the preflight of 5.2.0\n"
    kept = "Ended the preflight of i; accepted risks are kept: A, B\n"
    assert cleared_text(Update(mode="Preflight", image="i", accept_risks=names)) == kept


def test_the_machine_form_of_a_risk_and_of_a_preflight() -> None:
    """Every field, null where nothing is known."""
    bare = Risk(name="A", applies="True", accepted=False, message="m", url="u")
    assert risk_data(bare) == {
        "name": "A",
        "applies": "True",
        "reason": "",
        "accepted": False,
        "message": "m",
        "url": "u",
        "remediation": "",
        "severity": None,
        "fromPreflight": False,
        "since": None,
        "resources": (),
        "acceptable": True,
        "state": "applies",
        "grown": None,
        "lacking": [],
    }
    grown = risk_data(replace(TAKEN, grown=GREW))["grown"]
    assert grown == {
        "objects": ["Node b"],
        "more": 2,
        "since": "2026-11-21T07:30:00Z",
        "acceptedFor": 1,
        "acceptedAt": "2026-11-20T07:30:00Z",
    }
    unknown = risk_data(replace(TAKEN, grown=Growth(added=("Node b",))))["grown"]
    assert (unknown["since"], unknown["acceptedAt"]) == (None, None)
    shown = risk_data(replace(A, fix="f", resources=nodes(1)))
    assert (shown["remediation"], shown["severity"], shown["since"]) == ("f", "warning", "2026-11-21T07:30:00Z")
    assert list(shown["resources"]) == [{"kind": "Node", "name": "n0"}]
    data = as_data(found(A, observed=WHEN, image="i"))
    assert {name: data[name] for name in ("source", "target", "image", "result", "exitCode", "observedTime")} == {
        "source": "5.0.0",
        "target": "5.2.0",
        "image": "i",
        "result": "RisksApply",
        "exitCode": 2,
        "observedTime": "2026-11-21T07:30:00Z",
    }
    assert [each["type"] for each in data["conditions"]] == [
        "PreflightRunning",
        "PreflightCompleted",
        "PreflightFailed",
    ]
    results = [(as_data(each)["result"], as_data(each)["exitCode"]) for each in (found(), found(UNSURE), failed("x"))]
    assert results == [("Clear", 0), ("Unknown", 3), ("CouldNotRun", 1)]
    assert as_data(found())["observedTime"] is None


def report(target: str, *risks: ReportedRisk, **changes: Any) -> Report:
    """A report that was complete."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "preflight_id": f"of-{target}",
        "source_version": "5.0.0",
        "target_version": target,
        "target_image": f"example.com/{target}",
        "execution_status": "completed",
        "observed_time": WHEN,
        "risks": risks,
    }
    return Report(**fields | changes)


SEEN = ReportedRisk(name="Seen", message="Is seen.", severity="info", remediation="Do it.", resources=nodes(1))


def test_the_history_counts_what_is_open_apart_from_what_is_accepted() -> None:
    """`wide` adds the image; what was accepted is in no way whether it applied or not."""
    risks = (SEEN, replace(SEEN, name="B", applies="Unknown"), replace(SEEN, name="C"), replace(SEEN, name="D"))
    stored = History(reports=(report("5.2.0", *risks, accepted=("D", "E")),))
    head, row = rendered.history(stored, wide=True).splitlines()
    assert head.split()[-2:] == ["PREFLIGHT", "IMAGE"]
    assert row.split() == [
        "5.2.0", "5.0.0", "completed", "2", "1", "1", "0", "2026-11-21T07:30:00Z", "of-5.2.0", "example.com/5.2.0",
    ]  # fmt: skip
    assert "IMAGE" not in rendered.history(stored)
    assert [each["targetVersion"] for each in rendered.history_data(stored)] == ["5.2.0"]


def test_which_report_is_compared() -> None:
    """Of a version or an ID, one from the running release before others, the newest of those."""
    stored = History(
        reports=(
            report("5.2.0", preflight_id="older-source", source_version="4.9.0"),
            report("5.2.0", preflight_id="newest"),
            report("5.2.0", preflight_id="second"),
        )
    )
    assert rendered.pick(stored, "5.2.0", "5.0.0").preflight_id == "newest"
    assert rendered.pick(stored, "5.2.0", "4.9.0").preflight_id == "older-source"
    assert rendered.pick(stored, "5.2.0", "4.8.0").preflight_id == "older-source"
    assert rendered.pick(stored, "second", "5.0.0").preflight_id == "second"
    with pytest.raises(InputError, match=r"^no report of 9; there are reports of 5.2.0, 5.2.0, 5.2.0$"):
        rendered.pick(stored, "9", "5.0.0")
    with pytest.raises(InputError, match=r"^no report of 9: no preflight has reported on this cluster$"):
        rendered.pick(History(), "9", "5.0.0")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(SEEN, replace(SEEN, resources=nodes(2)), "now also Node n1; Is", id="one more"),
        pytest.param(replace(SEEN, resources=nodes(2)), SEEN, "no longer Node n1; Is", id="one less"),
        pytest.param(
            replace(SEEN, resources_omitted=3),
            replace(SEEN, resources=nodes(2), resources_omitted=4),
            "now also 2 objects; Is",
            id="lists that are cut are compared by their numbers",
        ),
        pytest.param(
            replace(SEEN, resources_omitted=1), replace(SEEN, resources=nodes(2)), " Is", id="a list that was cut"
        ),
    ],
)
def test_which_objects_changed(before: ReportedRisk, after: ReportedRisk, said: str) -> None:
    """Of one cluster at two times."""
    compared = rendered.compare(report("5.1.0", before), report("5.1.0", after), ("then", "now"))
    assert str(rendered.comparison(compared)).splitlines()[-1].endswith(f"{said} seen.")


def test_two_reports_side_by_side() -> None:
    """Each part by weight, with what was said about it before where that is another word, and how old each side is."""
    both = replace(SEEN, name="Both", message="Both have it.")
    grave = replace(SEEN, name="Zz", severity="critical")
    before = report("5.1.0", replace(both, applies="Unknown"), SEEN, observed_time=WHEN - timedelta(hours=3))
    after = report(
        "5.2.0", replace(both, message="It is over."), SEEN, grave, replace(grave, name="Aa", severity="info")
    )
    compared = rendered.compare(before, after)
    text = rendered.comparison(compared, now=WHEN)
    assert text == (
        "From 5.1.0 to 5.2.0, as checked on 5.0.0: 2 new, 0 gone, 2 in both\n"
        "5.1.0 was checked 3 h ago\n"
        "5.2.0 was checked 0 s ago\n"
        "\nOnly for 5.2.0:\n"
        "  SEVERITY   STATE     RISK   MESSAGE\n"
        "  critical   applies   Zz     Is seen.\n"
        "  info       applies   Aa     Is seen.\n"
        "\nOnly for 5.1.0: none\n"
        "\nFor both:\n"
        "  SEVERITY   STATE     RISK   MESSAGE\n"
        "  info       applies   Both   was Unknown; It is over.\n"
        "  info       applies   Seen   Is seen.\n"
    )
    assert "was checked" not in rendered.comparison(compared)
    assert "OBJECTS" in rendered.comparison(compared, wide=True)
    data = rendered.comparison_data(compared)
    assert {name: data[name] for name in ("source", "before", "after")} == {
        "source": "5.0.0",
        "before": "5.1.0",
        "after": "5.2.0",
    }
    assert [each["name"] for each in data["new"]] == ["Aa", "Zz"]
    assert not data["gone"]
    assert [(each["name"], each["before"]["message"], each["after"]["message"]) for each in data["both"]] == [
        ("Both", "Both have it.", "It is over."),
        ("Seen", "Is seen.", "Is seen."),
    ]


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, "and 1 more"), (24, "and 4 more")])
def test_twenty_objects_of_a_risk_are_named(count: int, more: str) -> None:
    """In full, a line each; then they are counted."""
    shown = explanation(Explanation("A", (("5.2.0", replace(A, resources=nodes(count))),), ""))
    named = shown.partition("  Concerns: ")[2].partition("  Found by:")[0].split("\n")
    lines = [line.strip() for line in named if line.strip()]
    assert lines == [*(f"Node n{place}" for place in range(20)), *([more] if more else [])]


def test_a_risk_in_full() -> None:
    """Only what is known has a line."""
    bare = Risk(name="A", applies="Unknown", accepted=True, message="m", url="")
    assert explanation(Explanation("A", (("5.2.0", bare),), "")) == (
        "A\n\nFor 5.2.0:\n  Applies:  Unknown\n  Accepted: yes\n  Message:  m\n"
        "  Found by: the update service or the cluster\n"
    )
    stuck = explanation(Explanation("S", (("5.2.0", STUCK),), ""))
    assert "\n  Accepted: no: accepting it does not lift it\n" in stuck
    page = explanation(Explanation("A", (), "\n# A\n\nIt is so.\n\n"))
    assert page == "A\n\nNo update of this cluster has this risk now.\n\nAbout this risk:\n\n# A\n\nIt is so.\n"
    away = explanation(Explanation("A", (), "# A", not_asked="no cluster was asked: no network"))
    assert away == (
        "A\n\nWhether an update has this risk is not known, no cluster was asked: no network\n"
        "\nAbout this risk:\n\n# A\n"
    )
    data = explanation_data(Explanation("A", (("5.2.0", bare),), ""))
    assert (data["name"], data["page"], [each["target"] for each in data["targets"]]) == ("A", None, ["5.2.0"])
    assert "notAsked" not in data
    assert explanation_data(Explanation("A", (), "p", "why")) == {
        "name": "A",
        "targets": [],
        "page": "p",
        "notAsked": "why",
    }


def test_a_risk_out_of_reports_alone() -> None:
    """For each target that has it; a typo is reported by the names of reports and pages."""
    stored = History(reports=(report("5.2.0", SEEN), report("5.1.0", replace(SEEN, name="Other"))))
    shown = explain_from_reports(stored, "Seen", "")
    assert [(target, risk.name, risk.from_preflight) for target, risk in shown.by_target] == [("5.2.0", "Seen", True)]
    assert explain_from_reports(stored, "Nothing", "a page").by_target == ()
    assert not shown.not_asked
    assert explain_from_reports(History(), "Nothing", "a page").not_asked.startswith("no preflight's report is kept")
    with pytest.raises(InputError, match=r'^no risk "Sen" was found; did you mean "Seen"[?]$'):
        explain_from_reports(stored, "Sen", "")
    with pytest.raises(InputError, match=r'^no risk "Docmented" was found; did you mean "Documented"[?]$'):
        explain_from_reports(stored, "Docmented", "", ("Documented",))
    with pytest.raises(InputError, match=r'^no risk "Zzz" was found$'):
        explain_from_reports(stored, "Zzz", "")


def test_a_check_that_could_not_tell_explains_its_risks() -> None:
    """Of a risk that may apply it is not said that no update has it."""
    stored = History(reports=(report("5.2.0", replace(SEEN, name="PausedUnknown")),))
    for name in ("Paused", "Paused-worker", "PausedUnknown"):
        shown = explain_from_reports(stored, name, "a page")
        assert [risk.name for _, risk in shown.by_target] == ["PausedUnknown"], name
    assert explain_from_reports(stored, "Pause", "a page").by_target == ()


def test_what_a_dump_lacks_is_collected_by_a_line_of_its_own() -> None:
    """Right below the sentence on it; the sentence names the kinds that most checks lack, and where all are named."""
    lacks = replace(UNSURE, lacking=("pods", "nodes", "services"))
    text = result(found(lacks, of_dump=True), Screen(80, 24), collect="runup dump collect d-collected")
    said = "1 check has no result: the dump does not have all nodes, pods, services. Not"
    assert f"{said}\nfully checked: admission, nodes, drains. Collect them (-v names all):\n" in text
    assert "names all):\n  runup dump collect d-collected\n" in text


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Cluster operator dns is degraded: Why: it is.", "1. warning: ClusterOperatorDegraded-dns: Why: it is."),
        (
            "Cluster operator dns is degraded.",
            "1. warning: ClusterOperatorDegraded-dns: Cluster operator dns is degraded.",
        ),
    ],
    ids=["its own words", "no words of its own"],
)
def test_what_the_name_says_is_not_said_again(message: str, said: str) -> None:
    """An operator's own words come right after the name of the risk."""
    one = samples.risk("ClusterOperatorDegraded-dns", message)
    assert result(found(one)).splitlines()[3] == said


def causes_of_three(*refused: int) -> tuple[Risk, ...]:
    """The risks of four causes, three each; no acceptance lifts those of `refused`."""
    return tuple(
        replace(
            A, name=f"{letter}{number}", cause="" if letter == "A" else f"A{number}", acceptable=number not in refused
        )
        for number in range(1, 5)
        for letter in "ABC"
    )


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ((1,), "cause 1 applies"),
        ((1, 3), "causes 1 and 3 apply"),
        ((3, 4), "causes 3 and 4 apply"),
        ((1, 2, 3), "causes 1 to 3 apply"),
        ((1, 2, 4), "causes 1, 2 and 4 apply"),
    ],
)
def test_what_refuses_an_update_is_named_by_its_numbers(refused: tuple[int, ...], said: str) -> None:
    """Where the names would be many; the numbers are those of the list above."""
    one = found(*causes_of_three(*refused))
    assert verdict(one).startswith(f"Verdict: the update is refused while {said}, accepted or not. Fix the others, or")
    for number in refused:
        assert f"\n{number}. warning: A{number}: It is so.\n   Also: B{number}, C{number}\n" in result(one)


@pytest.mark.parametrize(
    ("others", "also"),
    [
        (0, ""),
        (1, "   Also: V00\n"),
        (10, f"   Also: {', '.join(f'V{number:02}' for number in range(10))}\n"),
        (12, f"   Also: {', '.join(f'V{number:02}' for number in range(10))} and 2 more\n"),
    ],
)
def test_what_a_cluster_does_not_tell(others: int, also: str) -> None:
    """The first risk represents the others, with why and what would help; ten of these are named."""
    lacks = replace(UNSURE, lacking=("pods",), fix=" Give the right to list pods.\n")
    more = [replace(lacks, name=f"V{number:02}") for number in range(others)]
    text = result(found(lacks, *more))
    assert f"   U: It is so.\n{also}   Fix: Give the right to list pods.\n" in text
    assert ("Also" in text) is bool(also)
    assert "Fix:" not in result(found(replace(lacks, fix="")))


def test_a_remedy_is_given_once() -> None:
    """By the number of the cause that has it, where several have the same; of as many lines as it has."""
    first, second, third = (replace(A, name=name, fix="Do it.\n\n  Then rest.\n") for name in "ABC")
    text = result(found(first, replace(second, fix="Do it."), third))
    assert "1. warning: A: It is so.\n   Fix: Do it.\n   Then rest.\n" in text
    assert "2. warning: B: It is so.\n   Fix: Do it.\n3." in text
    assert "3. warning: C: It is so.\n   Fix: as for 1.\n" in text


@pytest.mark.parametrize(
    ("first", "second", "is_told"),
    [
        pytest.param("warning", "critical", True, id="a warning first"),
        pytest.param("critical", "warning", False, id="the gravest first"),
        pytest.param("warning", "", False, id="of the same severity"),
    ],
)
def test_explains_an_order_that_is_not_that_of_the_severities(first: str, second: str, is_told: bool) -> None:
    """Causes come in the order in which they stop the update (docs/decisions/0072 D38)."""
    request = replace(A, name="AdminAck-a", severity=first)
    text = result(found(request, replace(A, name="B", severity=second)))
    assert text.index("AdminAck-a: ") < text.index("B: It is so.")
    assert ("\n\nIn the order in which they would stop the update: at the request, " in text) is is_told


def test_what_an_update_may_repair_only_informs() -> None:
    """It has no separate severity, unless a more severe risk has the same cause."""
    assert "1. informs: R: It is so." in result(found(REPAIRS))
    assert "1. warning: A: It is so.\n   Also: R\n" in result(found(A, replace(REPAIRS, cause="A")))


def test_words_of_a_cause_have_colours_on_a_terminal() -> None:
    """The severity and the name, once each."""
    text = result(found(replace(A, severity="critical", message="A: critical: A.")), Screen(80, 24, colour=True))
    assert "1. \x1b[1;31mcritical:\x1b[0m \x1b[1mA:\x1b[0m A: critical: A." in text
