"""Evaluates one cluster of a fleet, in a worker process.

What is returned can be sent to the process that prints it. Why a cluster could not be read is a result, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from runup.evaluation import dumps
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.request import RequestedUpdate
from runup.evaluation.results import findings_of
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.control.fleet_members import problem_of

if TYPE_CHECKING:
    from runup.fleet.decide.members import Member
    from runup.preflight.decide.findings import Findings
    from runup.process.connection import Connection
    from runup.report.report import Report


class EvaluatedMember(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one cluster, small enough to be sent from the process that read it."""

    findings: Findings
    report: Report | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    collect: str = ""
    failed_at: datetime | None = None
    places: Mapping[str, tuple[str, int]] = {}


def evaluate(
    member: Member,
    *,
    connection: Connection,
    requested_update: RequestedUpdate,
    now: datetime,
    with_places: bool,
) -> EvaluatedMember:
    """Returns the preflight of one cluster; why it could not be read is a result, too."""
    try:
        if member.report is not None:
            findings = findings_of(
                EvaluatedCluster(where=member.name, report=member.report, known_id=member.report.cluster_id)
            )
            return EvaluatedMember(findings=findings, report=member.report)
        if member.dump:
            evaluated = evaluate_dump(member, requested_update, now)
        else:
            from runup.target.live import evaluate_cluster

            evaluated = evaluate_cluster(connection_to(member, connection).config(), requested_update)
        findings = findings_of(evaluated)
        places: dict[str, tuple[str, int]] = {}
        if with_places and member.dump and findings.completed:
            from runup.facts.of_dump import find_places, uri_of

            resources = [item for risk in findings.risks for item in risk.resources]
            local_uri = uri_of(Path(member.dump))
            shown_uri = member.address or local_uri
            for text, place in find_places(Path(member.dump), resources).items():
                places[text] = (place.uri.replace(local_uri, shown_uri, 1), place.line)
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return unreadable_member(member, problem)
    return EvaluatedMember(
        findings=findings,
        report=evaluated.report,
        problem=evaluated.problem,
        notes=evaluated.notes,
        lacking=evaluated.lacking,
        collect=evaluated.collect,
        failed_at=evaluated.failed_at,
        places=places,
    )


def evaluate_dump(member: Member, requested_update: RequestedUpdate, now: datetime) -> EvaluatedCluster:
    """Returns the result for a dump; its texts name the place that was typed, where it was fetched to be read.

    Raises as reading the dump does.
    """
    evaluated = dumps.evaluate_dump(Path(member.dump), requested_update, now)
    notes = tuple(member.as_named(note) for note in evaluated.notes)
    return replace(
        evaluated, problem=member.as_named(evaluated.problem), notes=notes, collect=member.as_named(evaluated.collect)
    )


def unreadable_member(member: Member, problem: str) -> EvaluatedMember:
    """Returns the result of a cluster that could not be read."""
    return EvaluatedMember(findings=findings_of(EvaluatedCluster(where=member.name, problem=problem)), problem=problem)
