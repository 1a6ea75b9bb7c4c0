"""Interprets evaluated clusters: findings with what is accepted, suppressed, or known from a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import InputError, Terminal
from kubekit.lang.files import read_limited
from runup.api.config_v1 import Release
from runup.clusterversion.decide import preconditions
from runup.evaluation import baseline as baselines
from runup.evaluation import suppressions as suppress
from runup.evaluation.baseline import Baseline, Since
from runup.evaluation.evaluate import EvaluatedCluster
from runup.facts.of_dump import Place
from runup.preflight.decide.findings import (
    SUPPRESS,
    Findings,
    Risk,
    guards_of,
    risk_of_refusal,
    risk_of_report,
    worst_first,
)
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED
from runup.report.report import Report, ReportedResource

if TYPE_CHECKING:
    from runup.preflight.control.stores import Store


def suppressions_in(path: str) -> tuple[suppress.Suppression, ...]:
    """Returns the entries of the file; none without one. Raises InputError."""
    if not path:
        return ()
    try:
        return suppress.parse(read_limited(path).decode("utf-8"), path)
    except (OSError, ValueError) as error:  # ValueError: it is not UTF-8, or a NUL is in the name
        why = (error.strerror if isinstance(error, OSError) else "") or error
        raise InputError(f"--suppressions {path}: cannot be read: {why}") from error


def baseline_in(path: str) -> Baseline | None:
    """Returns the baseline of the file, None without one. Raises InputError."""
    if not path:
        return None
    import msgspec

    try:
        return baselines.read(msgspec.json.decode(read_limited(path)), path)
    except OSError as error:
        raise InputError(f"--baseline {path}: cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        hint = "give what `-o json` of an earlier run printed"
        raise InputError(f"--baseline {path}: is not JSON ({error}); {hint}") from error
    except ValueError as error:  # a NUL is in the name; what is not JSON is a ValueError, too
        raise InputError(f"--baseline {path}: cannot be read: {error}") from error
    except Terminal as error:
        raise InputError(f"--baseline {error.message}") from error


def store_reports(store: Store, results: Iterable[tuple[str, Report | None, str, str]], now: datetime) -> list[str]:
    """Keeps the report of each cluster: (name, report, typed target, why it is missing). Returns what went wrong.

    A report that has no room costs the others nothing; a store that cannot be written is tried once.
    """
    from runup.preflight.control import report_store

    problems = []
    for raw_name, report, target, raw_problem in results:
        # Escapes for what is no UTF-8, such as the bytes of a folder's name.
        name, problem = (text.encode("utf-8", "backslashreplace").decode() for text in (raw_name, raw_problem))
        try:
            store.keep(name, report or report_store.failed_report(target, problem, now), now)
        except Terminal as error:
            problems.append(error.message)
            if error.reason != report_store.NO_ROOM:
                break
    return problems


def report_to_keep(report: Report | None, target: str, problem: str, failed_at: datetime | None) -> Report | None:
    """Returns what is kept of a cluster: its report, else of a dump that has none the failure at the dump's time."""
    if report is not None or failed_at is None:
        return report
    from runup.preflight.control import report_store

    return report_store.failed_report(target, problem.encode("utf-8", "backslashreplace").decode(), failed_at)


