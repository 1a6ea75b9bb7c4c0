"""The command `runup preflight run`: a preflight without an operator, of a cluster that is only read, or of dumps.

Takes the flags, evaluates each cluster (`evaluate`), makes one `Findings` per cluster, and prints them in one form. The
exit code is that of `--wait`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace as dataclass_replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal
from kubekit.kube.clock import SystemClock
from kubekit.lang.files import read_limited
from runup.advice.decide import lifting
from runup.api.config_v1 import Release
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.render.text import err, machine, out
from runup.clusterversion.decide import preconditions
from runup.dump.dump_files import name_of
from runup.preflight.cli import evaluate, outputs
from runup.preflight.cli import suppressions as suppress
from runup.preflight.cli.catalog_options import images_of
from runup.preflight.cli.render import output_formats as forms
from runup.preflight.cli.render import report_changes
from runup.preflight.cli.render.cluster_result import ClusterResult
from runup.preflight.decide import baseline as baselines
from runup.preflight.decide.baseline import Baseline
from runup.preflight.decide.findings import COULD_NOT_RUN, Findings, Risk, risk_of_refusal, risk_of_report, worst_first
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED
from runup.preflight.decide.report import Report

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.cli.connection import Connection
    from runup.cli.render.text import Output
    from runup.preflight.cli.run_flags import Flags
    from runup.preflight.control.stores import Store


def run(connection: Connection, flags: Flags, access: Callable[[], Access]) -> int:
    """Evaluates and prints the findings, and returns the exit code of the worst cluster."""
    if flags.to_image and flags.release_dir:
        raise CommandError("--to-image and --release-dir both name the release; give one of them")
    if flags.dumps and flags.prometheus_url:
        raise CommandError(
            "--prometheus-url: what Prometheus says now is about a cluster, not about a dump; leave it out"
        )
    rules, baseline = suppressions_in(flags.suppressions), baseline_in(flags.baseline)
    store = store_of(flags.store, connection)
    now = SystemClock().now()
    if flags.manifests:
        return _evaluate_manifests(flags, rules, baseline, now)
    paths = [path for typed in flags.dumps for path in evaluate.dumps_in(Path(typed))] if flags.job is None else []
    if flags.store or flags.baseline:
        _refuse_one_name(paths)
    evaluated_clusters = _evaluate_all(connection, flags, access(), paths, now)
    problems = []
    if store is not None:
        names = [evaluated.where for evaluated in evaluated_clusters] if flags.dumps else [_name_of(connection)]
        reports_to_keep = [
            (name, evaluated.report, flags.to, evaluated.problem)
            for name, evaluated in zip(names, evaluated_clusters, strict=True)
        ]
        problems = store_reports(store, reports_to_keep, now)
    clusters, notes = results_of(evaluated_clusters, rules, baseline, now)
    notes += store.notes() if store is not None else ()
    if flags.dumps and any(form == "sarif" for form, _ in flags.outputs):
        clusters = [placed(path, cluster_result) for path, cluster_result in zip(paths, clusters, strict=True)]
    _print(clusters, notes, flags, several=len(evaluated_clusters) > 1, problems=problems, baseline=baseline)
    return forms.worst_code([forms.exit_code(cluster_result.findings, flags.fail_on) for cluster_result in clusters])


def store_of(typed: str, connection: Connection) -> Store | None:
    """Returns the store, None without one; whether it can be written is looked at before anything is read.

    Raises Terminal.
    """
    if not typed:
        return None
    from runup.preflight.control import stores

    store = stores.open_store(typed, connection.config)
    store.check()
    return store


def _refuse_one_name(paths: Sequence[Path]) -> None:
    """Raises CommandError for dumps that a store or a baseline could not tell apart."""
    by_name: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        if name in by_name:
            problem = f"{by_name[name]} and {path} are both called {name}"
            raise CommandError(
                f"{problem}, and --store and --baseline go by the name; rename one, or give one at a time"
            )
        by_name[name] = path


def _evaluate_manifests(
    flags: Flags, rules: Sequence[suppress.Suppression], baseline: Baseline | None, now: datetime
) -> int:
    """Prints what is wrong with manifests that no cluster has yet, and returns the exit code."""
    from runup.preflight.cli.manifest_files import evaluate_manifests

    evaluated, places = evaluate_manifests(flags.manifests, flags.to, now)
    clusters, notes = results_of([evaluated], rules, baseline, now)
    results = [dataclass_replace(cluster_result, places=places) for cluster_result in clusters]
    _print(results, notes, flags, several=False, baseline=baseline)
    return forms.exit_code(results[0].findings, flags.fail_on)


def _evaluate_all(
    connection: Connection, flags: Flags, access: Access, paths: Sequence[Path], now: datetime
) -> list[evaluate.EvaluatedCluster]:
    """Evaluates the dumps, or the cluster: from here, or as a Job of its own."""
    if flags.job is not None:
        from runup.preflight.cli import in_cluster

        return [in_cluster.evaluate(connection, flags, flags.job, access)]
    release = evaluate.release_of(flags.release_dir, flags.to_image, access.of_administrators())
    requested_update = evaluate.RequestedUpdate(
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
        return [evaluate.evaluate_dump(path, requested_update, now) for path in paths]
    return [evaluate.evaluate_cluster(connection.config(), requested_update)]


def placed(path: Path, cluster_result: ClusterResult) -> ClusterResult:
    """Returns the result with the places of its objects in the dump."""
    from runup.preflight.cli.dump_places import find_places

    if not cluster_result.findings.completed:
        return cluster_result
    return dataclass_replace(
        cluster_result,
        places=find_places(path, [item for risk in cluster_result.findings.risks for item in risk.resources]),
    )


def suppressions_in(path: str) -> tuple[suppress.Suppression, ...]:
    """Returns the entries of the file; none without one. Raises CommandError."""
    if not path:
        return ()
    try:
        return suppress.parse(read_limited(path).decode("utf-8"), path)
    except (OSError, ValueError) as error:  # ValueError: it is not UTF-8, or a NUL is in the name
        why = (error.strerror if isinstance(error, OSError) else "") or error
        raise CommandError(f"--suppressions {path}: cannot be read: {why}") from error


def baseline_in(path: str) -> Baseline | None:
    """Returns the baseline of the file, None without one. Raises CommandError."""
    if not path:
        return None
    import msgspec

    try:
        return baselines.read(msgspec.json.decode(read_limited(path)), path)
    except OSError as error:
        raise CommandError(f"--baseline {path}: cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        hint = "give what `-o json` of an earlier run printed"
        raise CommandError(f"--baseline {path}: is not JSON ({error}); {hint}") from error
    except ValueError as error:  # a NUL is in the name; what is not JSON is a ValueError, too
        raise CommandError(f"--baseline {path}: cannot be read: {error}") from error
    except Terminal as error:
        raise CommandError(f"--baseline {error.message}") from error


def _name_of(connection: Connection) -> str:
    """Returns the name under which a live cluster's reports are kept, as `runup fleet` has it: that of the context."""
    config = connection.config()
    return config.context or config.address


