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
from kubekit.lang.files import contents
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
from runup.preflight.decide.findings import COULD_NOT_RUN, Findings, Risk, of_refusal, of_report, worst_first
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
    rules, known = suppressions_in(flags.suppressions), baseline_in(flags.baseline)
    store = store_of(flags.store, connection)
    now = SystemClock().now()
    if flags.manifests:
        return _of_manifests(flags, rules, known, now)
    paths = [path for typed in flags.dumps for path in evaluate.dumps_in(Path(typed))] if flags.job is None else []
    if flags.store or flags.baseline:
        _refuse_one_name(paths)
    judged = _judged(connection, flags, access(), paths, now)
    problems = []
    if store is not None:
        names = [one.where for one in judged] if flags.dumps else [_name_of(connection)]
        kept = [(name, one.report, flags.to, one.problem) for name, one in zip(names, judged, strict=True)]
        problems = stored(store, kept, now)
    clusters, notes = results_of(judged, rules, known, now)
    notes += store.notes() if store is not None else ()
    if flags.dumps and any(form == "sarif" for form, _ in flags.outputs):
        clusters = [placed(path, one) for path, one in zip(paths, clusters, strict=True)]
    _print(clusters, notes, flags, many=len(judged) > 1, problems=problems, known=known)
    return forms.worst_code([forms.exit_code(one.found, flags.fail_on) for one in clusters])


def store_of(typed: str, connection: Connection) -> Store | None:
    """Returns the store, None without one; whether it can be written is looked at before anything is read.

    Raises Terminal.
    """
    if not typed:
        return None
    from runup.preflight.control import stores

    store = stores.opened(typed, connection.config)
    store.check()
    return store


def _refuse_one_name(paths: Sequence[Path]) -> None:
    """Raises CommandError for dumps that a store or a baseline could not tell apart."""
    by_name: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        if name in by_name:
            both = f"{by_name[name]} and {path} are both called {name}"
            raise CommandError(f"{both}, and --store and --baseline go by the name; rename one, or give one at a time")
        by_name[name] = path


def _of_manifests(flags: Flags, rules: Sequence[suppress.Suppression], known: Baseline | None, now: datetime) -> int:
    """Prints what is wrong with manifests that no cluster has yet, and returns the exit code."""
    from runup.preflight.cli.manifest_files import of_manifests

    judged, places = of_manifests(flags.manifests, flags.to, now)
    clusters, notes = results_of([judged], rules, known, now)
    results = [dataclass_replace(one, places=places) for one in clusters]
    _print(results, notes, flags, many=False, known=known)
    return forms.exit_code(results[0].found, flags.fail_on)


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


def placed(path: Path, one: ClusterResult) -> ClusterResult:
    """Returns the result with the places of its objects in the dump."""
    from runup.preflight.cli.dump_places import places

    if not one.found.completed:
        return one
    return dataclass_replace(one, places=places(path, [item for risk in one.found.risks for item in risk.resources]))


def suppressions_in(path: str) -> tuple[suppress.Suppression, ...]:
    """Returns the entries of the file; none without one. Raises CommandError."""
    if not path:
        return ()
    try:
        return suppress.parse(contents(path).decode("utf-8"), path)
    except (OSError, ValueError) as error:  # ValueError: it is not UTF-8, or a NUL is in the name
        raise CommandError(f"--suppressions {path}: cannot be read: {error}") from error


