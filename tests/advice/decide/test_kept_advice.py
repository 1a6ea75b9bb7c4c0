"""Releases with their risks put together, and what of earlier advice stays while nobody answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import NOW

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition
from runup.advice.decide.candidates import (
    ALWAYS,
    Candidate,
    EvaluatedRisk,
    add_risks,
    by_name,
    join,
    newest_first,
    only_holding_risks,
    recommended_condition,
    unaccepted_names,
)
from runup.advice.decide.current_advice import CurrentAdvice, advise
from runup.advice.decide.graph import Graph, GraphDocument, parse_graph
from runup.advice.decide.risks.cluster_state import SourceRisk
from runup.advice.decide.service import Failure, ServiceState, query_for, usable_graph
from runup.advice.decide.upgradeable import upgradeable
from runup.api.config_v1 import (
    ClusterVersionSpec,
    ClusterVersionStatus,
    ConditionalUpdate,
    ConditionalUpdateRisk,
    MatchingRule,
    Release,
    Update,
)

ID = "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"
SPEC = ClusterVersionSpec(cluster_id=ID, channel="stable-5.0")
HERE = Release(version="5.0.0", image="i@sha256:0")
QUERY = query_for(SPEC, HERE, configured_url="", architecture="amd64")


def evaluated_risk(name: str, status: Any = "True", message: str = "m", **changes: Any) -> EvaluatedRisk:
    """A risk with its verdict."""
    rules = changes.pop("rules", ALWAYS)
    reason = changes.pop("reason", "Match")
    risk = ConditionalUpdateRisk(name=name, message=message, url=f"https://{name}/", matching_rules=rules)
    return EvaluatedRisk(
        risk=risk, applies=Condition(type="Applies", status=status, reason=reason, message=f"{name}?"), **changes
    )


@pytest.mark.parametrize(
    ("one", "other", "status"),
    [
        pytest.param("False", "Unknown", "Unknown", id="no and perhaps"),
        pytest.param("Unknown", "True", "True", id="perhaps and yes"),
        pytest.param("False", "True", "True", id="no and yes"),
        pytest.param("False", "False", "False", id="no twice"),
    ],
)
def test_of_two_verdicts_the_worse_counts(one: str, other: str, status: str) -> None:
    """Whichever comes first."""
    for first, second in ((one, other), (other, one)):
        assert join(evaluated_risk("R", first), evaluated_risk("R", second)).applies.status == status


def test_of_two_alike_the_first_verdict_counts() -> None:
    """Its words are those that were shown before."""
    first, second = evaluated_risk("R", reason="A"), evaluated_risk("R", reason="B")
    assert join(first, second).applies.reason == "A"


def test_two_risks_of_one_name_are_one() -> None:
    """Each line of their messages once; the link of the first, and its rules where it has any."""
    moon = (MatchingRule(type="Moon"),)
    lines = join(evaluated_risk("R", message="a\nb", rules=moon), evaluated_risk("R", message="c\na")).risk
    assert (lines.message, lines.matching_rules, lines.url) == ("a\nb\nc", moon, "https://R/")
    assert join(evaluated_risk("R", rules=()), evaluated_risk("R", rules=moon)).risk.matching_rules == ALWAYS


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(True, True, True, id="both are"),
        pytest.param(True, False, False, id="the first is"),
        pytest.param(False, True, False, id="the second is"),
    ],
)
def test_a_preflights_risk_is_one_that_only_preflights_have(one: bool, other: bool, expected: bool) -> None:
    """The service's stays when the preflight goes."""
    assert (
        join(evaluated_risk("R", from_preflight=one), evaluated_risk("R", from_preflight=other)).from_preflight
        is expected
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(("True", True), ("True", False), True, id="one holds it up"),
        pytest.param(("True", False), ("Unknown", False), False, id="neither does"),
        pytest.param(("False", True), ("True", False), False, id="the one that would does not apply"),
        pytest.param(("False", True), ("Unknown", True), True, id="one that nobody can tell"),
    ],
)
def test_what_holds_an_update_up(one: tuple[str, bool], other: tuple[str, bool], expected: bool) -> None:
    """A risk that applies or is unknown, and is no mere information."""
    first, second = (evaluated_risk("R", status, holds_up=holds) for status, holds in (one, other))
    assert join(first, second).holds_up is expected
    assert join(second, first).holds_up is expected


def update(version: str, *risks: EvaluatedRisk) -> Candidate:
    """A release."""
    return Candidate(Release(version=version, image=f"i@{version}"), risks)


def test_the_newest_comes_first() -> None:
    """Sorts by version order, not by text; invalid versions come last."""
    found = newest_first([update("5.0.9"), update("five"), update("5.0.10"), update("5.1.0-rc.1"), update("5.1.0")])
    assert [each.release.version for each in found] == ["5.1.0", "5.1.0-rc.1", "5.0.10", "5.0.9", "five"]