def results_of(
    evaluated_clusters: Sequence[EvaluatedCluster],
    rules: Sequence[suppress.Suppression],
    baseline: Baseline | None,
    now: datetime,
    *,
    fail_on: str = "unknown",
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the result of each cluster with its accepted risks, and notes for the reader."""
    notes = [f"{evaluated.where}: {note}" for evaluated in evaluated_clusters for note in evaluated.notes]
    results = [
        ClusterResult(
            name=each.where, findings=findings_of(each), lacking=each.lacking, collect=each.collect, tried=now
        )
        for each in evaluated_clusters
    ]
    marked, more_warnings = with_accepted(results, rules, baseline, now, fail_on=fail_on)
    return marked, list(dict.fromkeys([*notes, *more_warnings]))


def with_accepted(
    results: Sequence[ClusterResult],
    rules: Sequence[suppress.Suppression],
    baseline: Baseline | None,
    now: datetime,
    *,
    fail_on: str = "unknown",
) -> tuple[list[ClusterResult], list[str]]:
    """Returns the results with what is suppressed, or known from a baseline, marked as accepted; and warnings.

    A refusal stays open. `fail_on` is what makes the exit codes not 0.
    """
    clusters: list[ClusterResult] = []
    notes: list[str] = []
    for result in results:
        risks, warnings = suppress.apply_suppressions(result.findings.risks, rules, result.name, now.date())
        notes += warnings
        findings = replace(result.findings, risks=worst_first(risks), fail_on=fail_on)
        clusters.append(dataclass_replace(result, findings=findings))
    if baseline is not None:
        compared, more_notes = baselines.compare(baseline, [(each.name, each.findings) for each in clusters])
        clusters = [
            dataclass_replace(each, findings=replace(findings, risks=worst_first(findings.risks)), since=since)
            for each, (findings, since) in zip(clusters, compared, strict=True)
        ]
        notes += more_notes
    notes += suppress.unused_entries(rules, [(result.name, result.findings.risks) for result in clusters])
    return clusters, list(dict.fromkeys(notes))


def findings_of(evaluated: EvaluatedCluster) -> Findings:
    """Returns a report as findings; for a cluster that could not be evaluated, the reason is in the conditions."""
    report = evaluated.report
    if report is None:
        failure = Condition(type=FAILED, status="True", reason="NotJudged", message=evaluated.problem)
        return Findings(source="", target="", conditions=(failure,))
    condition = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")
    if report.execution_status != "completed":
        condition = Condition(type=FAILED, status="True", reason="NotJudged", message=report.message)
    return Findings(
        source=report.source_version,
        target=report.target_version,
        image=report.target_image,
        conditions=(condition,),
        risks=_risks(evaluated, report),
        checks=report.checks,
        observed=report.observed_time,
        guards=guards_of(evaluated.cluster, report.target_version, report.target_image) if evaluated.cluster else (),
        of_dump=evaluated.of_dump,
        manifests=evaluated.manifests,
        cluster_id=evaluated.cluster_id,
        kind=report.cluster_kind,
        steps=report.steps,
    )


def _risks(evaluated: EvaluatedCluster, report: Report) -> tuple[Risk, ...]:
    """Returns the report's risks, and those for which the operator itself would refuse the update."""
    risks = {risk.name: risk_of_report(risk, report, evaluated.accepted.get(risk.name)) for risk in report.risks}
    if evaluated.manifests:
        # No cluster has the manifests yet, so no ClusterVersion can carry an acceptance.
        risks = {name: replace(risk, suppressed_by=SUPPRESS) for name, risk in risks.items()}
    if (cluster := evaluated.cluster) is not None:
        status = replace(cluster.status, desired=replace(cluster.status.desired, version=report.source_version))
        target = Release(version=report.target_version, image=report.target_image)
        cluster = replace(cluster, status=status)
        for objection in preconditions.objections(cluster, target, available=True, recommended=None):
            if objection.blocking and objection.name not in risks:
                risks[objection.name] = risk_of_refusal(objection.name, objection.message, report)
    return worst_first(risks.values())


_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """The findings about one cluster; `name` is in tables.

    For a dump, `lacking` are the kinds that it does not have in full, `collect` is the command that collects them, and
    `places` says where the objects are by their text; the empty text is the dump itself. `tried` is when the command
    ran: what could not be evaluated was not observed at any time. `since` is what
    changed since a baseline, if there is one.
    """

    name: str
    findings: Findings
    lacking: tuple[str, ...] = ()
    collect: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)
    tried: datetime = _NEVER
    since: Since | None = None

    def place(self, item: ReportedResource | None = None) -> Place | None:
        """Returns where an object is, or where the dump is if that is not known or no object is given."""
        return self.places.get(item.text if item else "") or self.places.get("")
