"""The command `runup fleet preflight`: the preflight of each cluster, and what they have in common.

Each cluster is judged in a process of its own (`control.workers`) by the functions of `preflight run`; what comes back
is its findings. Suppressions and the baseline are applied here, to all of them at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kubekit.kube.clock import SystemClock
from kubekit.lang.text import one_line
from runup.cli.errors import CommandError
from runup.cli.fleet import parquet_file
from runup.cli.fleet.fleet_members import NamedMembers, problem_of, read_all, resolve_members, warnings
from runup.cli.fleet.render import fleet_text
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs, run_command
from runup.cli.preflight.render import output_formats as forms
from runup.cli.render.text import out
from runup.evaluation import dumps
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.request import RequestedUpdate, images_of
from runup.evaluation.results import (
    ClusterResult,
    baseline_in,
    findings_of,
    store_reports,
    suppressions_in,
    with_accepted,
)
from runup.facts.dump_places import Place
from runup.facts.target_release import release_of
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide.findings import Risk, exit_code, worst_code, worst_first

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.baseline import Baseline
    from runup.evaluation.options import Flags
    from runup.fleet.decide.members import Doubt, Member
    from runup.preflight.decide.findings import Findings
    from runup.process.connection import Connection
    from runup.report.report import Report

    WorkOf = Callable[["Connection", "Flags", Callable[[], "Access"], datetime], Callable[["Member"], "JudgedMember"]]


class JudgedMember(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one cluster, small enough to be sent from the process that read it.

    `cluster_id` tells dumps of one cluster, empty if it is not known.
    """

    findings: Findings
    report: Report | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    collect: str = ""
    places: Mapping[str, tuple[str, int]] = {}
    cluster_id: str = ""


def run(
    connection: Connection,
    named_members: NamedMembers,
    flags: Flags,
    access: Callable[[], Access],
    work_of: WorkOf | None = None,
) -> int:
    """Judges and prints the fleet, and returns the exit code of its worst cluster.

    `work_of` makes the function that judges one cluster; by default it is a preflight.
    """
    if flags.to_image and flags.release_dir:
        raise CommandError("--to-image and --release-dir both name the release; give one of them")
    if named_members.hub:
        named_members = msgspec.structs.replace(named_members, target=flags.to)
        # Raises CommandError for options that say what is checked: reports on a hub were made without them.
        refused = {"--from": flags.from_, "--to-image": flags.to_image, "--release-dir": flags.release_dir}
        for option, value in refused.items():
            if value:
                way_out = "the add-on says what the clusters check (`runup fleet addon`)"
                raise CommandError(f"--hub reads reports that were made before; {option} cannot change them: {way_out}")
    parquet_file.check(flags.outputs)
    rules, baseline = suppressions_in(flags.suppressions), baseline_in(flags.baseline)
    store = run_command.store_of(flags.store, connection)
    now = SystemClock().now()
    with resolve_members(named_members, connection) as (members, notes):
        work = (work_of or _preflights)(connection, flags, access, now)
        judged = read_all(members, work, unreadable_member, named_members)
    problems = []
    if store is not None:
        to_store = (
            (member.name, judged_member.report, flags.to, judged_member.problem)
            for member, judged_member in zip(members, judged, strict=True)
        )
        problems = store_reports(store, to_store, now)
    results = [_cluster_result(member, one, now) for member, one in zip(members, judged, strict=True)]
    marked, more_warnings = with_accepted(results, rules, baseline, now)
    # After what is accepted: a cluster that was silent before is no finer for it.
    marked = [_with_doubts(result, member.doubts) for member, result in zip(members, marked, strict=True)]
    notes += [f"{one_line(m.name)}: {note}" for m, one in zip(members, judged, strict=True) for note in one.notes]
    notes += [
        *_warn_of_repeated_clusters(members, judged),
        *more_warnings,
        *(store.notes() if store is not None else ()),
    ]
    code = worst_code([exit_code(one.findings, flags.fail_on) for one in marked])
    _print_results(marked, members, notes=notes, flags=flags, code=code, problems=problems, baseline=baseline)
    return code


def _preflights(
    connection: Connection, flags: Flags, access: Callable[[], Access], now: datetime
) -> Callable[[Member], JudgedMember]:
    requested_update = _requested_update(flags, access())
    with_places = any(form == "sarif" for form, _ in flags.outputs)
    return partial(judge, connection=connection, requested_update=requested_update, now=now, with_places=with_places)


def _requested_update(flags: Flags, access: Access) -> RequestedUpdate:
    release = release_of(flags.release_dir, flags.to_image, access.of_administrators())
    return RequestedUpdate(
        release=release,
        target=flags.to,
        source=flags.from_,
        image=flags.to_image,
        check_timeout_s=flags.check_timeout_s,
        catalogs=images_of(flags.catalogs),
        reads_catalogs=flags.reads_catalogs,
        access=access,
    )


