"""Tests the texts of `runup fleet` for given rows: order of clusters, counts, omissions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from runup.cli.errors import CommandError
from runup.cli.fleet import recommend_command, shared, status_command
from runup.cli.fleet.recommend_command import AdviceRow
from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.status_command import StatusRow
from runup.cli.rehearse import fleet_command as rehearse_command
from runup.cli.render.screen import Drawn, Screen
from runup.fleet.control import cluster_sources, fleet_members, readings
from runup.fleet.control.fleet_members import NamedMembers
from runup.fleet.decide.matrix import Group, Matrix, RiskRow
from runup.fleet.decide.members import Member
from runup.preflight.decide.findings import Result
from runup.process.connection import Connection


def lines(drawn: Iterable[Drawn]) -> list[str]:
    """As they are printed into a pipe, without blanks at their ends."""
    return [line.rstrip() for line in "".join(drawn).splitlines()]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = (
    StatusRow(cluster="a", updating="False"),
    StatusRow(cluster="lost", problem="no route to host"),
    StatusRow(cluster="b", attention=1, first="it is odd"),
    StatusRow(cluster="c", updating="True", target="5.1.0", operators=(3, 4), pools=(1, 2)),
    StatusRow(
        cluster="d",
        updating="True",
        target="5.1.0",
        operators=(4, 4),
        pools=(0, 2),
        attention=2,
        first="node x is stuck",
    ),
    StatusRow(cluster="e", updating="False", attention=1, first="a pool is paused"),
    StatusRow(cluster="f", updating="False", attention=2, first="a node is lost"),
)


def test_the_status_of_a_fleet() -> None:
    """Those that update come first, then those of which it is not known; of these, those that need attention."""
    assert lines(status_command.text(ROWS)) == [
        "7 clusters: 2 updating, of 1 it is not known, 1 could not be read",
        "",
        "CLUSTER  UPDATING  TARGET  OPERATORS  POOLS  ATTENTION  FIRST",
        "d        yes       5.1.0   4/4        0/2    2          node x is stuck",
        "c        yes       5.1.0   3/4        1/2    0          -",
        "b        unknown   -       -          -      1          it is odd",
        "f        no        -       -          -      2          a node is lost",
        "e        no        -       -          -      1          a pool is paused",
        "a        no        -       -          -      0          -",
        "",
        "Could not be read, so nothing is known about them:",
        "  lost: no route to host",
    ]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        pytest.param(ROWS[:1], "1 cluster: 0 updating", id="one"),
        pytest.param(ROWS[3:5], "2 clusters: 2 updating", id="two that update"),
        pytest.param(ROWS[2:3], "1 cluster: 0 updating, of 1 it is not known", id="nobody knows"),
        pytest.param(ROWS[1:2], "1 cluster: 0 updating, 1 could not be read", id="nobody could read it"),
    ],
)
def test_a_fleet_in_one_sentence(rows: tuple[StatusRow, ...], says: str) -> None:
    """Absent values are not counted."""
    assert status_command.headline(rows) == says
    shown = lines(status_command.text(rows))
    assert shown[0] == says
    assert any("CLUSTER" in line for line in shown) is any(not row.problem for row in rows)
    assert any(line.startswith("Could not be read") for line in shown) is any(row.problem for row in rows)


# What a cluster has that was not told by a hub.
READ_HERE: dict[str, Any] = {"observedTime": None, "doubts": []}


def test_the_status_of_a_fleet_for_programs() -> None:
    """Unknown values are null, not false or empty."""
    found = status_command.data((ROWS[1], replace(ROWS[3], obj={"kind": "UpdateStatus"})))
    nothing = {"operatorsUpdated": 0, "operators": 0, "poolsUpdated": 0, "pools": 0, "attention": 0}
    assert found["clusters"] == [
        {
            "cluster": "lost",
            "updating": None,
            "target": None,
            **nothing,
            "problem": "no route to host",
            **READ_HERE,
            "updateStatus": None,
        },
        {
            "cluster": "c",
            "updating": "True",
            "target": "5.1.0",
            "operatorsUpdated": 3,
            "operators": 4,
            "poolsUpdated": 1,
            "pools": 2,
            "attention": 0,
            "problem": None,
            **READ_HERE,
            "updateStatus": {"kind": "UpdateStatus"},
        },
    ]


ADVICE = (
    AdviceRow(cluster="a", version="5.0.0", channel="stable", newest=("5.1.2", "5.0.4"), risky=1, issues=("Failing",)),
    AdviceRow(cluster="lost", problem="no route to host"),
    AdviceRow(cluster="b", version="5.0.0", channel="stable", newest=("5.1.2", "5.0.4"), risky=1, issues=("Failing",)),
    AdviceRow(cluster="c", version="5.0.0", channel="fast", newest=("5.1.3",)),
)


def test_clusters_with_the_same_advice_are_one_line() -> None:
    """The largest group first."""
    assert lines(recommend_command.text(ADVICE)) == [
        "Updates of 4 clusters; 1 could not be read",
        "",
        "NUMBER  VERSION  CHANNEL  NEWEST RECOMMENDED  RISKY  ISSUES   CLUSTERS",
        "2       5.0.0    stable   5.1.2, 5.0.4        1      Failing  a, b",
        "1       5.0.0    fast     5.1.3               0      -        c",
        "",
        "Could not be read, so nothing is known about them:",
        "  lost: no route to host",
    ]
    assert lines(recommend_command.text(ADVICE[3:]))[0] == "Updates of 1 cluster"


def test_one_version_is_recommended_or_refused() -> None:
    """Then only the answer about that update distinguishes clusters, whatever other updates they have."""
    rows = (*ADVICE[:3], replace(ADVICE[2], cluster="d", risky=7), replace(ADVICE[2], cluster="e", refused="it is old"))
    assert lines(recommend_command.text(rows, "5.1.2"))[:5] == [
        "Update to 5.1.2 recommended: 3 of 5 clusters; 1 could not be read",
        "",
        "NUMBER  VERSION  CHANNEL  REFUSED      ISSUES   CLUSTERS",
        "3       5.0.0    stable   recommended  Failing  a, b, d",
        "1       5.0.0    stable   it is old    Failing  e",
    ]


def test_the_advice_for_a_fleet_for_programs() -> None:
    """Whose advice could not be read has a problem and nothing else."""
    assert recommend_command.data((replace(ADVICE[3], data={"x": 1}), ADVICE[1]))["clusters"] == [
        {
            "cluster": "c",
            "version": "5.0.0",
            "newestRecommended": ["5.1.3"],
            "problem": None,
            **READ_HERE,
            "advice": {"x": 1},
        },
        {
            "cluster": "lost",
            "version": None,
            "newestRecommended": [],
            "problem": "no route to host",
            **READ_HERE,
            "advice": None,
        },
    ]


def fleet(
    *risks: RiskRow, groups: tuple[Group, ...] = (), failed: tuple[tuple[str, str], ...] = (), **codes: Result
) -> Matrix:
    """Results of clusters by name."""
    return Matrix(clusters=tuple(codes), results=codes, rows=risks, groups=groups, failed=failed)


PAUSED = RiskRow(name="PoolPaused", severity="warning", message="m", fix="f", applies=("a", "b"), unknown=("c",))
KNOWN = RiskRow(name="Known", severity="info", message="m", fix="f", accepted=("a",), informs=("b",))


def test_few_clusters_are_columns() -> None:
    """Each risk with what it is in each evaluated cluster; what is accepted is named apart, all else by `-v`."""
    table = fleet(
        PAUSED,
        KNOWN,
        failed=(("d", "no report\n"),),
        a=Result.APPLY,
        b=Result.APPLY,
        c=Result.UNKNOWN,
        d=Result.COULD_NOT_RUN,
    )
    head = "Preflight of 4 clusters: 1 could not be evaluated, 2 with risks that apply, 1 not all known"
    legend = "  R refuses, X applies, ? unknown, a accepted, i informs, . not found"
    failed = ["", "Could not be evaluated, so nothing is known about them:", "  d: no report"]
    accepted = ["", "Accepted:", "  1 of 4: a: Known"]
    wide = Screen(100)
    assert lines(fleet_text.text(table, wide)) == [
        head,
        "",
        "  RISK        SEVERITY  a  b  c",
        "  PoolPaused  warning   X  X  ?",
        legend,
        *accepted,
        *failed,
    ]
    assert lines(fleet_text.text(table, wide, whole=True))[2:6] == [
        "  RISK        SEVERITY  a  b  c",
        "  PoolPaused  warning   X  X  ?",
        "  Known       info      a  i  .",
        legend,
    ]


def test_what_is_known_is_named_with_its_reason() -> None:
    """Risks that are alike together; what has grown says so, and the headline counts clusters with accepted risks."""
    known = {"severity": "info", "message": "m", "fix": "f", "accepted": ("a", "b"), "because": ("known: x", "late")}
    grown = replace(
        PAUSED, applies=("c",), unknown=(), grown=(("c\n", "PoolPaused was accepted for 1, and has grown: Node b"),)
    )
    codes = {"a": Result.CLEAR, "b": Result.CLEAR, "c": Result.APPLY}
    table = fleet(grown, RiskRow(name="A", **known), RiskRow(name="B", **known), **codes)
    shown = lines(fleet_text.text(table, Screen(100)))
    assert shown[0] == (
        "Preflight of 3 clusters: 1 with risks that apply, 2 with nothing in the way (2 with accepted risks)"
    )
    assert shown[5:] == [
        "",
        "Grown:",
        "  c\\n: PoolPaused was accepted for 1, and has grown: Node b",
        "",
        "Accepted:",
        "  2 of 3: a, b: A, B (known: x; late)",
    ]


def test_many_clusters_are_lists() -> None:
    """Where columns have no room; as many names as fit, and how many more."""
    names = [f"cluster-{number}" for number in range(1, 9)]
    table = fleet(
        replace(PAUSED, applies=tuple(names), unknown=()),
        RiskRow(name="Odd", severity="warning", message="m", fix="f", unknown=("cluster-1",)),
        **dict.fromkeys(names, Result.APPLY),
    )
    assert lines(fleet_text.text(table))[1:] == [
        "",
        "Risks that apply:",
        "  8 of 8: PoolPaused (warning): cluster-1, cluster-2, cluster-3 and 5 more",
        "",
        "Unknown:",
        "  1 of 8: Odd: cluster-1",
    ]
    assert lines(fleet_text.text(table, Screen(80), whole=True))[3:5] == [
        "  8 of 8: PoolPaused (warning): cluster-1, cluster-2, cluster-3, cluster-4,",
        "      cluster-5, cluster-6, cluster-7, cluster-8",
    ]


@pytest.mark.parametrize(
    ("room", "seen"),
    [
        pytest.param(13, "one, two, six", id="all fit to the cell"),
        pytest.param(12, "one and 2 more", id="one cell too few for all, and for two"),
        pytest.param(19, "one, two, six", id="more room"),
        pytest.param(1, "one and 2 more", id="one at least"),
    ],
)
def test_as_many_names_as_fit(room: int, seen: str) -> None:
    """And how many there are besides."""
    assert fleet_text.shorten_names(("one", "two", "six"), room) == seen


GROUPS = (
    Group(("a", "b"), ("PoolPaused",), ("Odd",), Result.APPLY),
    Group(("c",), (), (), Result.CLEAR),
    Group(("d", "e"), tuple(f"R{number}" for number in range(8)), (), Result.APPLY),
)


def test_clusters_with_the_same_result_are_named_together() -> None:
    """Of more than two clusters, and groups of more than one; of many risks the first six."""
    codes = {"a": Result.APPLY, "b": Result.APPLY, "c": Result.CLEAR, "d": Result.APPLY, "e": Result.APPLY}
    shown = lines(fleet_text.text(fleet(groups=GROUPS, **codes)))
    assert shown == [
        "Preflight of 5 clusters: 4 with risks that apply, 1 with nothing in the way",
        "",
        "Clusters with the same result:",
        "  2: a, b",
        "    PoolPaused applies; Odd is unknown",
        "  2: d, e",
        "    R0, R1, R2, R3, R4, R5 and 2 more apply",
    ]
    whole = lines(fleet_text.text(fleet(groups=GROUPS, **codes), whole=True))
    assert whole[5] == "  1: c"
    assert whole[8] == "    R0, R1, R2, R3, R4, R5, R6, R7 apply"
    assert len(lines(fleet_text.text(fleet(groups=GROUPS[:1], a=Result.APPLY, b=Result.APPLY)))) == 1


def test_long_fleets_are_cut() -> None:
    """After 25 risks and ten groups, with the flag that has the rest."""
    risks = tuple(
        RiskRow(name=f"Risk{number}", severity="info", message="m", fix="f", applies=("a",)) for number in range(27)
    )
    pairs = [(f"a{number}", f"b{number}") for number in range(12)]
    groups = tuple(Group(pair, (f"Risk{number}",), (), Result.APPLY) for number, pair in enumerate(pairs))
    table = fleet(*risks, groups=groups, **{name: Result.APPLY for pair in pairs for name in pair}, a=Result.APPLY)
    shown = lines(fleet_text.text(table))
    assert [line for line in shown if line.endswith("-v")] == ["  and 2 more risks: -v", "  and 2 more groups: -v"]
    assert sum(line.startswith("  1 of ") for line in shown) == 25
    assert sum(line.startswith("  2: ") for line in shown) == 10
    whole = lines(fleet_text.text(table, whole=True))
    assert not [line for line in whole if line.endswith("-v")]
    assert sum(line.startswith("  2: ") for line in whole) == 12


def answer(member: Member) -> str:
    """Returns the result of reading a cluster."""
    return f"read {member.name}"


def lost(member: Member, why: str) -> str:
    """Returns the result for a cluster that was not read."""
    return f"{member.name}: {why}"


@pytest.mark.parametrize("parallel", [2, 0])
def test_every_cluster_has_a_result_in_its_place(parallel: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Dumps and live clusters apart, and those that nobody can read next to them; progress is for terminals only."""
    members = [
        Member(name="broken", problem="no such file"),
        *(Member(name=f"dump-{number}", dump="d") for number in range(60)),
        *(Member(name=f"live-{number}", context="c") for number in range(40)),
    ]
    named, progress = NamedMembers(parallel=parallel), shared.Progress(len(members))
    results: list[str] = fleet_members.read_all(members, answer, lost, named, progress=progress)
    assert results == ["broken: no such file", *(f"read {member.name}" for member in members[1:])]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("parallel", "here"), [(0, True), (1, False), (None, False)])
