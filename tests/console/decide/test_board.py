"""The board: what counts of each cluster, what is kept of it, and that what is not known never counts as fine."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.cli.preflight.render import samples

from runup.console.decide.board import (
    MAX_OF_ALL,
    MAX_OF_ONE,
    Board,
    Evaluation,
    Evidence,
    failed_findings,
    findings_now,
    with_evaluation,
    with_members,
)
from runup.fleet.decide.members import Member
from runup.fleet.decide.trend import ReportStep
from runup.preflight.decide.findings import COULD_NOT_RUN, EXIT_CLEAR, UNKNOWN, Findings

NOW = samples.WHEN + timedelta(hours=1)
DAY = timedelta(hours=24)
HARBOUR, LIGHTHOUSE = Member(name="harbour", context="harbour"), Member(name="lighthouse", dump="x")
BOARD = with_members(Board(), (LIGHTHOUSE, HARBOUR))


def _evaluated(found: Findings, *, size: int = 100, board: Board = BOARD, most: int = MAX_OF_ALL) -> Board:
    return with_evaluation(board, "harbour", evaluated=Evaluation(findings=found), size=size, now=NOW, most=most)


@pytest.mark.parametrize(
    ("found", "after", "code"),
    [
        pytest.param(samples.CLEAR, timedelta(0), EXIT_CLEAR, id="just judged"),
        pytest.param(samples.CLEAR, DAY, UNKNOWN, id="a day later"),
        pytest.param(replace(samples.CLEAR, observed=None), timedelta(0), UNKNOWN, id="nobody knows when"),
        pytest.param(
            replace(samples.CLEAR, observed=NOW + timedelta(minutes=4)), timedelta(0), EXIT_CLEAR, id="clocks differ"
        ),
        pytest.param(replace(samples.CLEAR, observed=NOW + timedelta(minutes=6)), timedelta(0), UNKNOWN, id="to come"),
        pytest.param(replace(samples.CLEAR, observed=NOW + 400 * DAY), timedelta(0), UNKNOWN, id="in another year"),
        pytest.param(replace(samples.CLEAR, of_dump=True), 400 * DAY, EXIT_CLEAR, id="a dump, which is of one moment"),
        pytest.param(samples.FAILED, timedelta(0), COULD_NOT_RUN, id="it could not run"),
        pytest.param(samples.FAILED, DAY, COULD_NOT_RUN, id="it could not run, a day ago"),
        pytest.param(failed_findings("no route"), timedelta(0), COULD_NOT_RUN, id="no server"),
    ],
)
def test_what_counts_now(found: Findings, after: timedelta, code: int) -> None:
    """An old result is not known any more; it is not fine."""
    assert findings_now(_evaluated(found), "harbour", NOW + after, DAY).exit_code == code


def test_a_cluster_that_was_not_judged_yet() -> None:
    """Nothing is known about it."""
    assert findings_now(BOARD, "lighthouse", NOW, DAY).exit_code == COULD_NOT_RUN
    assert list(BOARD.entries) == ["harbour", "lighthouse"]


def test_a_failure_after_a_result() -> None:
    """The failure counts; the result before it is kept to be looked at, through any number of failures."""
    board = _evaluated(
        failed_findings("again"), board=_evaluated(failed_findings("no route"), board=_evaluated(samples.CLEAR))
    )
    entry = board.entries["harbour"]
    assert entry.last_good == samples.CLEAR
    assert findings_now(board, "harbour", NOW, DAY).failed is not None
    assert _evaluated(samples.FOUND, board=board).entries["harbour"].last_good is None


@pytest.mark.parametrize(
    ("size", "is_good_kept", "is_other_evaluated"),
    [
        pytest.param(400, True, True, id="room for all"),
        pytest.param(600, True, False, id="what was found before takes the room of another cluster"),
        pytest.param(995, False, True, id="the failure takes the room of what was found before"),
    ],
)
def test_what_was_found_before_takes_room(size: int, is_good_kept: bool, is_other_evaluated: bool) -> None:
    """It counts for as long as it is kept, so clusters that all fail never hold more than there may be."""
    board = _evaluated(
        failed_findings("no route"), size=10, most=1000, board=_evaluated(samples.CLEAR, size=size, most=1000)
    )
    assert (board.entries["harbour"].last_good is not None) == is_good_kept
    board = with_evaluation(
        board, "lighthouse", evaluated=Evaluation(findings=samples.CLEAR), size=500, now=NOW, most=1000
    )
    assert board.entries["lighthouse"].evaluated.findings.completed == is_other_evaluated  # type: ignore[union-attr]
    assert board.size == 10 + size * is_good_kept + 500 * is_other_evaluated
    again = _evaluated(failed_findings("again"), size=10, most=1000, board=board)
    assert again.size == board.size


STEPS = tuple(
    ReportStep(cluster="harbour", observed=NOW - number * DAY, target="5.2.0", completed=True) for number in (2, 1)
)
EVIDENCE = (Evidence("Node a", ("R",), yaml="y" * MAX_OF_ONE),)


@pytest.mark.parametrize(
    ("size", "most", "evidence", "completed"),
    [
        pytest.param(100, 1000, EVIDENCE, True, id="there is room"),
        pytest.param(MAX_OF_ONE + 100, 10 * MAX_OF_ONE, (), True, id="without its objects there is room"),
        pytest.param(3 * MAX_OF_ONE, 10 * MAX_OF_ONE, (), False, id="larger than one may be"),
        pytest.param(100, 50, (), True, id="others have the room, but for its report"),
    ],
)
def test_how_much_is_kept(size: int, most: int, evidence: tuple[Evidence, ...], completed: bool) -> None:
    """First the objects go; without room for the report the cluster could not be evaluated, and it is said why."""
    evaluated = Evaluation(findings=samples.CLEAR, evidence=EVIDENCE, steps=STEPS)
    entry = with_evaluation(BOARD, "harbour", evaluated=evaluated, size=size, now=NOW, most=most).entries["harbour"]
    assert entry.evaluated is not None
    assert entry.evaluated.evidence == evidence
    assert entry.evaluated.findings.completed == completed
    lost = (evaluated.steps, entry.evaluated.steps, entry.evaluated.history_notes)
    assert lost[0] == lost[1] or lost[2]
    assert completed or "keeps" in entry.evaluated.findings.failed.message  # type: ignore[union-attr]


def test_clusters_that_come_and_go() -> None:
    """One that is gone takes no room and no late result; what is known about the others stays."""
    board = with_members(_evaluated(samples.CLEAR), (HARBOUR, Member(name="island")), ("a note", "a note"))
    assert list(board.entries) == ["harbour", "island"]
    assert board.entries["harbour"].evaluated is not None
    assert board.notes == ("a note",)
    assert with_evaluation(board, "lighthouse", evaluated=Evaluation(findings=samples.CLEAR), size=5, now=NOW) is board
    assert board.version > BOARD.version
