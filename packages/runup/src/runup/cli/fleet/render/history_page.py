"""Renders what came and went in kept reports: charts with their tables, of a fleet by day or of one cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubekit.lang.text import count
from runup.cli.fleet.render.fleet_text import gone_risks_text, names_with_counts, new_risks_text
from runup.cli.render.html.charts import Column, columns_chart
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import (
    BAD,
    BUSY,
    GOOD,
    WARN,
    Child,
    Markup,
    badge,
    el,
    grid,
    join,
    long_section,
    minute_text,
)
from runup.cli.render.html.prose import prose
from runup.fleet.decide.trend import Day, ReportStep, changes_of_day, summarize_days

# Reports and days that are shown, the newest.
_LINES = 200
_OPEN = (("apply", BAD), ("are unknown", WARN), ("are accepted", BUSY))
_RECORDED = (
    "Accepted risks are those that a report records as accepted; the chart does not count them as apply or unknown. A "
    "report that `--store` of an earlier version kept records none."
)
_CHANGES = (("new", BAD), ("grown", BUSY), ("gone", GOOD))


def page(steps: Sequence[ReportStep], cluster: str, now: datetime, *, weeks: bool, notes: Sequence[str]) -> str:
    """Returns the page of all clusters, or of `cluster` if it is named; `notes` say what is not known."""
    warnings = el("ul", *(el("li", note) for note in notes), class_="card issue warn refs") if notes else None
    shown = cluster_sections(steps) if cluster else fleet_sections(steps, weeks=weeks)
    body = (el("h1", "What came and went"), warnings, shown)
    return document("History of preflights", *body, now=now, cluster=cluster)


def fleet_sections(steps: Sequence[ReportStep], *, weeks: bool) -> Markup:
    """Returns the charts and the table of the whole fleet: one row a day, or a week if `weeks`."""
    days = summarize_days(steps, weeks=weeks)
    lines = [
        el(
            "tr",
            el("th", f"{day.day:%Y-%m-%d}", scope="row", class_="when"),
            el("td", str(day.clusters)),
            el("td", badge(f"{day.failed} not evaluated", WARN) if day.failed else "0"),
            el("td", str(day.applies)),
            el("td", str(day.unknown)),
            el("td", str(day.accepted)),
            el("td", names_with_counts(day.new), class_="wide"),
            el("td", names_with_counts(day.grown), class_="wide"),
            el("td", names_with_counts(day.gone), class_="wide"),
        )
        for day in reversed(days)
    ]
    span = "week" if weeks else "day"
    heads = (
        "Week of" if weeks else "Day",
        "Clusters",
        "Not evaluated",
        "Apply",
        "Unknown",
        "Accepted of these",
        "New",
        "Grown",
        "Gone",
    )
    left_out = _left_out_text(lines, f"{span}s")
    table = grid(f"What the newest reports of each {span} come to, the newest first{left_out}", heads, lines[:_LINES])
    shown = days[-_LINES:]
    labels = [
        f"{day.day:%Y-%m-%d}" + (f" ({count(day.failed, 'cluster')} not evaluated)" if day.failed else "")
        for day in shown
    ]
    charts = _charts(
        f"each {span}",
        [Column(label, _open_counts(day)) for label, day in zip(labels, shown, strict=True)],
        [Column(label, changes_of_day(day)) for label, day in zip(labels, shown, strict=True)],
    )
    return join(charts, long_section("All clusters", table))


def cluster_sections(steps: Sequence[ReportStep]) -> Markup:
    """Returns the charts and the table of one cluster: one row a report, the newest first."""
    lines = [
        el(
            "tr",
            el("th", minute_text(step.observed), scope="row", class_="when"),
            el("td", step.target),
            *(
                el("td", str(number) if step.completed else "")
                for number in (step.applies, step.unknown, step.accepted)
            ),
            el("td", new_risks_text(step), class_="wide"),
            el("td", gone_risks_text(step), class_="wide"),
        )
        for step in reversed(steps)
    ]
    heads = ("As the cluster was", "Target", "Apply", "Unknown", "Accepted of these", "New", "Gone")
    cut_text = _left_out_text(lines, "reports")
    caption = f"{'Reports' if cut_text else 'Every report'} of this cluster, the newest first{cut_text}"
    # A report that failed has no numbers: it is a shaded column in the charts, and a row of the table.
    shown = steps[-_LINES:]
    labels = [minute_text(step.observed) for step in shown]
    charts = _charts(
        "each report",
        [
            Column(label, _open_counts(step) if step.completed else None)
            for label, step in zip(labels, shown, strict=True)
        ],
        [
            Column(label, (len(step.new), len(step.grown), len(step.gone)) if step.completed else None)
            for label, step in zip(labels, shown, strict=True)
        ],
    )
    return join(charts, long_section(f"Reports ({len(lines)})", grid(caption, heads, lines[:_LINES])))


def _open_counts(of: Day | ReportStep) -> tuple[int, int, int]:
    """Returns the counts of the chart: risks that apply, that are unknown, and those of both that are accepted."""
    return of.applies - of.accepted_applies, of.unknown - of.accepted_unknown, of.accepted


def _charts(of_what: str, open_risks: Sequence[Column], changes: Sequence[Column]) -> Child:
    """Returns both charts; the table below them has their numbers."""
    return el(
        "section",
        columns_chart(f"Risks of {of_what}", _OPEN, open_risks),
        el("p", prose(_RECORDED), class_="faint"),
        columns_chart(f"Risks that came and went, of {of_what}", _CHANGES, changes),
        el("p", "A pale column is a report of a cluster that could not be evaluated.", class_="faint")
        if any(column.counts is None for column in open_risks)
        else None,
        class_="card",
        aria_label="Charts",
    )


def _left_out_text(lines: Sequence[Markup], noun: str) -> str:
    """Returns what a table says about lines that it does not have."""
    return f": the newest {_LINES} of {len(lines)} {noun}" if len(lines) > _LINES else ""