def judge(
    member: Member,
    *,
    connection: Connection,
    requested_update: RequestedUpdate,
    now: datetime,
    with_places: bool,
) -> JudgedMember:
    """Returns the preflight of one cluster; why it could not be read is a result, too."""
    try:
        if member.report is not None:
            findings = findings_of(EvaluatedCluster(where=member.name, report=member.report))
            return JudgedMember(findings=findings, report=member.report)
        if member.dump:
            evaluated = evaluate_dump(member, requested_update, now)
        else:
            from runup.target.live import evaluate_cluster

            evaluated = evaluate_cluster(connection_to(member, connection).config(), requested_update)
        findings = findings_of(evaluated)
        locations = _dump_locations(member, findings) if with_places and member.dump and findings.completed else {}
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return unreadable_member(member, problem)
    cluster_id = evaluated.cluster.spec.cluster_id if evaluated.cluster is not None else ""
    return JudgedMember(
        findings=findings,
        report=evaluated.report,
        problem=evaluated.problem,
        notes=evaluated.notes,
        lacking=evaluated.lacking,
        collect=evaluated.collect,
        places=locations,
        cluster_id=cluster_id,
    )


def _with_doubts(result: ClusterResult, doubts: Sequence[Doubt]) -> ClusterResult:
    """Returns the result with what makes it doubtful, as risks that nobody can tell, and that nothing accepts."""
    unknown = tuple(
        Risk(
            name=doubt.risk,
            applies="Unknown",
            accepted=False,
            message=doubt.message,
            url="",
            severity="warning",
            acceptable=False,
        )
        for doubt in doubts
    )
    findings = msgspec.structs.replace(result.findings, risks=worst_first((*result.findings.risks, *unknown)))
    return replace(result, findings=findings)


def evaluate_dump(member: Member, requested_update: RequestedUpdate, now: datetime) -> EvaluatedCluster:
    """Returns the result for a dump; its texts name the place that was typed, where it was fetched to be read.

    Raises as reading the dump does.
    """
    evaluated = dumps.evaluate_dump(Path(member.dump), requested_update, now)
    notes = tuple(member.as_named(note) for note in evaluated.notes)
    return msgspec.structs.replace(
        evaluated, problem=member.as_named(evaluated.problem), notes=notes, collect=member.as_named(evaluated.collect)
    )


def _dump_locations(member: Member, findings: Findings) -> Mapping[str, tuple[str, int]]:
    from runup.facts.dump_places import find_places, uri_of

    resources = [item for risk in findings.risks for item in risk.resources]
    found_places = find_places(Path(member.dump), resources).items()
    local_uri = uri_of(Path(member.dump))
    shown_uri = member.address or local_uri
    return {text: (place.uri.replace(local_uri, shown_uri, 1), place.line) for text, place in found_places}


def unreadable_member(member: Member, problem: str) -> JudgedMember:
    """Returns the result of a cluster that could not be read."""
    return JudgedMember(findings=findings_of(EvaluatedCluster(where=member.name, problem=problem)), problem=problem)


def _cluster_result(member: Member, judged: JudgedMember, now: datetime) -> ClusterResult:
    places = {text: Place(uri, line) for text, (uri, line) in judged.places.items()}
    return ClusterResult(
        name=member.name,
        findings=judged.findings,
        lacking=judged.lacking,
        collect=judged.collect,
        places=places,
        tried=now,
    )


def _warn_of_repeated_clusters(members: Sequence[Member], judged: Sequence[JudgedMember]) -> list[str]:
    """Returns a warning for each cluster that is in the fleet under several names."""
    by_id: dict[str, list[str]] = {}
    for member, judged_member in zip(members, judged, strict=True):
        if judged_member.cluster_id:
            by_id.setdefault(judged_member.cluster_id, []).append(member.name)
    return [
        f"{fleet_text.shorten_names(names, 100)} are one cluster ({cluster_id}), which counts {len(names)} times"
        for cluster_id, names in by_id.items()
        if len(names) > 1
    ]


def _print_results(
    results: Sequence[ClusterResult],
    members: Sequence[Member],
    notes: list[str],
    flags: Flags,
    code: int,
    problems: Sequence[str],
    baseline: Baseline | None,
) -> None:
    """Writes and prints every output. Raises CommandError after that, for `problems` and files not written."""
    table = matrix([(result.name, result.findings) for result in results])
    shown = outputs.Shown(
        results=results,
        several=True,
        baseline=baseline,
        matrix=table,
        labels={member.name: member.labels for member in members},
        code=code,
    )
    problems = [*problems, *outputs.write_files(flags.outputs, shown)]
    printed = [out(str(outputs.render(form, shown))) for form, path in flags.outputs if path == outputs.STDOUT]
    if not printed:
        screen = screen_of(sys.stdout)
        printed = [out(section) for section in fleet_text.text(table, screen, whole=flags.verbose)]
        if flags.verbose:
            printed += [out("\n"), *(out(part) for part in forms.table_of(results, screen))]
    write([*warnings(notes), *printed])
    if problems:
        raise CommandError("\n".join(problems))