def test_risks_are_in_the_order_of_their_names() -> None:
    """Those that are added among those that are there, each name once."""
    found = add_risks(
        update("5.1.0", evaluated_risk("C"), evaluated_risk("A", "False")), [evaluated_risk("B"), evaluated_risk("A")]
    )
    assert [(risk.name, risk.applies.status) for risk in found.risks] == [("A", "True"), ("B", "True"), ("C", "True")]
    every = by_name(
        [
            update("5.2.0", evaluated_risk("B", message="x")),
            update("5.1.0", evaluated_risk("B", message="y"), evaluated_risk("A")),
        ]
    )
    assert [(risk.name, risk.risk.message) for risk in every] == [("A", "m"), ("B", "x\ny")]


def test_what_only_informs_is_left_out() -> None:
    """Of what an update waits for."""
    found = only_holding_risks(update("5.1.0", evaluated_risk("A", holds_up=False), evaluated_risk("B")))
    assert [risk.name for risk in found.risks] == ["B"]


@pytest.mark.parametrize(
    ("risk", "accepted", "expected"),
    [
        pytest.param(evaluated_risk("A"), (), ("A",), id="it applies"),
        pytest.param(evaluated_risk("A", "Unknown"), (), ("A",), id="nobody can tell"),
        pytest.param(evaluated_risk("A", "False"), (), (), id="it does not apply"),
        pytest.param(evaluated_risk("A", holds_up=False), (), (), id="it only informs"),
        pytest.param(evaluated_risk("A"), ("A",), (), id="it is accepted"),
        pytest.param(evaluated_risk("A"), ("B",), ("A",), id="another is accepted"),
    ],
)
def test_what_nobody_has_accepted(risk: EvaluatedRisk, accepted: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """By name; what must be accepted is what holds the update up."""
    assert unaccepted_names(update("5.1.0", risk), accepted) == expected


EVALUATION = "EvaluationFailed"
ONE, TWO = evaluated_risk("B-b"), evaluated_risk("C-c")
UNTOLD = evaluated_risk("U", "Unknown", reason=EVALUATION)
FOLDS: dict[str, tuple[tuple[EvaluatedRisk, ...], tuple[str, ...], tuple[str, str, str]]] = {
    "no risk": ((), (), ("True", "NotExposedToRisks", "The update is recommended, because none of")),
    "accepted, then one that does not apply": (
        (ONE, evaluated_risk("N", "False")),
        ("B-b",),
        ("True", "AllExposedRisksAccepted", "The update is recommended, because either"),
    ),
    "two accepted": (
        (ONE, TWO),
        ("B-b", "C-c"),
        ("True", "AllExposedRisksAccepted", "The update is recommended, because"),
    ),
    "two of no reason's name": ((ONE, TWO), (), ("False", "ExposedToRisks", "m https://B-b/\n\nm https://C-c/")),
    "exposed, then unknown": ((ONE, UNTOLD), (), ("False", "ExposedToRisks", "m https://B-b/\n\nU?")),
    "unknown for another reason, then exposed": (
        (evaluated_risk("U", "Unknown", reason="Stale"), ONE),
        (),
        ("False", "MultipleReasons", "U?\n\nm https://B-b/"),
    ),
    "unknown for no reason": ((evaluated_risk("U", "Unknown", reason=""),), (), ("Unknown", EVALUATION, "U?")),
    "two unknown": (
        (UNTOLD, evaluated_risk("V", "Unknown", reason=EVALUATION)),
        (),
        ("Unknown", EVALUATION, "U?\n\nV?"),
    ),
    "unknown, then accepted": ((UNTOLD, TWO), ("C-c",), ("Unknown", EVALUATION, "U?")),
}


@pytest.mark.parametrize(("risks", "accepted", "expected"), FOLDS.values(), ids=FOLDS.keys())
def test_what_risks_come_to(
    risks: tuple[EvaluatedRisk, ...], accepted: tuple[str, ...], expected: tuple[str, str, str]
) -> None:
    """Status, reason and words, whichever risk comes first."""
    found = recommended_condition(update("5.1.0", *risks), accepted)
    assert (found.status, found.reason) == expected[:2]
    assert found.message.startswith(expected[2])
    assert "\n\n" not in found.message.removeprefix(expected[2])


GRAPH = Graph(GraphDocument())


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        pytest.param(
            {"succeeded_at": NOW - timedelta(hours=24) + timedelta(seconds=1)}, True, id="a day, less a second"
        ),
        pytest.param({"succeeded_at": NOW - timedelta(hours=24)}, False, id="a day"),
        pytest.param({"succeeded_at": None}, False, id="never"),
        pytest.param({"query": None}, False, id="to another question"),
        pytest.param({"graph": None}, False, id="an answer without a graph"),
    ],
)
def test_how_long_an_answer_outlives_the_service(changes: dict[str, Any], usable: bool) -> None:
    """A day, to the second."""
    state = replace(ServiceState(query=QUERY, graph=GRAPH, succeeded_at=NOW), **changes)
    assert (usable_graph(state, QUERY, now=NOW) is GRAPH) is usable


