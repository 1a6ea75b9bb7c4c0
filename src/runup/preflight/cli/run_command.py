"""The command `runup preflight run`: a preflight without an operator, of a cluster that is only read, or of dumps.

Takes the flags, evaluates each cluster (`evaluate`), makes one `Findings` per cluster, and prints them in one form. The
exit code is that of `--wait`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace as dataclass_replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.kube.clock import SystemClock
from kubekit.lang.files import contents
from runup.advice.decide import lifting
from runup.api.config_v1 import Release
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.render.text import err, machine, out
from runup.clusterversion.decide import preconditions
from runup.preflight.cli import evaluate
from runup.preflight.cli import suppressions as suppress
from runup.preflight.cli.catalog_options import images_of
from runup.preflight.cli.render import output_formats as forms
from runup.preflight.cli.render.cluster_result import ClusterResult
from runup.preflight.decide.findings import COULD_NOT_RUN, Findings, Risk, of_refusal, of_report, ordered
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED
from runup.preflight.decide.report import Report

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.cli.connection import Connection
    from runup.cli.render.text import Output
    from runup.preflight.cli.run_flags import Flags


def run(connection: Connection, flags: Flags, access: Callable[[], Access]) -> int:
    """Evaluates and prints the findings, and returns the exit code of the worst cluster."""
    if flags.to_image and flags.release_dir:
        raise CommandError("--to-image and --release-dir both name the release; give one of them")
    if flags.dumps and flags.prometheus_url:
        raise CommandError(
            "--prometheus-url: what Prometheus says now is about a cluster, not about a dump; leave it out"
        )
    rules = _suppressions(flags.suppressions)
    now = SystemClock().now()
    if flags.manifests:
        return _of_manifests(flags, rules, now)
    paths = [path for typed in flags.dumps for path in evaluate.dumps_in(Path(typed))] if flags.job is None else []
    judged = _judged(connection, flags, access(), paths, now)
    clusters, notes = _findings(judged, rules, now)
    if flags.dumps and flags.output == "sarif":
        clusters = [_placed(path, one) for path, one in zip(paths, clusters, strict=True)]
    write([*(err(f"warning: {note}\n") for note in notes), *_printed(clusters, flags, many=len(judged) > 1)])
    return forms.worst([forms.exit_code(one.found, flags.fail_on) for one in clusters])


def _of_manifests(flags: Flags, rules: Sequence[suppress.Suppression], now: datetime) -> int:
    """Prints what is wrong with manifests that no cluster has yet, and returns the exit code."""
    from runup.preflight.cli.manifest_files import of_manifests

    judged, places = of_manifests(flags.manifests, flags.to, now)
    clusters, notes = _findings([judged], rules, now)
    placed = [dataclass_replace(one, places=places) for one in clusters]
    write([*(err(f"warning: {note}\n") for note in notes), *_printed(placed, flags, many=False)])
    return forms.exit_code(placed[0].found, flags.fail_on)


def _judged(
    connection: Connection, flags: Flags, access: Access, paths: Sequence[Path], now: datetime
) -> list[evaluate.EvaluatedCluster]:
    """Evaluates the dumps, or the cluster: from here, or as a Job of its own."""
    if flags.job is not None:
        from runup.preflight.cli import in_cluster

        return [in_cluster.evaluate(connection, flags, flags.job, access)]
    release = evaluate.release_of(flags.release_dir, flags.to_image, access.of_administrators())
    wanted = evaluate.RequestedUpdate(
        release,
        flags.to,
        flags.from_,
        flags.to_image,
        flags.check_timeout_s,
        flags.prometheus_url,
        flags.prometheus_ca,
        images_of(flags.catalogs),
        flags.reads_catalogs,
        access,
        flags.helm_releases,
        flags.api_metrics,
    )
    if flags.dumps:
        return [evaluate.of_dump(path, wanted, now) for path in paths]
    return [evaluate.of_cluster(connection.config(), wanted)]


def _placed(path: Path, one: ClusterResult) -> ClusterResult:
    """Returns the result with the places of its objects in the dump."""
    from runup.preflight.cli.dump_places import places

    if not one.found.completed:
        return one
    return dataclass_replace(one, places=places(path, [item for risk in one.found.risks for item in risk.resources]))


def _suppressions(path: str) -> tuple[suppress.Suppression, ...]:
    if not path:
        return ()
    try:
        return suppress.parse(contents(path).decode("utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--suppressions {path}: cannot be read: {error}") from error


def _findings(
    judged: Sequence[evaluate.EvaluatedCluster], rules: Sequence[suppress.Suppression], now: datetime
) -> tuple[list[ClusterResult], list[str]]:
    clusters: list[ClusterResult] = []
    notes: list[str] = []
    for one in judged:
        notes += [f"{one.where}: {note}" for note in one.notes]
        whole = findings_of(one)
        risks, over = suppress.applied(whole.risks, rules, one.where, now.date())
        notes += over
        ordered_risks = replace(whole, risks=ordered(risks))
        clusters.append(ClusterResult(one.where, ordered_risks, one.lacking, one.collect, tried=now))
    notes += suppress.unused(rules, [(one.where, one.found.risks) for one in clusters])
    return clusters, list(dict.fromkeys(notes))


def findings_of(judged: evaluate.EvaluatedCluster) -> Findings:
    """Returns a report as findings; for a cluster that could not be evaluated, the reason is in the conditions."""
    report = judged.report
    if report is None:
        why = Condition(type=FAILED, status="True", reason="NotJudged", message=judged.problem)
        return Findings(source="", target="", conditions=(why,))
    return Findings(
        source=report.source_version,
        target=report.target_version,
        image=report.target_image,
        conditions=_conditions(report),
        risks=_risks(judged, report),
        checks=report.checks,
        observed=report.observed_time,
        of_dump=judged.of_dump,
        kind=report.cluster_kind,
        steps=report.steps,
    )


def _risks(judged: evaluate.EvaluatedCluster, report: Report) -> tuple[Risk, ...]:
    """Returns the report's risks, and those for which the operator itself would refuse the update."""
    cluster = judged.cluster
    if cluster is None:
        return ordered(of_report(risk, report, judged.accepted.get(risk.name)) for risk in report.risks)
    status = replace(cluster.status, desired=replace(cluster.status.desired, version=report.source_version))
    source = replace(cluster, status=status)
    risks = {}
    for risk in report.risks:
        acceptable = lifting.is_acceptable(source, report.target_version, risk.name, None)
        record = judged.accepted.get(risk.name) if acceptable else None
        risks[risk.name] = replace(of_report(risk, report, record), acceptable=acceptable)
    target = Release(version=report.target_version, image=report.target_image)
    for objection in preconditions.objections(source, target, available=True, recommended=None):
        if objection.blocking and objection.name not in risks:
            risks[objection.name] = of_refusal(objection.name, objection.message, report)
    return ordered(risks.values())


def _conditions(report: Report) -> tuple[Condition, ...]:
    if report.execution_status == "completed":
        return (Condition(type=COMPLETED, status="True", reason="ChecksCompleted"),)
    return (Condition(type=FAILED, status="True", reason="NotJudged", message=report.message),)


def _printed(found: Sequence[ClusterResult], flags: Flags, *, many: bool) -> list[Output]:
    output = flags.output
    if output in ("json", "yaml"):
        data: Any = [forms.data(one) for one in found] if many else forms.data(found[0])
        return [out(machine(data, output))]
    if output is not None:
        return [out(forms.FORMS[output](found))]
    if many:
        return [out(text) for text in forms.table_of(found, screen_of(sys.stdout))]
    # A single target that could not be judged is an error of the command, as with --wait.
    if found[0].found.exit_code == COULD_NOT_RUN and found[0].found.failed:
        raise CommandError(found[0].found.failed.message)
    return [out(forms.text(found[0], screen_of(sys.stdout), whole=flags.verbose))]
