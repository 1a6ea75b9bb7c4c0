"""The command `runup fleet recommend`: which updates each cluster is offered, clusters with one answer together."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.lang.text import count, one_line
from runup.cli.fleet.shared import Progress, grouped_problems, warnings
from runup.cli.output import screen_of, write
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, out
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.control.fleet_members import NamedMembers, problem_of, read_all, resolve_members
from runup.fleet.decide.matrix import group_alike

if TYPE_CHECKING:
    from runup.advice.control.recommend_input import RecommendInput
    from runup.cli.advice.recommend_text import RecommendFlags
    from runup.fleet.decide.members import Doubt, Member
    from runup.fleet.decide.newest_status import NewestStatus
    from runup.process.connection import Connection


class AdviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The advice for one cluster, small enough to be sent from the process that read it.

    `newest` is the newest recommended update of each minor version, `risky` the number of updates that are not
    recommended, `issues` what was found. `refused` says, for one version, why the update is not recommended. `data` is
    the machine form, only if it is printed. `observed` is when the advice was read that has travelled to a hub, and
    `doubts` say why it may no longer hold; their names are among the issues, and no `--accept` takes them away.
    """

    cluster: str
    version: str = ""
    channel: str = ""
    newest: tuple[str, ...] = ()
    risky: int = 0
    issues: tuple[str, ...] = ()
    refused: str = ""
    problem: str = ""
    data: dict[str, Any] | None = None
    observed: str = ""
    doubts: tuple[Doubt, ...] = ()


def run(connection: Connection, named_members: NamedMembers, flags: RecommendFlags, output: str | None) -> int:
    """Reads and prints the advice for each cluster; returns 1 if one could not be read, or is refused the version."""
    from runup.cli.advice.recommend_command import reject_bad_flags

    reject_bad_flags(flags.version, quiet=flags.quiet, outdated=flags.outdated)
    with resolve_members(named_members, connection) as (members, notes):
        work = partial(advice_of, connection=connection, flags=flags, whole=bool(output))
        lost = lambda member, why: AdviceRow(cluster=member.name, problem=why)  # noqa: E731
        with Progress(len(members)) as progress:
            rows = read_all(members, work, lost, named_members, progress=progress)
    printed = (
        [out(machine(data(rows), output))]
        if output
        else [out(section) for section in text(rows, flags.version, screen_of(sys.stdout))]
    )
    write([*warnings(notes), *printed])
    return 1 if any(row.problem or row.refused or row.doubts for row in rows) else 0


def advice_of(member: Member, *, connection: Connection, flags: RecommendFlags, whole: bool) -> AdviceRow:
    """Returns the advice for one cluster; why it could not be read is a result, too."""
    from runup.advice.control import recommend_input
    from runup.api import clusterversion_json as facts
    from runup.cli.advice import recommend_additions, recommend_text

    try:
        if member.status is not None:
            advice_input = _input_of(member.status)
        else:
            to = connection_to(member, connection)
            advice_input = recommend_input.read(to, dump=member.dump or None, mock=None, reject_bad_flags=lambda: None)
        cluster_facts = facts.read(advice_input.cluster)
        advice = recommend_text.advise(cluster_facts, advice_input.checks, advice_input.problem, flags)
        additions = recommend_additions.additional_output(
            advice_input.cluster,
            advice_input.config_maps,
            flags.version,
            advice_input.now,
            lapse=advice_input.lapse,
        )
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return AdviceRow(cluster=member.name, problem=problem)
    document = (
        recommend_text.as_data(cluster_facts, advice_input, flags=flags, advice=advice, more=additions)
        if whole
        else None
    )
    from runup.cli.advice.recommend_text import buckets, issue

    offered = buckets(cluster_facts).by_minor.values()
    newest = [next((update for update in updates if issue(update) is None), None) for updates in offered]
    doubts = member.doubts if member.status else ()
    observed = f"{member.status.observed_time:%Y-%m-%dT%H:%M:%SZ}" if member.status else ""
    return AdviceRow(
        cluster=member.name,
        version=cluster_facts.desired.version,
        channel=cluster_facts.channel,
        newest=tuple(update.release.version for update in newest if update is not None),
        risky=sum(issue(each) is not None for updates in offered for each in updates),
        issues=(*(doubt.risk for doubt in doubts), *sorted(advice.issues - flags.accept)),
        # Advice that may no longer hold refuses the version that is asked about.
        refused=advice.error or (doubts[0].message if doubts and flags.version else ""),
        data=document,
        observed=observed,
        doubts=doubts,
    )


