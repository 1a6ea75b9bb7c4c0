"""Renders the preflights of a fleet as one self-contained HTML page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from msgspec.structs import replace

from kubekit.lang.text import count
from runup.checks.areas import area_of
from runup.cli.fleet.render.fleet_text import headline
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import (
    IDLE,
    SEVERITY_TONES,
    WARN,
    Child,
    Markup,
    badge,
    bar,
    el,
    grid,
    join,
    long_section,
    risk_mark,
)
from runup.cli.render.html.prose import prose
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import Matrix, RiskRow
from runup.fleet.decide.selection import FleetRow, SelectedFleet, Selection, select
from runup.preflight.decide.findings import Result, count_risks

# More columns than this could not be compared by eye.
_COLUMNS = 40
# More rows than this make a page that a browser shows slowly, and names that nobody reads.
_ROWS, _NAMES = 1000, 200
_LEGEND = (
    ("critical", "applies"),
    ("warning", "applies"),
    ("info", "applies"),
    ("critical", "refuses"),
    ("warning", "unknown"),
    ("warning", "accepted"),
    ("info", "informs"),
)


def page(
    table: Matrix, results: Sequence[ClusterResult], now: datetime, labels: Mapping[str, Mapping[str, str]] = {}
) -> str:
    """Returns the page of the fleet, as of `now`."""
    selected = select([(each.name, each.findings) for each in results], labels, Selection(), area_of)
    rows = [row for _, of_group in selected.groups for row in of_group][:_ROWS]
    evaluated = set(table.evaluated)

    def cells(row: FleetRow) -> tuple[Child, ...]:
        findings, outcome = row.findings, row.findings.result
        numbers = count_risks(findings.risks) if row.name in evaluated else ("", "", "")
        shown = badge(outcome.word, outcome.tone)
        return (shown, findings.source, findings.target, findings.cluster_id, *map(str, numbers))

    heads = ("Result", "From", "To", "ID", "Apply", "Unknown", "Accepted")
    shown = replace(selected, groups=(("", tuple(rows)),))
    clusters = fleet_table("Every cluster, and what it came to", heads, shown, cells)
    omitted = f"The table has the {_ROWS} worst clusters; `-o jsonl` has all {len(results)}."
    note = el("p", prose(omitted), class_="body") if len(results) > _ROWS else None
    body = join(summary_card(table), long_section(f"Clusters ({len(results)})", note, clusters), sections(table))
    return document("Preflights of a fleet", body, now=now)


def fleet_table(
    caption: str,
    heads: Sequence[str],
    selected: SelectedFleet,
    cells: Callable[[FleetRow], Sequence[Child]],
    *,
    link: Callable[[str], Child] = str,
) -> Markup:
    """Returns a row for each cluster: `cells` below `heads`, a mark for each risk; on a phone a card."""
    columns = selected.risks[:_COLUMNS]
    bodies = []
    for label, rows in selected.groups:
        lines = []
        if label:
            head = el("th", f"{label} ({len(rows)})", scope="rowgroup", colspan=str(1 + len(heads) + len(columns)))
            lines.append(el("tr", head, class_="group"))
        for row in rows:
            marks = {risk.name: _mark_cell(risk.name, risk.severity, risk.state) for risk in row.risks}
            first, *others = (
                el("td", cell or None, data_label=head) for head, cell in zip(heads, cells(row), strict=True)
            )
            name = el("th", link(row.name), scope="row")
            lines.append(el("tr", name, first, *(marks.get(column, _NO_MARK) for column in columns), *others))
        bodies.append(el("tbody", *lines))
    turned = [el("th", el("span", name), scope="col", class_="turned", title=name) for name in columns]
    cluster, first, *others = (el("th", name, scope="col") for name in ("Cluster", *heads))
    head = el("tr", cluster, first, *turned, *others)
    table = el("table", el("caption", caption), el("thead", head), *bodies, class_="matrix")
    more = len(selected.risks) - len(columns)
    note = f"{more} more risks have no column: filter by severity, area or state to see them." if more > 0 else ""
    legend = [(severity, state, f"{severity}, {state}") for severity, state in _LEGEND]
    shown = [el("span", risk_mark(severity, state), f" {words}") for severity, state, words in legend]
    return join(
        el("p", *shown, class_="legend") if columns else None,
        el("p", note, class_="faint") if note else None,
        el("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption),
    )


_NO_MARK = el("td")


@lru_cache(4096)
def _mark_cell(name: str, severity: str, state: str) -> Markup:
    """Returns the cell of one risk; its name is shown where a cluster is a card."""
    return el("td", risk_mark(severity, state), data_risk=name)


def sections(table: Matrix, link: Callable[[str], Child] = str, *, only: frozenset[str] | None = None) -> Markup:
    """Returns what the clusters have in common; `link` returns how a cluster's name is shown.

    `only` are the risks whose details are shown, if not all.
    """
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
    parts += [_risk_details(row, len(table.clusters)) for row in table.rows if only is None or row.name in only]
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
    tone = SEVERITY_TONES.get(row.severity, WARN) if row.applies else WARN if row.unknown else IDLE
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
