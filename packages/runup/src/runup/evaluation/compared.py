"""Finds what `runup preflight compare` compares: two reports in files, of dumps, or of a store by cluster and day."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kubekit.api import codec
from kubekit.error_types import InputError, Terminal
from kubekit.kube.clock import SystemClock
from kubekit.lang.files import read_limited
from kubekit.lang.version import parse
from runup.preflight.control import report_store, stores
from runup.preflight.control.stores import Store
from runup.report.report import FORMAT, Report, read

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|today|yesterday")
_FORMS = "give CLUSTER, CLUSTER@DAY, a DAY (2026-11-22, yesterday), a report's file or a dump"


def is_place(argument: str) -> bool:
    """Returns whether the word names a file or folder, rather than a version or a preflight."""
    return parse(argument) is None and Path(argument).exists()


def report_in(path: Path, target: str) -> tuple[str, Report]:
    """Returns a name and the report in a file, or of a dump as it is evaluated now. Raises InputError."""
    if path.is_file() and path.suffix == ".json" and (file_report := _read_file(path)) is not None:
        return str(path), file_report
    from runup.evaluation.dumps import evaluate_dump
    from runup.evaluation.request import RequestedUpdate

    evaluated = evaluate_dump(path, RequestedUpdate(target=target), SystemClock().now())
    if evaluated.report is None:
        raise InputError(evaluated.problem)
    return str(path), evaluated.report


def _read_file(path: Path) -> Report | None:
    """Returns the report in a file, or what `-o json` printed as a report; None if the file is neither."""
    try:
        data = read_limited(path)
        document = msgspec.json.decode(data)
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not isinstance(document, dict):
        return None
    if document.get("format") == FORMAT:
        return report_store.read_file(path)
    if not {"risks", "target", "checks"} <= document.keys():
        return None
    # What `preflight run -o json` printed has the same risks under the same names.
    risks = [risk for risk in document["risks"] if isinstance(risk, dict) and risk.get("applies") != "False"]
    kept_fields = ("name", "applies", "message", "url", "reason", "remediation", "resources", "lacking", "severity")
    value = {
        "format": FORMAT,
        "sourceVersion": document.get("source") or "",
        "targetVersion": document.get("target") or "",
        "executionStatus": "failed" if document.get("exitCode") == 1 else "completed",
        "observedTime": document.get("observedTime"),
        "risks": [{key: risk[key] for key in kept_fields if risk.get(key) is not None} for risk in risks],
        "checks": document["checks"],
    }
    try:
        return read(codec.encode(value))
    except Terminal as error:
        raise InputError(f"{path}: {error.message}") from error


def read_from_store(
    selectors: Sequence[str], store: str, cluster: str, target: str, config: Callable[[], ClusterConfig]
) -> list[tuple[str, Report]]:
    """Returns a name and a report for each word, out of a store. Raises InputError, and Terminal without a store."""
    opened_store = stores.open_store(store, config)
    names = opened_store.clusters()
    # Both selectors are about the same day, also at midnight.
    today = SystemClock().now().astimezone(UTC).date()
    return [
        _stored_report(selector, opened_store, names, cluster=cluster, target=target, today=today)
        for selector in selectors
    ]


def _stored_report(
    selector: str, store: Store, names: Sequence[str], *, cluster: str, target: str, today: date
) -> tuple[str, Report]:
    """Returns the stored report that `selector` names: `NAME`, `NAME@DAY` or `DAY`. Raises InputError."""
    name, at, day = selector.rpartition("@")
    if selector in names or not at:
        name, day = (selector, "") if selector in names else ("", selector)
    name = name or cluster or (names[0] if len(names) == 1 else "")
    if is_place(selector) and selector not in names and not _DAY.fullmatch(selector):
        return report_in(Path(selector), target)
    omitted = f" and {len(names) - 10} more" if len(names) > 10 else ""
    kept = f"reports of {', '.join(names[:10])}{omitted}" if names else "no reports"
    if day and not _DAY.fullmatch(day):
        raise InputError(f"{selector}: is not in the store {store.name}, which has {kept}; {_FORMS}")
    if name not in names:
        problem = f"there is no report of {name}" if name else "which cluster is meant is not said (--cluster NAME)"
        raise InputError(f"{selector}: {problem}; the store {store.name} has {kept}")
    until = None
    if day:
        # `_DAY` also fits dates that no calendar has.
        try:
            last = (
                today - timedelta(days=day == "yesterday") if day in ("today", "yesterday") else date.fromisoformat(day)
            )
        except ValueError as error:
            raise InputError(f"{day}: is not a day such as 2026-11-22 ({error})") from error
        until = datetime.combine(last, time(), UTC) + timedelta(days=1)
    stored_report = report_store.newest(store.reports_of(name), until, target)
    if stored_report is None:
        of = f" of {target}" if target else ""
        raise InputError(f"{selector}: the store {store.name} has no report{of} of {name} until the end of that day")
    return f"{name} {stored_report.observed:%Y-%m-%d %H:%M}Z", stored_report.report()
