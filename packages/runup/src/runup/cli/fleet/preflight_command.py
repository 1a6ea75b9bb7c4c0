"""The command `runup fleet preflight`: the preflight of each cluster, and what they have in common.

Each cluster is evaluated in a worker process (`evaluation.workers`) by the functions of `preflight run`; what comes
back is its findings. Suppressions and the baseline are applied here as they arrive. The results then wait in a file
until all are there, so that the memory of this process hardly depends on the number of clusters.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kubekit.kube.clock import SystemClock
from runup.cli.errors import CommandError
from runup.cli.fleet import parquet_file
from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.shared import Progress, grouped_problems, shorten_names, warnings
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs, run_command
from runup.cli.preflight.render import output_formats as forms
from runup.cli.render.text import out
from runup.evaluation import results
from runup.evaluation.request import RequestedUpdate, images_of
from runup.facts.of_dump import Place
from runup.facts.target_release import release_of
from runup.fleet.control.fleet_members import NamedMembers, read_each, resolve_members
from runup.fleet.control.readings import EvaluatedMember, evaluate, unreadable_member
from runup.fleet.control.result_spool import ResultSpool
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide.findings import Risk, worst_code, worst_first

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.request import Flags
    from runup.fleet.decide.members import Doubt, Member
    from runup.process.connection import Connection

    WorkOf = Callable[
        ["Connection", "Flags", Callable[[], "Access"], datetime], Callable[["Member"], "EvaluatedMember"]
    ]


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
    lines = outputs.LineOutputs(flags.outputs)
    with closing(lines), resolve_members(named_members, connection) as (members, notes):
        work = (work_of or _preflights)(connection, flags, access, now)
        arrivals = _Arrivals(
            members,
            marker=results.AcceptedMarker(rules, baseline, now, fail_on=flags.fail_on),
            keeper=results.ReportKeeper(store, flags.to, now),
            lines=lines,
            now=now,
        )
        with Progress(len(members)) as progress:
            for index, evaluated in read_each(members, work, unreadable_member, named_members, progress=progress):
                arrivals.take(index, evaluated, progress.clear_line)
    code = worst_code(arrivals.codes)
    shown = outputs.Shown(
        results=arrivals.spool,
        several=True,
        baseline=baseline,
        matrix=matrix((result.name, result.findings) for result in arrivals.spool),
        labels={member.name: member.labels for member in members},
        code=code,
    )
    _print_results(shown, flags, notes=[*notes, *arrivals.notes()], problems=arrivals.problems)
    return code


class _Arrivals:
    """Takes the results of a fleet as they arrive: marks what is accepted, keeps reports, writes lines.

    Afterwards `spool` has the results in the order of the members, and `codes` their exit codes.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        marker: results.AcceptedMarker,
        keeper: results.ReportKeeper,
        lines: outputs.LineOutputs,
        now: datetime,
    ) -> None:
        self._members, self._marker, self._keeper, self._lines, self._now = members, marker, keeper, lines, now
        self.spool = ResultSpool(len(members))
        self.codes: set[int] = set()
        self._notes: dict[int, Sequence[str]] = {}
        self._names_by_id: dict[str, list[str]] = defaultdict(list)

    def take(self, index: int, evaluated: EvaluatedMember, clear_line: Callable[[], None]) -> None:
        """Takes the result of the member with this index."""
        member = self._members[index]
        self._keeper.keep(member.name, evaluated, of_dump=bool(member.dump))
        unmarked = results.ClusterResult(
            name=member.name,
            findings=evaluated.findings,
            lacking=evaluated.lacking,
            collect=evaluated.collect,
            places={text: Place(uri, line) for text, (uri, line) in evaluated.places.items()},
            tried=self._now,
            notes=tuple(evaluated.notes),
        )
        # After what is accepted: a cluster that was silent before is no finer for it.
        result = _with_doubts(self._marker.mark(unmarked), member.doubts)
        self.spool.put(index, result)
        self.codes.add(result.findings.exit_code)
        labels = {member.name: member.labels}
        self._lines.write(outputs.Shown(results=[result], several=True, labels=labels), clear_line)
        if evaluated.notes:
            self._notes[index] = evaluated.notes
        if cluster_id := evaluated.findings.cluster_id:
            self._names_by_id[cluster_id].append(member.name)

    def notes(self) -> list[str]:
        """Returns what its user should know about the results: the same note is named once."""
        pairs = ((self._members[index].name, note) for index in sorted(self._notes) for note in self._notes[index])
        return [
            *(f"{names}: {note}" for names, note in grouped_problems(pairs)),
            *(
                f"{shorten_names(sorted(names), 100)} are one cluster ({cluster_id}), which counts {len(names)} times"
                for cluster_id, names in sorted(self._names_by_id.items(), key=lambda item: min(item[1]))
                if len(names) > 1
            ),
            *self._marker.notes(),
            *self._keeper.notes(),
        ]

    @property
    def problems(self) -> list[str]:
        """The outputs and reports that could not be written."""
        return [*self._keeper.problems, *self._lines.problems]


def _preflights(
    connection: Connection, flags: Flags, access: Callable[[], Access], now: datetime
) -> Callable[[Member], EvaluatedMember]:
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
    with_places = outputs.shows_places(flags.outputs)
    return partial(evaluate, connection=connection, requested_update=requested_update, now=now, with_places=with_places)


def _with_doubts(result: results.ClusterResult, doubts: Sequence[Doubt]) -> results.ClusterResult:
    """Returns the result with its doubts as Unknown risks that cannot be accepted."""
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


def _print_results(shown: outputs.Shown, flags: Flags, *, notes: Sequence[str], problems: Sequence[str]) -> None:
    """Writes and prints every output. Raises CommandError after that, for `problems` and files not written."""
    # Lines have been written already.
    targets = [target for target in flags.outputs if target[0] != outputs.LINES]
    problems = [*problems, *outputs.write_files(targets, shown)]
    write(warnings(notes))
    write(map(out, outputs.render_for_stdout(targets, shown)))
    if not any(path == outputs.STDOUT for _, path in flags.outputs):
        assert shown.matrix is not None
        screen = screen_of(sys.stdout)
        write(map(out, fleet_text.text(shown.matrix, screen, whole=flags.verbose)))
        if flags.verbose:
            write([out("\n"), *map(out, forms.table_of(shown.results, screen))])
    if problems:
        raise CommandError("\n".join(problems))