def baseline_in(path: str) -> Baseline | None:
    """Returns the baseline of the file, None without one. Raises CommandError."""
    if not path:
        return None
    import msgspec

    try:
        return baselines.read(msgspec.json.decode(contents(path)), path)
    except OSError as error:
        raise CommandError(f"--baseline {path}: cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        hint = "give what `-o json` of an earlier run printed"
        raise CommandError(f"--baseline {path}: is not JSON ({error}); {hint}") from error
    except Terminal as error:
        raise CommandError(f"--baseline {error.message}") from error


def _name_of(connection: Connection) -> str:
    """Returns the name under which a live cluster's reports are kept, as `runup fleet` has it: that of the context."""
    config = connection.config()
    return config.context or config.address


def stored(store: Store, results: Iterable[tuple[str, Report | None, str, str]], now: datetime) -> list[str]:
    """Keeps the report of each cluster: (name, report, typed target, why there is none). Returns what went wrong."""
    from runup.preflight.control import report_store

    try:
        for name, report, target, problem in results:
            store.keep(_as_utf8(name), report or report_store.failed(target, _as_utf8(problem), now), now)
    except Terminal as error:
        return [error.message]
    return []


def _as_utf8(text: str) -> str:
    """Returns the text with escapes for what is no UTF-8, such as the bytes of a folder's name."""
    return text.encode("utf-8", "backslashreplace").decode()


def results_of(
    judged: Sequence[evaluate.EvaluatedCluster],
    rules: Sequence[suppress.Suppression],
    known: Baseline | None,
    now: datetime,
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the result of each cluster with what is accepted in it, and notes for whoever reads them."""
    notes = [f"{one.where}: {note}" for one in judged for note in one.notes]
    results = [ClusterResult(one.where, findings_of(one), one.lacking, one.collect, tried=now) for one in judged]
    marked, further = with_accepted(results, rules, known, now)
    return marked, list(dict.fromkeys([*notes, *further]))


def with_accepted(
    results: Sequence[ClusterResult], rules: Sequence[suppress.Suppression], known: Baseline | None, now: datetime
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the results with what is suppressed, or known from a baseline, marked as accepted; and warnings."""
    clusters: list[ClusterResult] = []
    notes: list[str] = []
    for one in results:
        risks, over = suppress.apply_suppressions(one.found.risks, rules, one.where, now.date())
        notes += over
        if known is not None:
            before = baselines.of_cluster(known, one.where, alone=len(results) == 1)
            risks = baselines.applied(risks, before, known.name)
        clusters.append(dataclass_replace(one, found=replace(one.found, risks=worst_first(risks))))
    if known is not None:
        notes += baselines.doubts(known, {one.where: one.found.target for one in results})
    notes += suppress.unused_entries(rules, [(one.where, one.found.risks) for one in clusters])
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
        conditions=_preflight_conditions(report),
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
        return worst_first(of_report(risk, report, judged.accepted.get(risk.name)) for risk in report.risks)
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
    return worst_first(risks.values())


def _preflight_conditions(report: Report) -> tuple[Condition, ...]:
    if report.execution_status == "completed":
        return (Condition(type=COMPLETED, status="True", reason="ChecksCompleted"),)
    return (Condition(type=FAILED, status="True", reason="NotJudged", message=report.message),)


def _print(
    found: Sequence[ClusterResult],
    notes: Sequence[str],
    flags: Flags,
    *,
    many: bool,
    problems: Sequence[str] = (),
    known: Baseline | None = None,
) -> None:
    """Writes each output to its file, and prints what is for the terminal: the text, if no other form is.

    Raises CommandError after that, for `problems` and files that could not be written.
    """
    problems = [*problems, *outputs.saved(flags.outputs, lambda form: _in_form(found, form, known, many=many))]
    printed = [out(_in_form(found, form, known, many=many)) for form, path in flags.outputs if path == outputs.STDOUT]
    write([*(err(f"warning: {note}\n") for note in notes), *(printed or _result_text(found, flags, many=many))])
    if problems:
        raise CommandError("\n".join(problems))


def _in_form(found: Sequence[ClusterResult], form: str, known: Baseline | None, *, many: bool) -> str:
    if form == "markdown" and known is not None:
        return report_changes.markdown(found, known)
    if form in ("json", "yaml"):
        data: Any = [forms.data(one) for one in found] if many else forms.data(found[0])
        return machine(data, form)
    return forms.FORMS[form](found)


def _result_text(found: Sequence[ClusterResult], flags: Flags, *, many: bool) -> list[Output]:
    """Returns the lines of the result: a table for several targets, the findings for one. Raises CommandError."""
    if many:
        return [out(text) for text in forms.table_of(found, screen_of(sys.stdout))]
    # A single target that could not be judged is an error of the command, as with --wait.
    if found[0].found.exit_code == COULD_NOT_RUN and found[0].found.failed:
        raise CommandError(found[0].found.failed.message)
    return [out(forms.text(found[0], screen_of(sys.stdout), whole=flags.verbose))]