def risk(name: str, reason: str = "Match") -> ConditionalUpdateRisk:
    """A risk as ClusterVersion has it."""
    applies = Condition(type="Applies", status="True", reason=reason)
    return ConditionalUpdateRisk(name=name, message="m", url="u", matching_rules=ALWAYS, conditions=(applies,))


def conditional(version: str, *risks: ConditionalUpdateRisk) -> ConditionalUpdate:
    """A conditional update as ClusterVersion has it."""
    return ConditionalUpdate(release=Release(version=version, image=f"i@{version}"), risks=risks)


def advised(status: ClusterVersionStatus, *, reason: str = "", current: Release = HERE) -> CurrentAdvice:
    """Returns the advice before the first answer of the service, or after a failed request."""
    query = query_for(SPEC, current, configured_url="", architecture="amd64")
    failure = Failure(reason, "m") if reason else None
    state = ServiceState(query=query, failure=failure, attempted_at=NOW)
    return advise(SPEC, status, state, current=current, configured_url="", architecture="amd64", now=NOW)


EARLIER = ClusterVersionStatus(
    available_updates=(Release(version="5.0.1", image="i@5.0.1"), Release(version="5.1.0", image="i@5.1.0")),
    conditional_updates=(
        conditional("5.1.0", risk("Theirs"), risk("Found", "PreflightValidation")),
        conditional("5.0.2", risk("Found", "PreflightValidation")),
        conditional("5.2.0", risk("UpdatePathNotOffered", "PreflightValidation")),
        conditional("5.0.3", risk("ClusterVersionOverrides")),
    ),
)
KEPT = [("5.1.0", ["Theirs"]), ("5.0.3", []), ("5.0.2", []), ("5.0.1", [])]


REASONS = ("RemoteFailed", "ResponseFailed", "ResponseInvalid", "VersionNotFound")


@pytest.mark.parametrize("reason", REASONS)
def test_a_failed_query_without_an_answer_leaves_no_update(reason: str) -> None:
    """The condition gives the reason. The updates in ClusterVersion may answer another query."""
    found = advised(EARLIER, reason=reason)
    assert (found.candidates, found.settled) == ((), True)
    assert found.condition is not None
    assert (found.condition.status, found.condition.reason) == ("False", reason)


def test_a_restarted_operator_keeps_the_offers_until_the_first_answer() -> None:
    """Offered updates keep their own risks; risks that others added are removed."""
    found = advised(EARLIER)
    assert [(each.release.version, [r.name for r in each.risks]) for each in found.candidates] == KEPT
    assert (found.settled, found.condition) == (False, None)


_OTHER = Release(version="5.0.0", image="i@5.0.0", architecture="Multi")
_QUERIES: dict[str, tuple[ClusterVersionSpec, Release]] = {
    "another service": (with_fields(SPEC, upstream="https://mine.example/graph"), HERE),
    "another channel": (with_fields(SPEC, channel="candidate-5.1"), HERE),
    "another architecture": (SPEC, _OTHER),
    "another version": (SPEC, with_fields(HERE, version="5.0.1", image="i@5.0.1")),
}


@pytest.mark.parametrize(("spec", "current"), _QUERIES.values(), ids=_QUERIES.keys())
@pytest.mark.parametrize("failed", [False, True], ids=["before an answer", "after a failure"])
def test_the_answer_to_another_query_offers_nothing(
    spec: ClusterVersionSpec, current: Release, *, failed: bool
) -> None:
    """Neither the stored offers nor the graph in memory count for it, and the condition says why they are missing."""
    graph = parse_graph(codec.encode({"nodes": [{"version": "5.0.0", "payload": "i@5.0.0"}]}))
    before = ServiceState(query=QUERY, graph=graph, attempted_at=NOW, succeeded_at=NOW)
    asked: dict[str, Any] = {"current": current, "configured_url": "", "architecture": "amd64"}
    query = query_for(spec, current, configured_url="", architecture=current.architecture or "amd64")
    after = ServiceState(query=query, changed=True, failure=Failure("RemoteFailed", "m"), attempted_at=NOW)
    reason = ("False", "RemoteFailed") if failed else ("Unknown", "NotAnsweredYet")
    for state in [after] if failed else [before, replace(after, failure=None, asking=True)]:
        found = advise(spec, EARLIER, state, now=NOW, **asked)
        assert found.candidates == ()
        assert found.condition is not None
        assert (found.condition.status, found.condition.reason) == reason


