"""Many clusters side by side: risks with their clusters, groups, and those that nobody could evaluate."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from runup.advice.decide.acceptance import Growth
from runup.fleet.decide.matrix import Group, matrix
from runup.preflight.decide.findings import RESULTS, Findings, Result, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED

DONE = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")


def risk(name: str, applies: str = "True", *, accepted: bool = False, severity: str = "warning") -> Risk:
    """A risk."""
    return Risk(name=name, applies=applies, accepted=accepted, message=f"{name} is so.", url="", severity=severity)  # type: ignore[arg-type]


def findings_with(*risks: Risk) -> Findings:
    """A cluster's findings."""
    return Findings(source="4.15.0", target="4.16.0", conditions=(DONE,), risks=risks)


def failed(why: str) -> Findings:
    """A cluster that could not be evaluated."""
    return Findings(
        source="", target="", conditions=(Condition(type=FAILED, status="True", reason="NotJudged", message=why),)
    )


def test_each_risk_has_the_clusters_where_it_is() -> None:
    """Applies, is unknown and accepted are three things; the gravest that applies somewhere comes first."""
    table = matrix(
        [
            ("a", findings_with(risk("Ack", severity="critical"), risk("Paused"))),
            ("b", findings_with(risk("Ack", "Unknown"), risk("Paused", accepted=True))),
            ("c", findings_with(risk("Paused"), risk("Gone", "False"))),
            ("d", findings_with(risk("SkewUnknown", "Unknown"))),
            ("e", failed("it is empty")),
        ]
    )
    assert [(row.name, row.applies, row.unknown, row.accepted) for row in table.rows] == [
        ("Ack", ("a",), ("b",), ()),
        ("Paused", ("a", "c"), (), ("b",)),
        ("SkewUnknown", (), ("d",), ()),
    ]
    assert table.failed == (("e", "it is empty"),)
    assert dict(table.results) == {
        "a": Result.APPLY,
        "b": Result.UNKNOWN,
        "c": Result.APPLY,
        "d": Result.UNKNOWN,
        "e": Result.COULD_NOT_RUN,
    }
    assert [table.number(result) for result in RESULTS] == [0, 2, 2, 1]
    assert [table.rows[0].mark(name) for name in "abcd"] == ["applies", "unknown", "", ""]


def test_why_risks_are_accepted_and_what_has_grown() -> None:
    """Each reason once; a cluster with nothing else in the way is one with accepted risks."""
    known = replace(risk("Ack", accepted=True), because="known")
    grown = replace(risk("Ack"), grown=Growth(added=("Node b",), accepted_for=1))
    clusters = [("a", known), ("b", known), ("c", replace(known, because="late")), ("d", grown)]
    table = matrix([(name, findings_with(found)) for name, found in clusters])
    (row,) = table.rows
    assert (row.accepted, row.because) == (("a", "b", "c"), ("known", "late"))
    assert row.grown == (("d", "Ack was accepted for 1, and has grown: Node b"),)
    assert (table.accepting, table.number(Result.CLEAR)) == (3, 3)
    assert matrix([("e", findings_with(known, risk("Paused")))]).accepting == 0


def test_clusters_with_the_same_open_risks_are_one_group() -> None:
    """Acceptance does not change the remaining work; the largest group comes first."""
    table = matrix(
        [
            ("a", findings_with(risk("Ack"))),
            ("b", findings_with()),
            ("c", findings_with(risk("Ack"), risk("Paused", accepted=True))),
            ("d", failed("gone")),
        ]
    )
    assert table.groups == (Group(("a", "c"), ("Ack",), (), Result.APPLY), Group(("b",), (), (), Result.CLEAR))


NAMES = st.sampled_from(["Ack", "Paused", "Skew-a", "Skew-b"])
RISKS = st.lists(
    st.builds(risk, NAMES, st.sampled_from(["True", "Unknown", "False"]), accepted=st.booleans()),
    unique_by=lambda each: each.name,
)
FOUND = st.one_of(RISKS.map(lambda risks: findings_with(*risks)), st.just(failed("no")))


@given(st.lists(FOUND, max_size=8))
def test_no_cluster_is_lost_or_counted_twice(found: list[Findings]) -> None:
    """Each is in one group or told as not evaluated, and once in a risk's row if it has the risk."""
    results = [(f"c{number}", each) for number, each in enumerate(found)]
    table = matrix(results)
    grouped = [name for group in table.groups for name in group.clusters]
    assert sorted([*grouped, *(name for name, _ in table.failed)]) == sorted(name for name, _ in results)
    for row in table.rows:
        shown = (*row.applies, *row.unknown, *row.accepted, *row.informs)
        having = [
            name for name, each in results if any(r.name == row.name and r.applies != "False" for r in each.risks)
        ]
        assert sorted(shown) == sorted(having)
