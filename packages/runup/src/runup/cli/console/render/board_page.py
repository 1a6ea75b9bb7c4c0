"""Renders the page of all clusters: a summary, each risk with its clusters, and each cluster with its age. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from runup.cli.console.render.frame import ONLY_SHOWS, Site, cluster_link, commands, how_old, whole_page
from runup.cli.fleet.render import fleet_page
from runup.cli.render.html.markup import BAD, BUSY, GOOD, WARN, Markup, badge, el, grid, join, long_section
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
    waiting = sum(entry.judged is None for entry in board.entries.values())
    waiting_text = ""
    if not board.version:
        waiting_text = "Not judged yet: the clusters are still being listed; reload this page."
    elif waiting:
        number = f"{waiting} of {len(board.entries)} clusters"
        waiting_text = f"Not judged yet: {number}. Nothing is known of them; reload this page."
    lines = [_cluster_row(board.entries[result.name], result.findings, now, max_age) for result in results]
    clusters = grid("Every cluster, what it comes to, and how old that is", _HEADS, lines)
    body = join(
        fleet_page.summary_card(table),
        el("p", waiting_text, class_="card issue warn") if waiting_text else None,
        long_section(f"Clusters ({len(results)})", clusters),
        fleet_page.sections(table, cluster_link),
        commands([("The same, as one page", "runup fleet preflight --contexts A,B -o html=fleet.html")]),
    )
    return whole_page("Fleet", body, now=now, current_path="fleet", notes=(*board.notes, *notes), site=site)


def _cluster_row(entry: BoardEntry, findings: Findings, now: datetime, max_age: timedelta) -> Markup:
    """Returns the table row of one cluster: its result, releases, numbers of risks and age."""
    code, observed = findings.exit_code, findings.observed
    numbers = tuple(map(str, count_risks(findings.risks))) if code != COULD_NOT_RUN else ("", "", "")
    to_come = observed is not None and is_to_come(observed, now)
    # The cluster's result as a badge: not judged yet, too old to count, or what its preflight came to.
    if entry.judged is None:
        result_badge = badge("not judged yet", BUSY)
    elif findings.ended:
        result_badge = badge("its time is still to come" if to_come else "too old to count", WARN)
    else:
        result_badge = badge(RESULTS[code], _TONES[code])
    # How old the result is, or the last one that there was.
    age_text = ""
    if entry.judged is not None and findings.completed:
        age_text = how_old(observed, now)
        if findings.ended and not to_come:
            age_text += f": older than {max_age.total_seconds() / 3600:g} h"
    elif entry.judged is not None:
        age_text = f"tried {how_old(entry.at, now)}"
        if entry.last_good:
            age_text += f"; last judged as it was {how_old(entry.last_good.observed, now)}"
    return el(
        "tr",
        el("th", cluster_link(entry.member.name), scope="row"),
        el("td", result_badge),
        el("td", findings.source),
        el("td", findings.target),
        *(el("td", number) for number in numbers),
        el("td", age_text, class_="wide"),
    )
