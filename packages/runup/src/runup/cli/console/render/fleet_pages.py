"""Renders the pages of all clusters: the board, and the new and gone risks of stored reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubekit.lang.text import is_to_come
from runup.checks.areas import area_of, areas
from runup.cli.console.render import frame
from runup.cli.fleet.render import fleet_page, history_page
from runup.cli.render.html.markup import BUSY, WARN, Child, Markup, badge, el, join
from runup.console.decide.board import Board, BoardEntry
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import matrix
from runup.fleet.decide.selection import SORTS, STATES, Selection, select
from runup.fleet.decide.trend import ReportStep
from runup.preflight.decide.findings import COULD_NOT_RUN, Findings, count_risks
from runup.report.report import SEVERITIES

_HEADS = ("Result", "From", "To", "Apply", "Unknown", "Accepted", "As the cluster was")
EVERYTHING = Selection()


def board_page(
    board: Board,
    results: Sequence[ClusterResult],
    now: datetime,
    max_age: timedelta,
    notes: Sequence[str] = (),
    site: frame.Site = frame.ONLY_SHOWS,
    selection: Selection = EVERYTHING,
) -> str:
    """Returns the page; `results` are the findings that count now, one for each cluster of the board."""
    table = matrix([(result.name, result.findings) for result in results])
    waiting = sum(entry.evaluated is None for entry in board.entries.values())
    waiting_text = ""
    if not board.version:
        waiting_text = "Not evaluated yet: the clusters are still being listed; reload this page."
    elif waiting:
        number = f"{waiting} of {len(board.entries)} clusters"
        waiting_text = f"Not evaluated yet: {number}. Nothing is known about them; reload this page."
    labels = {name: entry.member.labels for name, entry in board.entries.items()}
    selected = select([(each.name, each.findings) for each in results], labels, selection, area_of)
    clusters = fleet_page.fleet_table(
        "Every cluster that fits, what it comes to, how old that is, and each of its risks",
        _HEADS,
        selected,
        lambda row: _cells(board.entries[row.name], row.findings, now, max_age),
        link=frame.cluster_link,
    )
    shown = len(results) - selected.omitted
    omitted_text = f"{selected.omitted} of {len(results)} clusters do not fit and are left out."
    unevaluated_text = f"{selected.unevaluated} of these have no result: whether they fit is unknown."
    is_filtered = selection != EVERYTHING
    section = el(
        "section",
        el("h2", f"Clusters ({shown})"),
        _filter_form(selection, sorted({key for of_cluster in labels.values() for key in of_cluster})),
        el("p", omitted_text, class_="faint") if selected.omitted else None,
        el("p", unevaluated_text, class_="faint") if selection.by_risk and selected.unevaluated else None,
        el("div", clusters, class_="card long"),
    )
    body = join(
        fleet_page.summary_card(table),
        el("p", waiting_text, class_="card issue warn") if waiting_text else None,
        section,
        fleet_page.sections(table, frame.cluster_link, only=frozenset(selected.risks) if is_filtered else None),
        frame.commands([("The same, as one page", "runup fleet preflight --contexts A,B -o html=fleet.html")]),
    )
    notes = (*board.notes, *notes, *selection.problems)
    return frame.whole_page("Fleet", body, now=now, current_path="fleet", notes=notes, site=site)


def _filter_form(selection: Selection, keys: Sequence[str]) -> Markup:
    """Returns the form whose fields are the query of the page's address."""

    def choice(name: str, label: str, values: Sequence[str], every: str = "") -> Markup:
        chosen = getattr(selection, name)
        first = [el("option", every, value="")] if every else []
        rest = (el("option", value, value=value, selected="" if value == chosen else None) for value in values)
        return el("label", label, el("select", *first, *rest, name=name))

    def words(name: str, label: str) -> Markup:
        return el("label", label, el("input", type="text", name=name, value=getattr(selection, name)))

    return el(
        "form",
        choice("severity", "At least", SEVERITIES, "any severity"),
        choice("area", "Area", areas(), "any area"),
        choice("state", "State", STATES, "any state"),
        words("label", "Labels, such as env=production"),
        words("text", "Text"),
        choice("sort", "Sort by", SORTS),
        choice("group", "Group by label", keys, "no group") if keys else None,
        el("button", "Show", type="submit"),
        el("a", "Show all", href="/") if selection != EVERYTHING else None,
        class_="filter",
        method="get",
        action="/",
        role="search",
        aria_label="Filter the clusters",
    )


