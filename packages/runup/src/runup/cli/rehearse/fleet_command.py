"""The command `runup fleet rehearse`: one release, rehearsed on a copy of each of many clusters.

Each cluster is read and rehearsed in a separate process, as `runup fleet preflight` evaluates them; the release is read
once. The copies lie in one folder of this process, so that a process which is killed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.fleet.command import SECTIONS, member_options, named_by
from runup.cli.lazy import Command
from runup.cli.options import version_option
from runup.cli.preflight.outputs import PREFLIGHT_FORMS, outputs_option, targets_of, verdict_options
from runup.cli.release.shared import REGISTRY_NAMES, access, registry_options, run_guarded

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.request import Flags
    from runup.fleet.control.readings import EvaluatedMember
    from runup.fleet.decide.members import Member
    from runup.process.connection import Connection
    from runup.rehearse.control.rehearsal import RehearsalTarget

_FLAGS = ("to", "to_image", "release_dir", "fail_on", "suppressions", "baseline", "verbose")


@click.command("rehearse", cls=Command, sections=SECTIONS)
@member_options
@click.option("--to-image", default="", metavar="IMAGE", help="The release's image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@version_option("--to", help="The version that the release must have.")
@click.option(
    "--operators",
    "declared",
    multiple=True,
    metavar="stuck:NAME",
    help="Let this ClusterOperator report nothing new, to see what waits for it; may be repeated.",
)
@outputs_option(PREFLIGHT_FORMS)
@click.option("-v", "--verbose", is_flag=True, help="Every risk, group and name, and a line for each cluster.")
@verdict_options
@click.option(
    "--max-objects",
    default=100_000,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Objects that are copied of one cluster at most; some 150 MiB of memory for each 10,000.",
)
@registry_options
@connection_options
@click.pass_context
def rehearse(
    ctx: click.Context,
    /,
    declared: tuple[str, ...],
    outputs: tuple[Any, ...],
    max_objects: int,
    **given: Any,
) -> int:
    """Rehearse one release on a copy of each of many clusters, changing nothing: which of them does it break, and how.

    Exit codes as for `runup rehearse`, of the worst cluster: 0 nothing in the way, 2 risks apply, 3 something is
    unknown, 1 a cluster could not be rehearsed.

    \b
      runup fleet rehearse --dumps DIR --to-image registry.example/release:5.2.0
      runup fleet rehearse --inventory clusters.yaml -l env=production --release-dir ./release -o junit=fleet.xml
    """
    from runup.cli.fleet import preflight_command
    from runup.evaluation.request import Flags
    from runup.process.ending_signals import exit_on_signal
    from runup.rehearse.control import releases
    from runup.rehearse.control.cluster_copy import SCRATCH_PREFIX

    if bool(given["to_image"]) == bool(given["release_dir"]):
        raise click.UsageError("name the target release of every cluster: --to-image or --release-dir", ctx)
    registry = {name: given.pop(name) for name in REGISTRY_NAMES}
    asked = {name: given.pop(name) for name in _FLAGS}
    flags = Flags(from_="", dumps=(), outputs=targets_of(outputs), check_timeout_s=0, **asked)
    named_members = named_by(given)
    if named_members.scheduler:
        raise click.UsageError("--engine dask: copies of clusters are made on this machine; leave it out", ctx)

    def rehearsals(
        connection: Connection, flags: Flags, access: Callable[[], Access], now: datetime, scratch: Path
    ) -> Callable[[Member], EvaluatedMember]:
        """Returns the function that rehearses the release on one cluster. Raises InputError for a bad release."""
        # Applying ends after half of a cluster's time limit, so that the findings until then are reported.
        limit_s = named_members.timeout_s / 2
        stuck = releases.parse_stuck(declared)
        release = releases.load_target(
            flags.release_dir, flags.to_image, to=flags.to, declared=stuck, access=access, limit_s=limit_s
        )
        release = replace(release, scratch=scratch)
        return partial(evaluate_member, connection=connection, release=release, now=now, max_objects=max_objects)

    def run() -> int:
        with (
            exit_on_signal(),
            tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as scratch,
        ):
            return preflight_command.run(
                connection_of(ctx),
                named_members,
                flags=flags,
                access=lambda: access(**registry, inner_registry=()),
                work_of=partial(rehearsals, scratch=Path(scratch)),
            )

    return run_guarded(run)


def evaluate_member(
    member: Member, *, connection: Connection, release: RehearsalTarget, now: datetime, max_objects: int
) -> EvaluatedMember:
    """Returns what a rehearsal on one cluster found; why it is missing is a result, too."""
    from kubekit.kube.clock import SystemClock
    from runup import __version__
    from runup.evaluation.evaluate import EvaluatedCluster
    from runup.evaluation.results import findings_of
    from runup.fleet.control.cluster_sources import connection_to
    from runup.fleet.control.fleet_members import problem_of
    from runup.fleet.control.readings import EvaluatedMember, unreadable_member
    from runup.rehearse.control import cluster_source, rehearsal, releases
    from runup.rehearse.decide.rehearsal_findings import as_rehearsed, report_of

    try:
        if member.dump:
            source = cluster_source.read_dump_source(Path(member.dump), max_objects=max_objects)
        else:
            config = connection_to(member, connection).config()
            source = asyncio.run(cluster_source.read_cluster_source(config, max_objects=max_objects))
        version = releases.version_of(source)
        rehearsed = asyncio.run(rehearsal.rehearse(source, release, SystemClock()))
        report = report_of(rehearsed, now=source.now or now, engine_version=__version__)
        evaluated = EvaluatedCluster(
            where=member.name, report=report, of_dump=bool(member.dump), known_id=version.spec.cluster_id
        )
        return EvaluatedMember(
            findings=as_rehearsed(findings_of(evaluated)), report=report, notes=rehearsed.account.notes
        )
    except Exception as error:
        problem = f"the copy could not be made: {error}" if isinstance(error, OSError) else problem_of(member, error)
        if problem is None:
            raise
        return unreadable_member(member, problem)
