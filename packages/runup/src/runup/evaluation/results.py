"""Interprets evaluated clusters: findings that are accepted, suppressed, or known from a baseline."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import InputError, Terminal
from kubekit.lang.files import MAX_BYTES, MIB, lines_limited, read_limited
from kubekit.lang.text import one_line
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
    findings_of_report,
    guards_of,
    risk_of_refusal,
    risk_of_report,
    worst_first,
)
from runup.preflight.decide.preflight_conditions import FAILED
from runup.report.report import Report, ReportedResource

if TYPE_CHECKING:
    from runup.preflight.control.stores import Store


# As many clusters as a warning names.
_NAMES = 5


class Evaluated(Protocol):
    """The result of one cluster: its report, or the reason why there is none, and the time of a dump."""

    @property
    def report(self) -> Report | None: ...
    @property
    def problem(self) -> str: ...
    @property
    def failed_at(self) -> datetime | None: ...


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
        return _read_baseline(path, msgspec.json.decode)
    except OSError as error:
        hint = "; `-o jsonl` of a run may have any size" if error.errno == errno.EFBIG else ""
        raise InputError(f"--baseline {path}: cannot be read: {error.strerror or error}{hint}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        hint = "give what `-o json` of an earlier run printed"
        raise InputError(f"--baseline {path}: is not JSON ({error}); {hint}") from error
    except ValueError as error:  # a NUL is in the name; what is not JSON is a ValueError, too
        raise InputError(f"--baseline {path}: cannot be read: {error}") from error
    except Terminal as error:
        raise InputError(f"--baseline {error.message}") from error


def _read_baseline(path: str, decode: Callable[[bytes], Any]) -> Baseline:
    """Returns the baseline of a file of JSON, or of JSON Lines, of which one line is decoded at a time."""
    lines = lines_limited(path)
    first = next(lines, b"")
    is_lines = False
    with contextlib.suppress(ValueError):  # the first line of indented JSON is not a document
        document = decode(first)
        is_lines = isinstance(document, dict) and "clusters" not in document
    if is_lines:
        return baselines.read_clusters((decode(line) for line in chain([first], lines) if line.strip()), path)
    data = bytearray(first)
    for line in lines:
        data += line
        if len(data) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it holds more than {MAX_BYTES // MIB} MiB")
    return baselines.read(decode(bytes(data)), path)


class ReportKeeper:
    """Stores the report of each cluster under one time; `problems` are the errors.

    A report that has no room costs the others nothing; a store that cannot be written is tried once. A cluster that
    could not be evaluated has a report, too: of a dump at the time of the dump, and none if nobody knows that time.
    """

    def __init__(self, store: Store | None, target: str, now: datetime) -> None:
        self._store, self._target, self._now = store, target, now
        self.problems: list[str] = []
        self._without_time: list[str] = []

    def keep(self, name: str, evaluated: Evaluated, *, of_dump: bool) -> None:
        """Adds the report of the cluster `name`; escapes bytes that are not UTF-8, such as those of a folder's name."""
        if self._store is None:
            return
        from runup.preflight.control import report_store

        name, problem = (text.encode("utf-8", "backslashreplace").decode() for text in (name, evaluated.problem))
        report = evaluated.report
        if report is None and of_dump and evaluated.failed_at is None:
            self._without_time.append(name)
            return
        report = report or report_store.failed_report(self._target, problem, evaluated.failed_at or self._now)
        try:
            self._store.keep(name, report, self._now)
        except Terminal as error:
            self.problems.append(error.message)
            if error.reason != report_store.NO_ROOM:
                self._store = None

    def notes(self) -> list[str]:
        """Returns warnings about clusters that have no entry in the store, and those of the store itself."""
        notes = list(self._store.notes()) if self._store is not None else []
        if names := self._without_time:
            more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
            named = f"{', '.join(map(one_line, names[:_NAMES]))}{more}"
            why = "the dump could not be evaluated, and its time is unknown"
            notes.append(f"the store has no entry for {named}: {why}")
        return notes


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
            name=each.where,
            findings=findings_of(each),
            lacking=each.lacking,
            collect=each.collect,
            tried=now,
            notes=each.notes,
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
    """Returns the results with accepted risks marked by AcceptedMarker, and warnings."""
    marker = AcceptedMarker(rules, baseline, now, fail_on=fail_on)
    return [marker.mark(result) for result in results], marker.notes()


class AcceptedMarker:
    """Marks risks that are suppressed or known from a baseline as accepted, result by result.

    A refusal stays open. `fail_on` is what makes the exit codes not 0.
    """

    def __init__(
        self,
        rules: Sequence[suppress.Suppression],
        baseline: Baseline | None,
        now: datetime,
        *,
        fail_on: str = "unknown",
    ) -> None:
        self._rules, self._today, self._fail_on = rules, now.date(), fail_on
        self._comparison = baselines.Comparison(baseline) if baseline is not None else None
        self._unused = list(rules)
        self._warnings: dict[str, None] = {}

    def mark(self, result: ClusterResult) -> ClusterResult:
        """Returns the result with its accepted risks."""
        risks, warnings = suppress.apply_suppressions(result.findings.risks, self._rules, result.name, self._today)
        self._warnings.update(dict.fromkeys(warnings))
        self._unused = suppress.unused_entries(self._unused, result.name, risks)
        findings = replace(result.findings, risks=worst_first(risks), fail_on=self._fail_on)
        if self._comparison is None:
            return dataclass_replace(result, findings=findings)
        findings, since = self._comparison.compare(result.name, findings)
        return dataclass_replace(result, findings=replace(findings, risks=worst_first(findings.risks)), since=since)

    def notes(self) -> list[str]:
        """Returns warnings about the results that were marked, and about entries that suppressed nothing."""
        compared = self._comparison.notes() if self._comparison is not None else []
        unused = (f"{entry} suppresses nothing: no such risk was found" for entry in self._unused)
        return list(dict.fromkeys([*self._warnings, *compared, *unused]))


def findings_of(evaluated: EvaluatedCluster) -> Findings:
    """Returns a report as findings; for a cluster that could not be evaluated, the reason is in the conditions."""
    report = evaluated.report
    if report is None:
        failure = Condition(type=FAILED, status="True", reason="NotJudged", message=evaluated.problem)
        return Findings(source="", target="", conditions=(failure,))
    return replace(
        findings_of_report(report),
        risks=_risks(evaluated, report),
        guards=guards_of(evaluated.cluster, report.target_version, report.target_image) if evaluated.cluster else (),
        of_dump=evaluated.of_dump,
        manifests=evaluated.manifests,
        cluster_id=evaluated.cluster_id,
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
    changed since a baseline, if there is one. `notes` are warnings about the result and its limits.
    """

    name: str
    findings: Findings
    lacking: tuple[str, ...] = ()
    collect: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)
    tried: datetime = _NEVER
    since: Since | None = None
    notes: tuple[str, ...] = ()

    def place(self, item: ReportedResource | None = None) -> Place | None:
        """Returns where an object is, or where the dump is if that is not known or no object is given."""
        return self.places.get(item.text if item else "") or self.places.get("")
