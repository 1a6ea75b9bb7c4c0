"""Renders the page of all clusters: a summary, each risk with its clusters, and each cluster with its age. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from runup.cli.console.render.frame import ONLY_SHOWS, Site, cluster_link, commands, how_old, whole_page
from runup.cli.fleet.render import fleet_page
from runup.cli.render.html.markup import BAD, BUSY, GOOD, WARN, Markup, badge, el, grid, join
from runup.console.decide.judgement import Board, BoardEntry, is_to_come
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import RESULTS, matrix
from runup.preflight.decide.findings import APPLY, COULD_NOT_RUN, EXIT_CLEAR, UNKNOWN, Findings, count_risks

_TONES = {EXIT_CLEAR: GOOD, APPLY: BAD, UNKNOWN: WARN, COULD_NOT_RUN: BAD}
_HEADS = ("Cluster", "Result", "From", "To", "Apply", "Unknown", "Accepted", "As the cluster was")


def page(
    board: Board,
    results: Sequence[ClusterResult],
    now: datetime,
    max_age: timedelta,
    notes: Sequence[str] = (),
    site: Site = ONLY_SHOWS,
) -> str:
    """Returns the page; `results` are the findings that count now, one for each cluster of the board."""
    table = matrix([(result.name, result.findings) for result in results])
    body = join(
        fleet_page.summary_card(table),
        _unjudged_note(board),
        _clusters(board, results, now, max_age),
        fleet_page.sections(table, cluster_link),
        commands([("The same, as one page", "runup fleet preflight --contexts A,B -o html=fleet.html")]),
    )
    return whole_page("Fleet", body, now=now, current_path="fleet", notes=(*board.notes, *notes), site=site)


def _unjudged_note(board: Board) -> Markup | None:
    """Returns a note about clusters that were not judged yet, None if all were."""
    if not board.version:
        return el(
            "p", "Not judged yet: the clusters are still being listed; reload this page.", class_="card issue warn"
        )
    waiting = sum(entry.judged is None for entry in board.entries.values())
    if not waiting:
        return None
    waiting_text = (
        f"Not judged yet: {waiting} of {len(board.entries)} clusters. Nothing is known of them; reload this page."
    )
    return el("p", waiting_text, class_="card issue warn")


def _clusters(board: Board, results: Sequence[ClusterResult], now: datetime, max_age: timedelta) -> Markup:
    lines = (_cluster_row(board.entries[result.name], result.findings, now, max_age) for result in results)
    table = grid("Every cluster, what it comes to, and how old that is", _HEADS, lines)
    return el("section", el("h2", f"Clusters ({len(results)})"), el("div", table, class_="card long"))


def _cluster_row(entry: BoardEntry, findings: Findings, now: datetime, max_age: timedelta) -> Markup:
    """Returns the table row of one cluster: its result, releases, numbers of risks and age."""
    code = findings.exit_code
    numbers = tuple(map(str, count_risks(findings.risks))) if code != COULD_NOT_RUN else ("", "", "")
    # The cluster's result as a badge: not judged yet, too old to count, or what its preflight came to.
    if entry.judged is None:
        result_badge = badge("not judged yet", BUSY)
    elif findings.ended:
        age_problem = "its time is still to come" if _is_to_come(findings, now) else "too old to count"
        result_badge = badge(age_problem, WARN)
    else:
        result_badge = badge(RESULTS[code], _TONES[code])
    return el(
        "tr",
        el("th", cluster_link(entry.member.name), scope="row"),
        el("td", result_badge),
        el("td", findings.source),
        el("td", findings.target),
        *(el("td", number) for number in numbers),
        el("td", _age(entry, findings, now, max_age), class_="wide"),
    )


def _is_to_come(findings: Findings, now: datetime) -> bool:
    return findings.observed is not None and is_to_come(findings.observed, now)


def _age(entry: BoardEntry, findings: Findings, now: datetime, max_age: timedelta) -> str:
    """Returns how old the result is, or the last one that there was."""
    if entry.judged is None:
        return ""
    if findings.completed:
        age_text = how_old(findings.observed, now)
        if not findings.ended or _is_to_come(findings, now):
            return age_text
        return f"{age_text}: older than {max_age.total_seconds() / 3600:g} h"
    tried = f"tried {how_old(entry.at, now)}"
    last_good = entry.last_good
    return f"{tried}; last judged as it was {how_old(last_good.observed, now)}" if last_good else tried
