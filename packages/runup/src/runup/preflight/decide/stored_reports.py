"""ConfigMap `preflight-history`: the last five reports, and the running attempt.

Each report has one key, `<preflightID>.json`, whose value is the target's report with what else counted for its update,
cut where there is no room. A newer report of the same target (from the same source version) replaces the older one, so
that five targets can be compared. After a restart `status` is built from this history, and `runup preflight history`
prints it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.lang.text import cut, escape_in_json, printable
from kubekit.lang.version import parse
from runup.preflight.decide.attempt import Attempt, is_attempt_id
from runup.report import report as reports
from runup.report.report import BadReport, Report, ReportedResource, ReportedRisk

NAME = "preflight-history"
ATTEMPT_ANNOTATION = "preflight.runup.dev/attempt"
APP_LABELS = {"app": "cluster-version-operator-preflight"}
MAX_REPORTS = 5
# The API server accepts at most 1 MiB per object, including keys, managed fields and annotations.
MAX_BYTES = 900 * 1024
_MAX_FAILURE_BYTES = 8192
# Limits in bytes for each text of reports that do not fit: the first limit under which they fit is used.
TEXT_LIMITS = (4000, 1000, 250)
_FEW_CHECKS = 200


class History(msgspec.Struct, frozen=True):
    """The content of the ConfigMap. `reports` are sorted with the newest first.

    `lapse` is not stored: it says since when no operator keeps the state of the preflight up to date; empty if one
    does, or if that is not known.
    """

    attempt: Attempt | None = None
    reports: tuple[Report, ...] = ()
    lapse: str = ""


def read(config_map: ConfigMap | None) -> History:
    """Returns the history in `config_map`.

    People may edit it: an entry is skipped if the report reader rejects it, if its key is not its ID, or if it does not
    name two valid versions.
    """
    if config_map is None:
        return History()
    stored_reports = []
    for key, value in config_map.data.items():
        try:
            report = reports.read(value.encode("utf-8", "replace"))
        except BadReport:
            continue
        is_named = bool(report.preflight_id) and key == f"{report.preflight_id}.json"
        if is_named and parse(report.source_version) is not None and parse(report.target_version) is not None:
            stored_reports.append(report)
    attempt = _read_attempt(config_map.metadata.annotations.get(ATTEMPT_ANNOTATION))
    return History(attempt, _newest_first(stored_reports)[:MAX_REPORTS])


def with_report(history: History, new: Report, *, even_if_only_newer: bool = False) -> History:
    """Returns `history` with `new` in place of the earlier report for the same target and source.

    A report that differs only in its times is not written, except as the last one of its preflight.
    """
    earlier_report = next((old for old in history.reports if _same_subject(old, new)), None)
    earlier_times: dict[tuple[str, ReportedResource], datetime | None] = {}
    if earlier_report is not None:
        for risk in earlier_report.risks:
            for item in risk.resources:
                earlier_times[risk.name, replace(item, since=None)] = item.since or earlier_report.observed_time
    risks = []
    for risk in new.risks:
        sinces = (earlier_times.get((risk.name, replace(item, since=None))) for item in risk.resources)
        items = zip(risk.resources, sinces, strict=True)
        dated = tuple(replace(item, since=since or new.observed_time) for item, since in items)
        risks.append(replace(risk, resources=dated))
    new = replace(new, risks=tuple(risks))
    other_reports = [old for old in history.reports if not _same_subject(old, new)]
    fitted = _fit_reports([new, *other_reports])
    # Compared as it would be stored: a report that was cut to fit is not a change each time it is read.
    as_stored = next((report for report in fitted if _same_subject(report, new)), new)
    if not even_if_only_newer and any(
        _same_subject(old, as_stored) and same_findings(old, as_stored) for old in history.reports
    ):
        return history
    return replace(history, reports=fitted)


def with_attempt(history: History, attempt: Attempt | None) -> History:
    """Returns `history` with another attempt, or none. The reason of a failure is cut to fit an annotation."""
    if attempt is not None:
        attempt = replace(attempt, failure=cut(printable(attempt.failure), _MAX_FAILURE_BYTES))
    return replace(history, attempt=attempt)


def has_completed(history: History, attempt: Attempt) -> bool:
    """Returns whether a complete report of `attempt` is stored."""
    return any(
        report.preflight_id == attempt.id and report.execution_status == "completed" for report in history.reports
    )


def same_findings(report: Report, other: Report) -> bool:
    """Returns whether two reports differ only in their times."""

    def without_times(report: Report) -> Report:
        checks = tuple(replace(check, duration_seconds=0.0) for check in report.checks)
        return replace(
            report, started_time=None, completion_time=None, observed_time=None, heartbeat_time=None, checks=checks
        )

    return without_times(report) == without_times(other)


def config_map(history: History, namespace: str) -> dict[str, Any]:
    """Returns the ConfigMap to apply."""
    metadata: dict[str, Any] = {"name": NAME, "namespace": namespace, "labels": APP_LABELS}
    if history.attempt is not None:
        # Escaped, because `kubectl get -o yaml` fails on control characters.
        metadata["annotations"] = {ATTEMPT_ANNOTATION: escape_in_json(codec.encode(history.attempt).decode())}
    data = {f"{report.preflight_id}.json": reports.encode(report).decode() for report in history.reports}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _read_attempt(text: str | None) -> Attempt | None:
    """Returns the attempt in the annotation, or None if it is missing or invalid."""
    if text is None:
        return None
    try:
        attempt = codec.decode(Attempt, text)
    except codec.DecodeError:
        return None
    # The ID becomes a folder's name, and a time without a zone cannot be compared with one that has a zone.
    times = (attempt.started_time, attempt.unfinished_since)
    naive = any(time is not None and time.utcoffset() is None for time in times)
    return attempt if is_attempt_id(attempt.id) and not naive else None


def _fit_reports(stored: list[Report]) -> tuple[Report, ...]:
    """Returns the newest five reports, reduced to what a ConfigMap can hold.

    Details go first, then the oldest reports, then checks. Text that is cut says how much is missing. Risks are never
    dropped, nor their names and whether they apply.
    """
    stored = list(_newest_first(stored))[:MAX_REPORTS]
    for limit in TEXT_LIMITS:
        if _total_bytes(stored) <= MAX_BYTES:
            return tuple(stored)
        stored = [reduce_report(report, limit) for report in stored]
    # The newest report is never dropped: the status is built from it after a restart.
    while len(stored) > 1 and _total_bytes(stored) > MAX_BYTES:
        stored.pop()
    if _total_bytes(stored) > MAX_BYTES:
        stored = [replace(report, checks=report.checks[:_FEW_CHECKS]) for report in stored]
    return tuple(stored)


def reduce_report(report: Report, limit: int) -> Report:
    """Returns the report without details of risks, and with texts cut to `limit` bytes."""

    def short(text: str) -> str:
        return cut(printable(text), limit)

    def slim(risk: ReportedRisk) -> ReportedRisk:
        return replace(
            risk,
            resources=(),
            resources_omitted=len(risk.resources) + risk.resources_omitted,
            remediation="",
            reason=short(risk.reason),
            message=short(risk.message),
        )

    checks = tuple(
        replace(check, name=short(check.name), component=short(check.component), message=short(check.message))
        for check in report.checks
    )
    risks, others = tuple(map(slim, report.risks)), tuple(map(slim, report.others))
    return replace(report, message=short(report.message), checks=checks, risks=risks, others=others)


def _total_bytes(stored: list[Report]) -> int:
    return sum(len(reports.encode(report)) for report in stored)


def _same_subject(report: Report, other: Report) -> bool:
    subject = (other.source_version, other.target_version, other.target_image)
    return (report.source_version, report.target_version, report.target_image) == subject


def _newest_first(stored: list[Report]) -> tuple[Report, ...]:
    def age_key(report: Report) -> tuple[bool, float, str]:
        time = report.observed_time or report.completion_time or report.started_time
        return time is not None, time.timestamp() if time else 0.0, report.preflight_id

    return tuple(sorted(stored, key=age_key, reverse=True))
