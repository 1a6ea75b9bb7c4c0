"""Renders the preflights of a fleet as one self-contained HTML page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kubekit.lang.text import count
from runup.cli.fleet.render.fleet_text import headline
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import BAD, IDLE, WARN, Child, Markup, badge, bar, el, grid, join, long_section
from runup.cli.render.html.prose import prose
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import Matrix, RiskRow
from runup.preflight.decide.findings import Result, count_risks

# More columns than this could not be compared by eye.
_COLUMNS = 30
# More rows than this make a page that a browser shows slowly, and names that nobody reads.
_ROWS, _NAMES = 1000, 200
_ORDER = {result.code: place for place, result in enumerate((Result.COULD_NOT_RUN, Result.APPLY, Result.UNKNOWN))}
_ORDER[Result.CLEAR.code] = len(_ORDER)
_STATES = {"refuses": BAD, "applies": BAD, "unknown": WARN, "accepted": IDLE, "informs": IDLE}
_SEVERITIES = {"critical": BAD, "warning": WARN}


def page(table: Matrix, results: Sequence[ClusterResult], now: datetime) -> str:
    """Returns the page of the fleet, as of `now`."""
    lines = []
    in_order = sorted(enumerate(table.results.items()), key=lambda each: (_ORDER[each[1][1].code], each[0]))
    evaluated = set(table.evaluated)
    for index, _ in in_order[:_ROWS] if len(results) > _ROWS else enumerate(table.results):
        result = results[index]
        findings, outcome = result.findings, result.findings.result
        numbers = count_risks(findings.risks) if result.name in evaluated else ("", "", "")
        lines.append(
            el(
                "tr",
                el("th", result.name, scope="row"),
                el("td", findings.cluster_id),
                el("td", findings.source),
                el("td", findings.target),
                el("td", badge(outcome.word, outcome.tone)),
                *(el("td", str(number)) for number in numbers),
            )
        )
    heads = ("Cluster", "ID", "From", "To", "Result", "Apply", "Unknown", "Accepted")
    clusters = grid("Every cluster, and what it came to", heads, lines)
    omitted = f"The table has the {_ROWS} worst clusters; `-o jsonl` has all {len(results)}."
    note = el("p", prose(omitted), class_="body") if len(results) > _ROWS else None
    body = join(summary_card(table), sections(table), long_section(f"Clusters ({len(results)})", note, clusters))
    return document("Preflights of a fleet", body, now=now)


def sections(table: Matrix, link: Callable[[str], Child] = str) -> Markup:
    """Returns what the clusters have in common; `link` returns how a cluster's name is shown."""
    parts = []
    if table.failed:
        failed = [
            el("tr", el("th", link(name), scope="row"), el("td", problem, class_="wide"))
            for name, problem in table.failed[:_ROWS]
        ]
        caption = "Clusters that could not be evaluated: nothing is known about them"
        parts.append(
            long_section(f"Could not be evaluated ({len(table.failed)})", grid(caption, ("Cluster", "Why"), failed))
        )
    if table.rows and len(table.clusters) <= _COLUMNS:
        evaluated = table.evaluated
        lines = []
        for row in table.rows:
            marks = [row.mark(name) for name in evaluated]
            cells = (el("td", badge(mark, _STATES[mark]) if mark else None) for mark in marks)
            lines.append(el("tr", el("th", row.name, scope="row"), *cells))
        marks_table = grid("Each risk, and what it is for each cluster", ("Risk", *map(link, evaluated)), lines)
        parts.append(long_section("Risks by cluster", marks_table))
    parts += [_risk_details(row, len(table.clusters)) for row in table.rows]
    if len(table.groups) > 1:
        lines = []
        for group in table.groups[:_ROWS]:
            risks = ", ".join((*group.applies, *group.unknown)) or group.result.text
            cells = (el("td", text, class_="wide") for text in (_names_text(group.clusters), risks))
            lines.append(el("tr", el("td", str(len(group.clusters))), *cells))
        groups = grid("Clusters in which the same risks are open", ("Number", "Clusters", "Risks"), lines)
        parts.append(long_section("Clusters with the same result", groups))
    return join(*parts)


def summary_card(table: Matrix) -> Markup:
    """Returns how many clusters there are, and what they come to."""
    shares = [
        (result.tone, table.number(result))
        for result in (Result.CLEAR, Result.UNKNOWN, Result.APPLY, Result.COULD_NOT_RUN)
    ]
    return el(
        "section",
        el("div", el("h1", f"Preflights of {count(len(table.clusters), 'cluster')}"), class_="head"),
        el("p", headline(table)),
        bar(shares, len(table.clusters), headline(table)),
        class_="card",
    )


def _names_text(names: Sequence[str]) -> str:
    omitted = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")


def _risk_details(row: RiskRow, total: int) -> Markup:
    tone = _SEVERITIES.get(row.severity, WARN) if row.applies else WARN if row.unknown else IDLE
    state = badge(f"{len(row.applies or row.unknown or row.accepted or row.informs)} of {total}", tone)
    lists = [
        el("details", el("summary", f"{label} ({len(names)})"), el("p", _names_text(names), class_="body"))
        for label, names in (
            ("Refuses the update", row.refuses),
            ("Applies", row.applies),
            ("Unknown", row.unknown),
            ("Accepted", row.accepted),
            ("Informs", row.informs),
        )
        if names
    ]
    return el(
        "article",
        el(
            "div",
            el("h3", row.name),
            el("span", state, badge(row.severity, tone) if row.severity else None),
            class_="head",
        ),
        el("p", prose(row.message), class_="body"),
        el("dl", el("dt", "Remedy"), el("dd", prose(row.fix.strip())), class_="rows") if row.fix.strip() else None,
        *(el("p", f"{cluster}: {text}", class_="body") for cluster, text in row.grown[:_NAMES]),
        el("p", f"Why it may stay: {'; '.join(row.because)}", class_="body") if row.because else None,
        *lists,
        class_=f"card issue {tone} long",
    )
