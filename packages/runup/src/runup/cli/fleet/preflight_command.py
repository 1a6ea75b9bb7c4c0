"""The command `runup fleet preflight`: the preflight of each cluster, and what they have in common.

Each cluster is evaluated in a worker process (`evaluation.workers`) by the functions of `preflight run`; what comes
back is its findings. Suppressions and the baseline are applied here, to all of them at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kubekit.kube.clock import SystemClock
from kubekit.lang.text import one_line
from runup.cli.errors import CommandError
from runup.cli.fleet import parquet_file
from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.shared import Progress, warnings
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs, run_command
from runup.cli.preflight.render import output_formats as forms
from runup.cli.render.text import out
from runup.evaluation import results
from runup.evaluation.request import RequestedUpdate, images_of
from runup.facts.of_dump import Place
from runup.facts.target_release import release_of
from runup.fleet.control.fleet_members import NamedMembers, read_all, resolve_members
from runup.fleet.control.readings import JudgedMember, judge, unreadable_member
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide.findings import Risk, worst_code, worst_first

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.baseline import Baseline
    from runup.evaluation.request import Flags
    from runup.fleet.decide.members import Doubt, Member
    from runup.process.connection import Connection

    WorkOf = Callable[["Connection", "Flags", Callable[[], "Access"], datetime], Callable[["Member"], "JudgedMember"]]


def run(
    connection: Connection,
    named_members: NamedMembers,
    flags: Flags,
    access: Callable[[], Access],
    work_of: WorkOf | None = None,
) -> int:
    """Evaluates and prints the fleet, and returns the exit code of its worst cluster.

    `work_of` makes the function that evaluates one cluster; by default it is a preflight.
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
    rules, baseline = results.suppressions_in(flags.suppressions), results.baseline_in(flags.baseline)
    store = run_command.store_of(flags.store, connection)
    now = SystemClock().now()
    with resolve_members(named_members, connection) as (members, notes):
        work = (work_of or _preflights)(connection, flags, access, now)
        judged = read_all(members, work, unreadable_member, named_members, progress=Progress(len(members)))
    pairs = list(zip(members, judged, strict=True))
    problems = []
    if store is not None:
        to_store = (
            (
                member.name,
                results.report_to_keep(one.report, flags.to, one.problem, one.failed_at),
                flags.to,
                one.problem,
            )
            for member, one in pairs
        )
        problems = results.store_reports(store, to_store, now)
    unmarked = [
        results.ClusterResult(
            name=member.name,
            findings=one.findings,
            lacking=one.lacking,
            collect=one.collect,
            places={text: Place(uri, line) for text, (uri, line) in one.places.items()},
            tried=now,
        )
        for member, one in pairs
    ]
    marked, more_warnings = results.with_accepted(unmarked, rules, baseline, now, fail_on=flags.fail_on)
    # After what is accepted: a cluster that was silent before is no finer for it.
    marked = [_with_doubts(result, member.doubts) for member, result in zip(members, marked, strict=True)]
    notes += [f"{one_line(member.name)}: {note}" for member, one in pairs for note in one.notes]
    by_id: dict[str, list[str]] = {}
    for member, one in pairs:
        by_id.setdefault(one.findings.cluster_id, []).append(member.name)
    notes += [
        f"{fleet_text.shorten_names(names, 100)} are one cluster ({cluster_id}), which counts {len(names)} times"
        for cluster_id, names in by_id.items()
        if cluster_id and len(names) > 1
    ]
    notes += [*more_warnings, *(store.notes() if store is not None else ())]
    code = worst_code(one.findings.exit_code for one in marked)
    _print_results(marked, members, notes=notes, flags=flags, code=code, problems=problems, baseline=baseline)
    return code


def _preflights(
    connection: Connection, flags: Flags, access: Callable[[], Access], now: datetime
) -> Callable[[Member], JudgedMember]:
    """Returns the function that does the preflight of one cluster. Raises RunupError for a bad release."""
    registries = access()
    requested_update = RequestedUpdate(
        release=release_of(flags.release_dir, flags.to_image, registries.of_administrators()),
        target=flags.to,
        source=flags.from_,
        image=flags.to_image,
        check_timeout_s=flags.check_timeout_s,
        catalogs=images_of(flags.catalogs),
        reads_catalogs=flags.reads_catalogs,
        access=registries,
    )
    with_places = any(form == "sarif" for form, _ in flags.outputs)
    return partial(judge, connection=connection, requested_update=requested_update, now=now, with_places=with_places)


def _with_doubts(result: results.ClusterResult, doubts: Sequence[Doubt]) -> results.ClusterResult:
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


def _print_results(
    marked: Sequence[results.ClusterResult],
    members: Sequence[Member],
    notes: list[str],
    flags: Flags,
    code: int,
    problems: Sequence[str],
    baseline: Baseline | None,
) -> None:
    """Writes and prints every output. Raises CommandError after that, for `problems` and files not written."""
    table = matrix([(result.name, result.findings) for result in marked])
    shown = outputs.Shown(
        results=marked,
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
            printed += [out("\n"), *(out(part) for part in forms.table_of(marked, screen))]
    write([*warnings(notes), *printed])
    if problems:
        raise CommandError("\n".join(problems))
