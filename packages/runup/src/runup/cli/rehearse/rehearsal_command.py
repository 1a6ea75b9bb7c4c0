"""Runs `runup rehearse`: reads the cluster and the release, rehearses, and prints the report with the plan of changes.

In: the options. Out: the exit code. The copy is removed however the command ends: SIGINT and SIGTERM are turned into an
exception first.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kubekit.kube.clock import SystemClock
from kubekit.lang.version import Version, VersionError
from runup import __version__
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs
from runup.cli.preflight.render import output_formats as forms
from runup.cli.preflight.render import preflight_page
from runup.cli.rehearse.render import plan_text
from runup.cli.rehearse.render.plan_text import plan_section
from runup.cli.render.text import err, machine, out
from runup.dump.dump_files import BadDump
from runup.dump.large_lists import unpacked
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.results import ClusterResult, results_of, suppressions_in
from runup.preflight.decide.findings import Findings, exit_code
from runup.rehearse.control import cluster_source, releases
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.ordered_rehearsal import run_until_signal
from runup.rehearse.control.rehearsal import account_of, cluster_version_of, rehearse, rehearse_kubernetes
from runup.rehearse.decide import served_versions
from runup.rehearse.decide.rehearsal_findings import report_of
from runup.rehearse.decide.rehearsal_outcome import LeftOut, Rehearsal

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.process.connection import Connection
    from runup.rehearse.control.real_server import ServerPrograms

_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options as typed; "" or None where one was left out. `declared` are the values of `--operators`."""

    to: str
    to_image: str
    release_dir: str
    to_kubernetes: str
    dump: str
    declared: tuple[str, ...]
    output: str | None
    verbose: bool
    fail_on: str
    suppressions: str
    timeout_s: int
    max_objects: int
    server: str = "own"
    server_binaries: str = ""


def run(connection: Connection, flags: Flags, access: Callable[[], Access]) -> int:
    """Rehearses the update, prints the report, and returns the exit code. Raises CommandError."""
    stuck = releases.parse_stuck(flags.declared)
    rules = suppressions_in(flags.suppressions)
    clock = SystemClock()
    now = clock.now()
    # Before the cluster is read, which takes a while.
    programs = _find_programs(flags) if flags.server == "real" else None
    source = _read_cluster(connection, flags)
    # What the copy lacks is printed before any result.
    write([err(plan_text.account_text(account_of(source)))])
    rehearsed = (
        _rehearse_kubernetes(source, flags, programs, clock)
        if flags.to_kubernetes
        else _rehearse_release(source, flags, access=access, stuck=stuck, programs=programs, clock=clock)
    )
    write([err(plan_text.left_out_text(rehearsed.account.left_out[len(source.left_out) :]))])
    report = report_of(rehearsed, now=source.now or now, engine_version=__version__)
    evaluated = EvaluatedCluster(where=source.name, report=report, of_dump=bool(flags.dump))
    (result,), notes = results_of([evaluated], rules, None, now)
    reported = replace(result, findings=forbid_acceptance(result.findings))
    write([err(f"warning: {note}\n") for note in (*rehearsed.account.notes, *notes)])
    _print_results(rehearsed, reported, flags)
    return exit_code(reported.findings, flags.fail_on)


def _read_cluster(connection: Connection, flags: Flags) -> ClusterSource:
    """Returns the objects of the cluster, or of the dump. Raises CommandError if that is not a dump."""
    if not flags.dump:
        return run_until_signal(cluster_source.read_cluster_source(connection.config(), max_objects=flags.max_objects))
    try:
        return cluster_source.read_dump_source(Path(flags.dump), max_objects=flags.max_objects)
    except BadDump as error:
        raise CommandError(error.message) from error


def _find_programs(flags: Flags) -> ServerPrograms:
    """Returns the programs of a real API server. Raises CommandError."""
    from runup.rehearse.control.real_server import ProgramsMissing, find_programs

    try:
        return find_programs(flags.server_binaries)
    except ProgramsMissing as error:
        raise CommandError(str(error)) from error


def _rehearse_release(
    source: ClusterSource,
    flags: Flags,
    access: Callable[[], Access],
    stuck: tuple[str, ...],
    programs: ServerPrograms | None,
    clock: SystemClock,
) -> Rehearsal:
    """Rehearses an update to a release on a copy of `source`. Raises CommandError if the copy cannot be made."""
    version = releases.version_of(source)
    image = flags.to_image or ("" if flags.release_dir else releases.image_of_offered_update(version, flags.to))
    release = releases.load_target(
        flags.release_dir, image, to=flags.to, declared=stuck, access=access, limit_s=flags.timeout_s
    )
    return run_on_copy(rehearse(source, replace(release, server=programs), clock))