def test_parallel_0_reads_in_the_process_itself(parallel: int | None, here: bool) -> None:
    """There a debugger can stop in a check; otherwise each cluster is read in a worker."""
    members = [Member(name="dump", dump="d"), Member(name="live", context="c")]
    named, progress = NamedMembers(parallel=parallel), shared.Progress(len(members))
    pids = fleet_members.read_all(members, lambda _: os.getpid(), lambda *_: 0, named, progress=progress)
    assert [pid == os.getpid() for pid in pids] == [here, here]


def test_a_live_cluster_is_asked_as_the_command_was_told() -> None:
    """By the member's own kubeconfig and context, and by the command's user."""
    of = Connection("usual", None)
    of.as_user, of.as_group = "admin", ("people",)
    to = cluster_sources.connection_to(Member(name="a", kubeconfig="own", context="c"), of)
    assert (to.kubeconfig, to.context, to.as_user, to.as_group) == ("own", "c", "admin", ("people",))
    assert cluster_sources.connection_to(Member(name="a"), of).kubeconfig == "usual"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(CommandError("the dump is empty"), "the dump is empty", id="of a command"),
        pytest.param(ValueError("it broke"), None, id="a bug of ours"),
    ],
)
def test_why_a_cluster_could_not_be_read(error: Exception, says: str | None) -> None:
    """In the words of a command about it alone; a bug is not passed off as its trouble."""
    assert fleet_members.problem_of(Member(name="a"), error) == says