def test_stored_offers_of_an_earlier_spec_do_not_count() -> None:
    """The channel or service may have changed while no operator ran."""
    found = advise(
        SPEC,
        EARLIER,
        ServiceState(),
        current=HERE,
        configured_url="",
        architecture="amd64",
        now=NOW,
        spec_changed=True,
    )
    assert (found.candidates, found.settled) == ((), False)
    assert found.condition is not None
    assert found.condition.reason == "NotAnsweredYet"


def test_a_failure_keeps_the_last_answer_to_the_same_query_for_a_day() -> None:
    """After that the lists are empty, whatever ClusterVersion has."""
    nodes = [{"version": version, "payload": f"i@{version}"} for version in ("5.0.0", "5.0.1")]
    graph = parse_graph(codec.encode({"nodes": nodes, "edges": [[0, 1]]}))
    for age, versions in ((timedelta(hours=23), ["5.0.1"]), (timedelta(hours=24), [])):
        state = ServiceState(
            query=query_for(SPEC, HERE, configured_url="", architecture="amd64"),
            graph=graph,
            failure=Failure("RemoteFailed", "m"),
            attempted_at=NOW,
            succeeded_at=NOW - age,
        )
        found = advise(SPEC, EARLIER, state, current=HERE, configured_url="", architecture="amd64", now=NOW)
        assert [each.release.version for each in found.candidates] == versions
        assert found.condition is not None
        assert found.condition.reason == "RemoteFailed"


@pytest.mark.parametrize(
    ("asked", "current", "migrates"),
    [
        pytest.param("Multi", "", True, id="asked for"),
        pytest.param("", "", False, id="not asked for"),
        pytest.param("Multi", "Multi", False, id="done already"),
    ],
)
def test_a_change_of_architecture_offers_the_release_itself(asked: str, current: str, migrates: bool) -> None:
    """And nothing newer, until it is done."""
    spec = with_fields(SPEC, desired_update=Update(version="5.0.0", architecture=asked))
    here = Release(version="5.0.0", image="i@5.0.0", architecture=current)
    query = query_for(spec, here, configured_url="", architecture=current or "amd64")
    nodes = [{"version": version, "payload": f"i@{version}"} for version in ("5.0.0", "5.0.1")]
    graph = parse_graph(codec.encode({"nodes": nodes, "edges": [[0, 1]]}))
    state = ServiceState(query=query, graph=graph, attempted_at=NOW, succeeded_at=NOW)
    found = advise(spec, ClusterVersionStatus(), state, current=here, configured_url="", architecture="amd64", now=NOW)
    assert [each.release.version for each in found.candidates] == ["5.0.0" if migrates else "5.0.1"]


def source_risk(name: str, unknown: str = "", *, everywhere: bool = False) -> SourceRisk:
    """Returns the risks that the cluster's state causes."""
    return SourceRisk(name=name, message=f"{name}.", url="u", unknown=unknown, everywhere=everywhere)


UPGRADEABLE: dict[str, tuple[list[SourceRisk], tuple[str, str, str] | None]] = {
    "nothing": ([], None),
    "what speaks against every update": ([source_risk("Alert", everywhere=True)], None),
    "one": ([source_risk("A")], ("False", "A", "A.")),
    "one whose name is no reason": ([source_risk("A-a")], ("False", "RiskNameNotCompatibleWithReasonProperty", "A-a.")),
    "two": (
        [source_risk("A"), source_risk("B")],
        (
            "False",
            "MultipleReasons",
            "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* A.\n* B.",
        ),
    ),
    "of every update": ([source_risk("A", everywhere=True)], None),
}


@pytest.mark.parametrize(("risks", "expected"), UPGRADEABLE.values(), ids=UPGRADEABLE.keys())
def test_what_speaks_against_leaving_the_minor_version(
    risks: list[SourceRisk], expected: tuple[str, str, str] | None
) -> None:
    """False where anything does, and never True."""
    found = upgradeable(risks, None)
    assert (found and (found.status, found.reason, found.message)) == expected


@pytest.mark.parametrize(
    ("status", "reason", "stays"),
    [
        pytest.param("False", "AdminAckRequired", True, id="of what this operator cannot tell"),
        pytest.param("False", "Overrides", False, id="of what it can"),
        pytest.param("Unknown", "AdminAckRequired", False, id="that nobody knew either"),
    ],
)
def test_which_earlier_word_stays(status: Any, reason: str, stays: bool) -> None:
    """Only a False of which nobody knows better; it counts for more than what is known."""
    before = Condition(type="Upgradeable", status=status, reason=reason)
    found = upgradeable([source_risk("A")], before, not_known=("AdminAck",))
    assert (found is before) is stays
