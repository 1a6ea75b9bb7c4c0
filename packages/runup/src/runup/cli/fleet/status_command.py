"""The command `runup fleet status`: the progress of each cluster's update, and its issues."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from kubekit.lang.text import count, one_line
from runup.cli.errors import CommandError
from runup.cli.fleet.shared import Progress, grouped_problems, warnings
from runup.cli.output import screen_of, write
from runup.cli.preflight.outputs import STDOUT, Target, write_machine_files
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, out
from runup.fleet.control.fleet_members import NamedMembers, problem_of, read_all, resolve_members
from runup.fleet.control.member_status import read_hosted_statuses, read_status

if TYPE_CHECKING:
    from runup.fleet.decide.members import Doubt, Member
    from runup.process.connection import Connection
    from runup.updatestatus.control.status_reading import StatusReading
    from runup.updatestatus.decide.read_status import Report

_UPDATING = ("Unknown", "True", "False")


class StatusRow(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one cluster, small enough to be sent from the process that read it.

    `updating` is the status of the condition. Counts are of operators, worker pools and health rows. `obj` is the whole
    UpdateStatus, only if it is printed. `observed` is when a status was made that has travelled to a hub, and `doubts`
    say why it may no longer hold: the cluster is then neither updating nor not.
    """

    cluster: str
    updating: str = "Unknown"
    target: str = ""
    operators: tuple[int, int] = (0, 0)
    pools: tuple[int, int] = (0, 0)
    attention: int = 0
    first: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""
    obj: dict[str, Any] | None = None
    observed: str = ""
    doubts: tuple[Doubt, ...] = ()


def run(connection: Connection, named_members: NamedMembers, outputs: Sequence[Target], *, hosted: bool) -> int:
    """Reads and prints the status of each cluster; returns 1 if one could not be read, or may have changed since.

    With `hosted`, the hosted clusters of each management cluster follow it.
    """
    with resolve_members(named_members, connection) as (members, notes):
        work = partial(statuses_of, connection=connection, whole=bool(outputs), hosted=hosted)
        lost = lambda member, why: (StatusRow(cluster=member.name, problem=why),)  # noqa: E731
        with Progress(len(members)) as progress:
            of_members = read_all(members, work, lost, named_members, progress=progress)
        rows = [row for rows_of_member in of_members for row in rows_of_member]
    notes += [f"{one_line(row.cluster)}: {note}" for row in rows for note in row.notes]
    problems = write_machine_files(outputs, data(rows)) if outputs else []
    printed = [out(machine(data(rows), form)) for form, path in outputs if path == STDOUT]
    if not printed:
        printed = [out(section) for section in text(rows, screen_of(sys.stdout))]
    write([*warnings(notes), *printed])
    if problems:
        raise CommandError("\n".join(problems))
    return 1 if any(row.problem or row.doubts for row in rows) else 0


def statuses_of(member: Member, *, connection: Connection, whole: bool, hosted: bool) -> tuple[StatusRow, ...]:
    """Returns the status of one cluster and, with `hosted`, those of its hosted clusters."""
    own = status_of(member, connection=connection, whole=whole)
    if not hosted or own.problem:
        return (own,)
    try:
        readings = read_hosted_statuses(member, connection)
        return (own, *(_row(f"{member.name}/{each.cluster}", each, each.report(), whole=whole) for each in readings))
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return (own, StatusRow(cluster=f"{member.name}/hosted clusters", problem=problem))


def status_of(member: Member, *, connection: Connection, whole: bool) -> StatusRow:
    """Returns the status of one cluster; why it could not be read is a result, too."""
    try:
        reading = read_status(member, connection)
        report = reading.report()
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return StatusRow(cluster=member.name, problem=problem)
    row = _row(member.name, reading, report, whole=whole)
    if member.status is None:
        return row
    row = replace(row, observed=f"{member.status.observed_time:%Y-%m-%dT%H:%M:%SZ}")
    if not (doubts := member.doubts):
        return row
    # What is doubtful of a status that was made before needs attention first.
    attention = row.attention + len(doubts)
    return replace(row, updating="Unknown", attention=attention, first=doubts[0].message, doubts=doubts)