def test_a_bug_is_not_passed_off_as_a_clusters_trouble() -> None:
    """The error of checks and of a rehearsal is reported as an error, and ends that cluster's work."""
    broken: Any = None
    with pytest.raises(AttributeError):
        readings.evaluate(
            Member(name="a", context="c"), connection=broken, requested_update=broken, now=NOW, with_places=False
        )
    with pytest.raises(AttributeError):
        rehearse_command.evaluate_member(
            Member(name="a", context="c"), connection=broken, release=broken, now=NOW, max_objects=1
        )


def test_a_cluster_that_cannot_be_rehearsed_is_a_result(tmp_path: Path) -> None:
    """Why not, in the words of a command about it alone: no copy is made, and no bug is reported."""
    unused: Any = None
    evaluated = rehearse_command.evaluate_member(
        Member(name="a", dump=str(tmp_path / "gone")), connection=unused, release=unused, now=NOW, max_objects=1
    )
    assert evaluated.problem.startswith("there is no ")
    assert str(tmp_path / "gone") in evaluated.problem
    assert (evaluated.findings.failed is not None and evaluated.findings.failed.message) == evaluated.problem


def test_a_note_is_told_once() -> None:
    """However many clusters have it."""
    seen: list[Any] = shared.warnings(["x", "y", "x"])
    assert [(stream, text) for stream, text in seen] == [("err", "warning: x\n"), ("err", "warning: y\n")]