def _input_of(status: NewestStatus) -> RecommendInput:
    """Returns what a cluster read of itself. Raises BadStatus if it could not."""
    from runup.advice.control.recommend_input import RecommendInput
    from runup.advice.decide.alert_conditions import Check
    from runup.api.clusterversion_json import Condition
    from runup.fleet.decide.newest_status import BadStatus

    if status.cluster_version is None:
        raise BadStatus(f"its updates could not be read there: {status.advice_problem or 'it does not say why'}")
    checks = (
        Check(Condition(each.type, each.status, each.reason, each.message), each.name) for each in status.prechecks
    )
    problem = one_line(status.precheck_problem)
    return RecommendInput(
        cluster=status.cluster_version, checks=tuple(checks), problem=problem, now=status.observed_time
    )


def text(rows: Sequence[AdviceRow], version: str = "", screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields the advice for the fleet, one line for all clusters with the same."""
    read_rows = [row for row in rows if not row.problem]
    lost = len(rows) - len(read_rows)
    total = count(len(rows), "cluster")
    recommended_text = (
        f"recommended: {sum(not row.refused for row in read_rows)} of {total}" if version else f"of {total}"
    )
    head = f"Update to {version} {recommended_text}" if version else f"Updates {recommended_text}"
    yield join_parts(wrap_text(f"{head}{f'; {lost} could not be read' if lost else ''}", screen))
    if read_rows:
        columns = (
            Column(title="NUMBER"),
            Column(title="VERSION"),
            Column(title="CHANNEL"),
            Column(title="REFUSED" if version else "NEWEST RECOMMENDED", flows=True),
            *(() if version else (Column(title="RISKY"),)),
            Column(title="ISSUES", flows=True),
            Column(title="CLUSTERS", flows=True),
        )

        def key(row: AdviceRow) -> tuple[Any, ...]:
            return row.version, row.channel, row.refused if version else (row.newest, row.risky), row.issues

        lines = []
        for _, group in group_alike(read_rows, key):
            first = group[0]
            answer = (first.refused or "recommended",) if version else (", ".join(first.newest), str(first.risky))
            names = ", ".join(one_line(row.cluster) for row in group)
            lines.append((str(len(group)), first.version, first.channel, *answer, ", ".join(first.issues), names))
        yield join_parts("\n", draw_table(Table(columns=columns, rows=[Row(line) for line in lines], gap=2), screen))
    if lost:
        yield join_parts("\nCould not be read, so nothing is known about them:\n")
        for names, problem in grouped_problems((row.cluster, row.problem) for row in rows if row.problem):
            yield wrap_text(f"{names}: {problem}", screen, first="  ", indent=4)


def data(rows: Sequence[AdviceRow]) -> dict[str, Any]:
    """Returns the fleet for programs: each cluster with what `upgrade recommend -o json` has, or why it has none."""
    return {
        "clusters": [
            {
                "cluster": row.cluster,
                "version": row.version or None,
                "newestRecommended": list(row.newest),
                "problem": row.problem or None,
                "observedTime": row.observed or None,
                "doubts": [{"name": doubt.risk, "message": doubt.message} for doubt in row.doubts],
                "advice": row.data,
            }
            for row in rows
        ]
    }