def run_on_copy(work: Coroutine[Any, Any, Rehearsal]) -> Rehearsal:
    """Returns the result of a rehearsal. Raises CommandError if the copy cannot be made."""
    try:
        return run_until_signal(work)
    except OSError as error:
        raise CommandError(f"the copy of the cluster could not be made: {error}") from error
    except MemoryError as error:
        text = "the copy of the cluster needs more memory than there is"
        raise CommandError(f"{text}: some 150 MiB for each 10,000 objects; rehearse on another machine") from error


def _rehearse_kubernetes(
    source: ClusterSource, flags: Flags, programs: ServerPrograms | None, clock: SystemClock
) -> Rehearsal:
    """Returns which of the cluster's objects are written in a version that the target Kubernetes no longer serves.

    With `programs`, those of a real API server, the objects are also applied to a copy on it, and what it refuses is
    returned too. Without them no copy is made: the objects' versions are compared with the table of removed versions.
    Raises CommandError if the cluster has a ClusterVersion, or is not older than the target.
    """
    if cluster_version_of(source) is not None:
        raise CommandError(
            "the cluster has a ClusterVersion, so its Kubernetes comes with a release: give --to, --to-image or "
            "--release-dir instead of --to-kubernetes"
        )
    target = _parse_version(flags.to_kubernetes, "--to-kubernetes")
    running = _parse_version(source.kubernetes, "the cluster's version")
    if target.minor <= running.minor:
        raise CommandError(f"--to-kubernetes {flags.to_kubernetes}: the cluster runs {source.kubernetes} already")
    kinds_not_read = tuple(_kinds_not_read(source, running.minor, target.minor))
    if programs is not None:
        limit_s, target_version = float(flags.timeout_s), flags.to_kubernetes
        tried = run_on_copy(rehearse_kubernetes(source, programs, clock, target=target_version, limit_s=limit_s))
        return replace(tried, source=str(running), target=str(target), unknown=kinds_not_read)
    return Rehearsal(
        account=account_of(source),
        source=str(running),
        target=str(target),
        unserved=served_versions.unserved(map(unpacked, source.objects), running.minor, target.minor),
        unknown=(*served_versions.kinds_beyond_table(target.minor), *kinds_not_read),
        kubernetes=True,
    )


def _kinds_not_read(source: ClusterSource, running: int, target: int) -> Iterator[LeftOut]:
    """Yields the kinds that lose a version between two minor versions and whose objects were not all read."""
    for group, kind in served_versions.kinds_losing_versions(running, target):
        if not source.knows(group, kind):
            text = "whether objects of it are written in a version that the target does not serve is not known"
            yield LeftOut(f"{kind}.{group}" if group else kind, text)


def _parse_version(text: str, option: str) -> Version:
    """Returns a version of Kubernetes with or without a patch version. Raises CommandError that names `option`."""
    try:
        return Version(text if text.count(".") > 1 else f"{text}.0")
    except VersionError as error:
        raise CommandError(f"{option} {text!r} is not a version of Kubernetes such as 1.36") from error


def forbid_acceptance(findings: Findings) -> Findings:
    """Returns the findings as risks that cannot be accepted on the cluster: its ClusterVersion has none of them."""
    return structs.replace(
        findings, risks=tuple(structs.replace(risk, suppressed_only=True) for risk in findings.risks)
    )


def _print_results(rehearsed: Rehearsal, cluster_result: ClusterResult, flags: Flags) -> None:
    """Prints the plan of changes and the findings, as text or in the format of `--output`."""
    output = flags.output
    if output in ("json", "yaml"):
        data: Any = {**forms.data(cluster_result), "rehearsal": plan_text.data(rehearsed)}
        write([out(machine(data, output))])
        return
    if output == "html":
        observed = cluster_result.findings.observed or cluster_result.tried
        write(
            [
                out(
                    preflight_page.page(
                        cluster_result.findings,
                        observed,
                        cluster=cluster_result.name,
                        extra_section=plan_section(rehearsed),
                    )
                )
            ]
        )
        return
    if output is not None:
        write([out(str(outputs.render(output, outputs.Shown(results=[cluster_result]))))])
        return
    screen = screen_of(sys.stdout)
    write(
        [
            out(plan_text.plan(rehearsed, whole=flags.verbose)),
            out(forms.text(cluster_result, screen, whole=flags.verbose)),
        ]
    )
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_PER_MIB
    write([err(f"{plan_text.effort_text(rehearsed)} Memory: {peak_mib} MiB at most.\n")])