def _row(name: str, reading: StatusReading, report: Report, *, whole: bool) -> StatusRow:
    notes = (*reading.notes, *((reading.doubt,) if reading.doubt else ()))
    return StatusRow(
        cluster=name,
        updating=updating_of(report),
        target=report.target if report.cluster_version else "",
        operators=(sum(operator.updated for operator in report.operators), len(report.operators)),
        pools=(sum(pool.is_complete for pool in report.worker_pools), len(report.worker_pools)),
        attention=len(report.health),
        first=report.health[0].summary if report.health else "",
        notes=tuple(note.strip().removeprefix("warning: ") for note in notes),
        obj=reading.obj if whole else None,
    )


def updating_of(report: Report) -> str:
    """Returns whether the cluster is updating, as the status of a condition: True, False or Unknown."""
    # Workers may continue after the control plane, whose condition then says False.
    if report.is_updating:
        return "True"
    if report.updating is None or report.has_unknown_pools:
        return "Unknown"
    return report.updating.status


def headline(rows: Sequence[StatusRow]) -> str:
    """Returns one sentence with the number of clusters that are updating, and that could not be read."""
    read_rows = [row for row in rows if not row.problem]
    updating, unknown = (sum(row.updating == status for row in read_rows) for status in ("True", "Unknown"))
    counts = [f"{updating} updating"]
    counts += [f"of {unknown} it is not known"] if unknown else []
    counts += [f"{len(rows) - len(read_rows)} could not be read"] if len(read_rows) < len(rows) else []
    return f"{count(len(rows), 'cluster')}: {', '.join(counts)}"


def text(rows: Sequence[StatusRow], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields the status of the fleet: those that update first, then those that need attention."""
    yield join_parts(wrap_text(headline(rows), screen))
    read_rows = [row for row in rows if not row.problem]
    read_rows.sort(key=lambda row: ({"True": 0, "Unknown": 1}.get(row.updating, 2), -row.attention, row.cluster))
    if read_rows:
        columns = tuple(
            Column(title=title) for title in ("CLUSTER", "UPDATING", "TARGET", "OPERATORS", "POOLS", "ATTENTION")
        )
        lines = []
        for row in read_rows:
            updating = {"True": "yes", "False": "no"}.get(row.updating, "unknown")
            counts = (f"{done}/{total}" if total else "" for done, total in (row.operators, row.pools))
            lines.append(Row((row.cluster, updating, row.target, *counts, str(row.attention), row.first)))
        table = Table(columns=(*columns, Column(title="FIRST", flows=True)), rows=lines, gap=2)
        yield join_parts("\n", draw_table(table, screen))
    if len(read_rows) < len(rows):
        yield join_parts("\nCould not be read, so nothing is known about them:\n")
        for names, problem in grouped_problems((row.cluster, row.problem) for row in rows if row.problem):
            yield wrap_text(f"{names}: {problem}", screen, first="  ", indent=4)


def data(rows: Sequence[StatusRow]) -> dict[str, Any]:
    """Returns the fleet for programs: each cluster with its whole UpdateStatus, or why it has none."""
    return {
        "clusters": [
            {
                "cluster": row.cluster,
                "updating": row.updating if not row.problem else None,
                "target": row.target or None,
                "operatorsUpdated": row.operators[0],
                "operators": row.operators[1],
                "poolsUpdated": row.pools[0],
                "pools": row.pools[1],
                "attention": row.attention,
                "problem": row.problem or None,
                "observedTime": row.observed or None,
                "doubts": [{"name": doubt.risk, "message": doubt.message} for doubt in row.doubts],
                "updateStatus": row.obj,
            }
            for row in rows
        ]
    }
