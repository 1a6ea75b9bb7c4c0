"""Runs `runup rehearse`: reads the cluster and the release, rehearses, and prints the report with the plan of changes.

In: the options. Out: the exit code. The copy is removed however the command ends: SIGINT and SIGTERM are turned into an
exception first.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kubekit.kube.clock import SystemClock
from runup import __version__
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs
from runup.cli.preflight.render import output_formats as forms
from runup.cli.preflight.render import preflight_page
from runup.cli.rehearse import plan_text
from runup.cli.render.text import err, machine, out
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.results import ClusterResult, results_of, suppressions_in
from runup.rehearse.control import cluster_source, releases
from runup.rehearse.control.rehearsal import account_of, rehearse
from runup.rehearse.decide import rehearsal_findings
from runup.rehearse.decide.rehearsal_outcome import Rehearsal

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.process.connection import Connection

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
    timeout: int
    max_objects: int
    server: str
    server_binaries: str


def run(connection: Connection, flags: Flags, access: Callable[[], Access]) -> int:
    """Rehearses the update, prints the report, and returns the exit code. Raises RunupError."""
    stuck = releases.parse_stuck(flags.declared)
    rules = suppressions_in(flags.suppressions)
    now = SystemClock().now()
    programs = None
    # Before the cluster is read, which takes a while.
    if flags.server == "real":
        from runup.rehearse.control.real_server import ProgramsMissing, find_programs

        try:
            programs = find_programs(flags.server_binaries)
        except ProgramsMissing as error:
            raise CommandError(str(error)) from error
    if flags.dump:
        source = cluster_source.read_dump_source(Path(flags.dump), max_objects=flags.max_objects)
    else:
        reading = cluster_source.read_cluster_source(connection.config(), max_objects=flags.max_objects)
        source = releases.run_until_signal(reading)
    # What the copy lacks is printed before any result.
    write([err(plan_text.account_text(account_of(source)))])
    if flags.to_kubernetes:
        rehearsed = releases.rehearse_without_release(source, flags.to_kubernetes, programs, limit_s=flags.timeout)
    else:
        version = releases.version_of(source)
        image = flags.to_image or ("" if flags.release_dir else releases.image_of_offered_update(version, flags.to))
        release = releases.load_target(
            flags.release_dir, image, to=flags.to, declared=stuck, access=access, limit_s=flags.timeout
        )
        rehearsed = releases.run_on_copy(rehearse(source, replace(release, server=programs), SystemClock()))
    write([err(plan_text.left_out_text(rehearsed.account.left_out[len(source.left_out) :]))])
    report = rehearsal_findings.report_of(rehearsed, now=source.now or now, engine_version=__version__)
    evaluated = EvaluatedCluster(where=source.name, report=report, of_dump=bool(flags.dump))
    (result,), notes = results_of([evaluated], rules, None, now, fail_on=flags.fail_on)
    result = replace(result, findings=rehearsal_findings.as_rehearsed(result.findings))
    write([err(f"warning: {note}\n") for note in (*rehearsed.account.notes, *notes)])
    write(map(out, _rendered(rehearsed, result, flags)))
    if flags.output is None:
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_PER_MIB
        write([err(f"{plan_text.effort_text(rehearsed)} Memory: {peak_mib} MiB at most.\n")])
    return result.findings.exit_code


def _rendered(rehearsed: Rehearsal, result: ClusterResult, flags: Flags) -> Iterator[str]:
    """Yields the plan of changes and the findings, as text or in the format of `--output`."""
    if flags.output is None:
        yield plan_text.plan(rehearsed, whole=flags.verbose)
        yield forms.text(result, screen_of(sys.stdout), whole=flags.verbose)
    elif flags.output in ("json", "yaml"):
        yield machine({**forms.data(result), "rehearsal": plan_text.data(rehearsed)}, flags.output)
    elif flags.output == "html":
        plan_section = plan_text.plan_section(rehearsed)
        observed = result.findings.observed or result.tried
        yield preflight_page.page(result.findings, observed, cluster=result.name, extra_section=plan_section)
    else:
        yield from map(str, outputs.render(flags.output, outputs.Shown(results=[result])))
