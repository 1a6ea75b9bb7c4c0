"""Renders stored reports as the tables of `preflight history` and `preflight compare`, and as data. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.lang.text import count, timestamp
from runup.cli.errors import CommandError
from runup.cli.preflight.render.finding_texts import risk_table
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import age
from runup.preflight.decide.findings import Risk, risk_of_report, with_severities, worst_first
from runup.preflight.decide.stored_reports import History
from runup.report.changes import added, objects_of
from runup.report.report import Report, ReportedRisk, is_of, may_be_untold

NONE = "No preflight has reported on this cluster. Ask for one: runup upgrade --mode=preflight --to=VERSION --wait"
# Objects that came or went, as many as a line names.
_OBJECTS = 3
NO_JOBS = "No preflight has reported in this cluster. Make one: runup preflight run --in-cluster"


def history(reports_kept: History, screen: Screen = PIPE, *, wide: bool = False, empty_text: str = NONE) -> Drawn:
    """Returns a table with one line per report, the newest first; it is `empty_text` if there are no reports.

    Accepted is what was when the report was stored.
    """
    if not reports_kept.reports:
        return join_parts(wrap_text(empty_text, screen))
    titles = "TARGET SOURCE STATUS APPLY UNKNOWN ACCEPTED CHECKS OBSERVED PREFLIGHT"
    columns = tuple(Column(title=title) for title in (*titles.split(), *(("IMAGE",) if wide else ())))
    rows = []
    for report in reports_kept.reports:
        still_open = [risk for risk in report.risks if risk.name not in report.accepted]
        applying = sum(1 for risk in still_open if risk.applies == "True")
        status = f"{report.execution_status}{', signature waived' if report.signature_waived else ''}"
        numbers = (applying, len(still_open) - applying, len(report.risks) - len(still_open), len(report.checks))
        cells = (report.target_version, report.source_version, status, *map(str, numbers))
        image = (report.target_image,) if wide else ()
        rows.append(Row((*cells, timestamp(report.observed_time), report.preflight_id, *image)))
    return draw_table(Table(columns=columns, rows=rows), screen)


def history_data(stored_history: History) -> list[dict[str, Any]]:
    """Returns the reports as they are stored."""
    return [codec.to_dict(report) for report in stored_history.reports]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two reports; `both` pairs the two entries of a risk that is in each.

    `names` are what the reports are called where their targets do not tell them apart.
    """

    before: Report
    after: Report
    new: tuple[ReportedRisk, ...]
    gone: tuple[ReportedRisk, ...]
    both: tuple[tuple[ReportedRisk, ReportedRisk], ...]
    names: tuple[str, str] | None = None

    @property
    def called(self) -> tuple[str, str]:
        """The two names: their targets, if they have no others."""
        return self.names or (self.before.target_version, self.after.target_version)


def pick(stored_history: History, name: str, source: str) -> Report:
    """Returns the report of a version (preferably from the running release) or of a preflight ID.

    Raises CommandError if it does not exist.
    """
    fitting = [report for report in stored_history.reports if is_of(report, name)]
    # False sorts first: a report from the running release is preferred.
    fitting.sort(key=lambda report: report.source_version != source)
    if fitting:
        return fitting[0]
    if not stored_history.reports:
        raise CommandError(f"no report of {name}: no preflight has reported on this cluster")
    targets = ", ".join(report.target_version for report in stored_history.reports)
    raise CommandError(f"no report of {name}; there are reports of {targets}")


def compare(before: Report, after: Report, names: tuple[str, str] | None = None) -> Comparison:
    """Returns the differences between two reports, by the names of their risks."""
    before, after = with_severities(before), with_severities(after)
    before_risks = {risk.name: risk for risk in before.risks}
    after_risks = {risk.name: risk for risk in after.risks}
    new = tuple(after_risks[name] for name in sorted(after_risks.keys() - before_risks.keys()))
    gone = tuple(before_risks[name] for name in sorted(before_risks.keys() - after_risks.keys()))
    common = sorted(before_risks.keys() & after_risks.keys())
    both = tuple((before_risks[name], after_risks[name]) for name in common)
    return Comparison(before=before, after=after, new=new, gone=gone, both=both, names=names)