def store_reports(store: Store, results: Iterable[tuple[str, Report | None, str, str]], now: datetime) -> list[str]:
    """Keeps the report of each cluster: (name, report, typed target, why there is none). Returns what went wrong.

    A report that has no room costs the others nothing; a store that cannot be written is tried once.
    """
    from runup.preflight.control import report_store

    problems = []
    for name, report, target, problem in results:
        try:
            store.keep(
                _replace_invalid_utf8(name),
                report or report_store.failed_report(target, _replace_invalid_utf8(problem), now),
                now,
            )
        except Terminal as error:
            problems.append(error.message)
            if error.reason != report_store.NO_ROOM:
                break
    return problems


def _replace_invalid_utf8(text: str) -> str:
    """Returns the text with escapes for what is no UTF-8, such as the bytes of a folder's name."""
    return text.encode("utf-8", "backslashreplace").decode()


def results_of(
    evaluated_clusters: Sequence[evaluate.EvaluatedCluster],
    rules: Sequence[suppress.Suppression],
    baseline: Baseline | None,
    now: datetime,
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the result of each cluster with its accepted risks, and notes for the reader."""
    notes = [f"{evaluated.where}: {note}" for evaluated in evaluated_clusters for note in evaluated.notes]
    results = [
        ClusterResult(evaluated.where, findings_of(evaluated), evaluated.lacking, evaluated.collect, tried=now)
        for evaluated in evaluated_clusters
    ]
    marked, more_warnings = with_accepted(results, rules, baseline, now)
    return marked, list(dict.fromkeys([*notes, *more_warnings]))


def with_accepted(
    results: Sequence[ClusterResult], rules: Sequence[suppress.Suppression], baseline: Baseline | None, now: datetime
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the results with what is suppressed, or known from a baseline, marked as accepted; and warnings."""
    clusters: list[ClusterResult] = []
    notes: list[str] = []
    for cluster_result in results:
        risks, warnings = suppress.apply_suppressions(
            cluster_result.findings.risks, rules, cluster_result.name, now.date()
        )
        notes += warnings
        if baseline is not None:
            in_baseline = baselines.baseline_of_cluster(baseline, cluster_result.name, alone=len(results) == 1)
            risks = baselines.mark_known_risks(risks, in_baseline, baseline.name)
        clusters.append(
            dataclass_replace(cluster_result, findings=replace(cluster_result.findings, risks=worst_first(risks)))
        )
    if baseline is not None:
        notes += baselines.target_mismatches(
            baseline, {cluster_result.name: cluster_result.findings.target for cluster_result in results}
        )
    notes += suppress.unused_entries(
        rules, [(cluster_result.name, cluster_result.findings.risks) for cluster_result in clusters]
    )
    return clusters, list(dict.fromkeys(notes))


def findings_of(evaluated: evaluate.EvaluatedCluster) -> Findings:
    """Returns a report as findings; for a cluster that could not be evaluated, the reason is in the conditions."""
    report = evaluated.report
    if report is None:
        failure = Condition(type=FAILED, status="True", reason="NotJudged", message=evaluated.problem)
        return Findings(source="", target="", conditions=(failure,))
    return Findings(
        source=report.source_version,
        target=report.target_version,
        image=report.target_image,
        conditions=_preflight_conditions(report),
        risks=_risks(evaluated, report),
        checks=report.checks,
        observed=report.observed_time,
        of_dump=evaluated.of_dump,
        kind=report.cluster_kind,
        steps=report.steps,
    )


def _risks(evaluated: evaluate.EvaluatedCluster, report: Report) -> tuple[Risk, ...]:
    """Returns the report's risks, and those for which the operator itself would refuse the update."""
    cluster = evaluated.cluster
    if cluster is None:
        return worst_first(risk_of_report(risk, report, evaluated.accepted.get(risk.name)) for risk in report.risks)
    status = replace(cluster.status, desired=replace(cluster.status.desired, version=report.source_version))
    source = replace(cluster, status=status)
    risks = {}
    for risk in report.risks:
        acceptable = lifting.is_acceptable(source, report.target_version, risk.name, None)
        record = evaluated.accepted.get(risk.name) if acceptable else None
        risks[risk.name] = replace(risk_of_report(risk, report, record), acceptable=acceptable)
    target = Release(version=report.target_version, image=report.target_image)
    for objection in preconditions.objections(source, target, available=True, recommended=None):
        if objection.blocking and objection.name not in risks:
            risks[objection.name] = risk_of_refusal(objection.name, objection.message, report)
    return worst_first(risks.values())


def _preflight_conditions(report: Report) -> tuple[Condition, ...]:
    if report.execution_status == "completed":
        return (Condition(type=COMPLETED, status="True", reason="ChecksCompleted"),)
    return (Condition(type=FAILED, status="True", reason="NotJudged", message=report.message),)


def _print(
    results: Sequence[ClusterResult],
    notes: Sequence[str],
    flags: Flags,
    *,
    several: bool,
    problems: Sequence[str] = (),
    baseline: Baseline | None = None,
) -> None:
    """Writes each output to its file, and prints what is for the terminal: the text, if no other form is.

    Raises CommandError after that, for `problems` and files that could not be written.
    """
    problems = [
        *problems,
        *outputs.write_files(flags.outputs, lambda form: _format_results(results, form, baseline, several=several)),
    ]
    printed = [
        out(_format_results(results, form, baseline, several=several))
        for form, path in flags.outputs
        if path == outputs.STDOUT
    ]
    write([*(err(f"warning: {note}\n") for note in notes), *(printed or _result_text(results, flags, several=several))])
    if problems:
        raise CommandError("\n".join(problems))


def _format_results(results: Sequence[ClusterResult], form: str, baseline: Baseline | None, *, several: bool) -> str:
    """Returns the results in the output format `form`; several clusters are a list in JSON and YAML."""
    if form == "markdown" and baseline is not None:
        return report_changes.markdown(results, baseline)
    if form in ("json", "yaml"):
        data: Any = [forms.data(cluster_result) for cluster_result in results] if several else forms.data(results[0])
        return machine(data, form)
    return forms.FORMS[form](results)


def _result_text(results: Sequence[ClusterResult], flags: Flags, *, several: bool) -> list[Output]:
    """Returns the lines of the result: a table for several targets, the findings for one. Raises CommandError."""
    if several:
        return [out(text) for text in forms.table_of(results, screen_of(sys.stdout))]
    # A single target that could not be judged is an error of the command, as with --wait.
    if results[0].findings.exit_code == COULD_NOT_RUN and results[0].findings.failed:
        raise CommandError(results[0].findings.failed.message)
    return [out(forms.text(results[0], screen_of(sys.stdout), whole=flags.verbose))]