def _cells(entry: BoardEntry, findings: Findings, now: datetime, max_age: timedelta) -> tuple[Child, ...]:
    """Returns the cells of one cluster: its result, releases, numbers of risks and age."""
    outcome, observed = findings.result, findings.observed
    numbers = tuple(map(str, count_risks(findings.risks))) if outcome.code != COULD_NOT_RUN else ("", "", "")
    to_come = observed is not None and is_to_come(observed, now)
    # The cluster's result as a badge: not evaluated yet, too old to count, or what its preflight came to.
    if entry.evaluated is None:
        result_badge = badge("not evaluated yet", BUSY)
    elif findings.ended:
        result_badge = badge("its time is still to come" if to_come else "too old to count", WARN)
    else:
        result_badge = badge(outcome.text, outcome.tone)
    # How old the result is, or the last one that there was.
    age_text = ""
    if entry.evaluated is not None and findings.completed:
        age_text = frame.how_old(observed, now)
        if findings.ended and not to_come:
            age_text += f": older than {max_age.total_seconds() / 3600:g} h"
    elif entry.evaluated is not None:
        age_text = f"tried {frame.how_old(entry.at, now)}"
        if entry.last_good:
            age_text += f"; last evaluated as it was {frame.how_old(entry.last_good.observed, now)}"
    return (result_badge, findings.source, findings.target, *numbers, age_text)


# Notes about reports that are shown.
_NOTES = 20


def no_store_page(now: datetime, notes: Sequence[str], site: frame.Site = frame.ONLY_SHOWS) -> str:
    """Returns the page of a console that was given no store."""
    no_store_text = "The console was started without a store of reports. Reports are kept by `--store` of a preflight:"
    body = join(
        frame.message("No history", no_store_text),
        el("pre", el("code", "runup fleet preflight --contexts all --store reports")),
        el("pre", el("code", "runup serve --store reports")),
    )
    return frame.whole_page("History", body, now=now, current_path="history", notes=notes, site=site)


def history(
    entries: Sequence[BoardEntry],
    cluster: str,
    now: datetime,
    *,
    weeks: bool,
    notes: Sequence[str],
    site: frame.Site = frame.ONLY_SHOWS,
) -> str:
    """Returns the page of these clusters; `cluster` is the one that was asked for, if one was."""
    steps = [step for entry in entries if entry.evaluated for step in entry.evaluated.steps]
    ordered = sorted(steps, key=lambda step: (step.observed, step.cluster))
    # What of the history is not known, and why: then what is shown is not all that there is.
    waiting = sum(entry.evaluated is None for entry in entries)
    whose_notes: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.evaluated.history_notes if entry.evaluated else ():
            whose_notes.setdefault(note, []).append(entry.member.name)
    missing_lines = [
        f"{names[0] if len(names) == 1 else f'{len(names)} clusters'}: {note}" for note, names in whose_notes.items()
    ]
    more_lines = [f"and {len(missing_lines) - _NOTES} more of this kind"] if len(missing_lines) > _NOTES else []
    counts_text = f": {waiting} of {len(entries)} clusters" if len(entries) > 1 else ""
    begun = [f"not read yet{counts_text}; reload this page"] if waiting else []
    missing = [*begun, *missing_lines[:_NOTES], *more_lines]
    if not ordered:
        of_cluster = "of this cluster yet" if cluster else "yet"
        body = frame.message(
            "No history", "No report is known." if missing or notes else f"The store has no report {of_cluster}."
        )
    else:
        body = _of_cluster(ordered, cluster) if cluster else _of_fleet(ordered, weeks=weeks)
    return frame.whole_page("History", body, now=now, current_path="history", notes=(*notes, *missing), site=site)


def _of_fleet(steps: Sequence[ReportStep], *, weeks: bool) -> Markup:
    """Returns the sections of the whole fleet: one row a day, or a week if `weeks`."""
    other_grouping_link = el("a", "By day", href="/history") if weeks else el("a", "By week", href="/history?by=week")
    names = sorted({step.cluster for step in steps})
    paths = ((name, frame.path_of(name).replace("/clusters/", "/history?cluster=", 1)) for name in names)
    clusters = (el("li", el("a", name, href=path)) for name, path in paths)
    return join(
        el("section", el("h1", "What came and went"), el("p", other_grouping_link), class_="card"),
        history_page.fleet_sections(steps, weeks=weeks),
        el("section", el("h2", f"One cluster ({len(names)})"), el("nav", el("ul", *clusters), aria_label="Clusters")),
    )


def _of_cluster(steps: Sequence[ReportStep], cluster: str) -> Markup:
    """Returns the sections of one cluster."""
    links = el(
        "p", el("a", "Its preflight", href=frame.path_of(cluster)), " ", el("a", "All clusters", href="/history")
    )
    head = el("section", el("h1", f"What came and went: {cluster}"), links, class_="card")
    return join(head, history_page.cluster_sections(steps))