def comparison(
    compared: Comparison, screen: Screen = PIPE, *, now: datetime | None = None, wide: bool = False
) -> Drawn:
    """Returns the comparison as text: counts, new, gone and common risks, and each report's age if `now` is given."""
    names, reports = compared.called, (compared.before, compared.after)
    # The updates are named, unless the reports' names say them.
    updates = list(dict.fromkeys(f"{report.source_version} to {report.target_version}" for report in reports))
    if compared.names is None:
        about = f", as checked on {compared.after.source_version}"
    else:
        about = f" (update from {updates[0]})" if len(updates) == 1 else f" (updates from {' and from '.join(updates)})"
    counts = f"{len(compared.new)} new, {len(compared.gone)} gone, {len(compared.both)} in both"
    lines = [f"From {names[0]} to {names[1]}{about}: {counts}"]
    named = list(zip(names, reports, strict=True))
    lines += [f"{name} was checked {age(report.observed_time, now)}" for name, report in named if now]
    lines += [
        f"warning: the report of {name} is {report.execution_status}: it may lack risks"
        for name, report in named
        if report.execution_status != "completed"
    ]
    # A risk may still be there if the later report could not tell.
    doubted = [compared.names is not None and may_be_untold(compared.after, risk.name) for risk in compared.gone]
    doubts = ["whether it is gone is unknown; " if doubt else "" for doubt in doubted]
    changes = [(new, _change_text(old, new, compared)) for old, new in compared.both]
    return join_parts(
        *(wrap_text(line, screen) for line in lines),
        _table_part(f"Only for {names[1]}", [_shown(risk, compared.after) for risk in compared.new], screen, wide=wide),
        _table_part(
            f"Only for {names[0]}",
            [_shown(risk, compared.before, doubt) for risk, doubt in zip(compared.gone, doubts, strict=True)],
            screen,
            wide=wide,
        ),
        _table_part("For both", [_shown(risk, compared.after, text) for risk, text in changes], screen, wide=wide),
    )


def _change_text(before: ReportedRisk, after: ReportedRisk, compared: Comparison) -> str:
    """Returns whether the answer changed, and which objects came and went."""
    text = f"was {before.applies}; " if before.applies != after.applies else ""
    # Between two targets on one cluster the objects are the same; of two times they are what changed.
    if compared.names is None:
        return text
    old, new = objects_of(before), objects_of(after)
    for label, (items, more) in (("now also", added(old, new)), ("no longer", added(new, old))):
        omitted = max(len(items) - _OBJECTS, 0) + more
        listed = ", ".join(items[:_OBJECTS]) if items else count(omitted, "object")
        listed += f" and {omitted} more" if items and omitted else ""
        text += f"{label} {listed}; " if items or more else ""
    return text


def _shown(risk: ReportedRisk, report: Report, note: str = "") -> Risk:
    """Returns a risk of the report as it is shown, its message preceded by a note."""
    return msgspec.structs.replace(risk_of_report(risk, report), message=note + risk.message, url=risk.url, since=None)


def _table_part(title: str, risks: list[Risk], screen: Screen, *, wide: bool) -> Drawn:
    if not risks:
        return join_parts(f"\n{title}: none\n")
    rows = worst_first(risks)
    return join_parts(f"\n{title}:\n", draw_table(risk_table(rows, wide=wide, remedies=False, indent=2), screen))


def comparison_data(compared: Comparison) -> dict[str, Any]:
    """Returns the comparison for programs."""
    return {
        "source": compared.after.source_version,
        "before": compared.called[0],
        "after": compared.called[1],
        "new": codec.to_dict(compared.new),
        "gone": codec.to_dict(compared.gone),
        "both": [
            {"name": old.name, "before": codec.to_dict(old), "after": codec.to_dict(new)} for old, new in compared.both
        ],
    }
