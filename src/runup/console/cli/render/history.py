"""Renders what came and went in kept reports: by day or week of the fleet, or by report of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runup.cli.render.html.markup import Markup, el, join
from runup.cli.render.html.parts import WARN, badge, grid, minute_text
from runup.console.cli.render.frame import frame, message, path_of
from runup.fleet.decide.trend import Change, Step, days

# As many objects as are named of a risk, and reports and days that are shown, the newest.
_OBJECTS = 3
_LINES = 200


def page(steps: Sequence[Step], cluster: str, now: datetime, *, weeks: bool, stored: bool, notes: Sequence[str]) -> str:
    """Returns the page; `stored` says whether the console was given a store at all."""
    if not stored:
        words = "The console was started without a store of reports. Reports are kept by `--store` of a preflight:"
        body = join(
            message("No history", words),
            el("pre", el("code", "runup fleet preflight --contexts all --store reports")),
            el("pre", el("code", "runup serve --store reports")),
        )
        return frame("History", body, now=now, here="history", notes=notes)
    ordered = sorted(steps, key=lambda step: (step.observed, step.cluster))
    if not ordered:
        body = message("No history", "The store has no report yet.")
    else:
        body = _of_cluster(ordered, cluster) if cluster else _of_fleet(ordered, weeks=weeks)
    return frame("History", body, now=now, here="history", notes=notes)


def _of_fleet(steps: Sequence[Step], *, weeks: bool) -> Markup:
    word = "Week of" if weeks else "Day"
    lines = [
        el(
            "tr",
            el("th", f"{day.day:%Y-%m-%d}", scope="row"),
            el("td", str(day.clusters)),
            el("td", badge(f"{day.failed} not judged", WARN) if day.failed else "0"),
            el("td", str(day.applies)),
            el("td", str(day.unknown)),
            el("td", _counted(day.new), class_="wide"),
            el("td", _counted(day.gone), class_="wide"),
        )
        for day in reversed(days(steps, weeks=weeks))
    ]
    heads = (word, "Clusters", "Not judged", "Apply", "Unknown", "New", "Gone")
    table = grid("What the newest reports of each day come to, the newest first", heads, lines[:_LINES])
    other = el("a", "By day", href="/history") if weeks else el("a", "By week", href="/history?by=week")
    names = sorted({step.cluster for step in steps})
    clusters = (el("li", el("a", name, href=_href(name))) for name in names)
    return join(
        el("section", el("h1", "What came and went"), el("p", other), class_="card"),
        el("section", el("h2", "All clusters"), el("div", table, class_="card long")),
        el("section", el("h2", f"One cluster ({len(names)})"), el("nav", el("ul", *clusters), aria_label="Clusters")),
    )


def _href(cluster: str) -> str:
    quoted = path_of(cluster).removeprefix("/clusters/")
    return f"/history?cluster={quoted}"


def _counted(pairs: Sequence[tuple[str, int]]) -> str:
    return ", ".join(name if number == 1 else f"{name} ({number} clusters)" for name, number in pairs)


def _of_cluster(steps: Sequence[Step], cluster: str) -> Markup:
    lines = [
        el(
            "tr",
            el("th", minute_text(step.observed), scope="row"),
            el("td", step.target),
            *(el("td", str(number) if step.completed else "") for number in (step.applies, step.unknown)),
            el("td", _came(step), class_="wide"),
            el("td", _changed(step.went, "no longer"), class_="wide"),
        )
        for step in reversed(steps)
    ]
    heads = ("As the cluster was", "Target", "Apply", "Unknown", "New", "Gone")
    table = grid("Every report of this cluster, the newest first", heads, lines[:_LINES])
    links = el("p", el("a", "Its preflight", href=path_of(cluster)), " ", el("a", "All clusters", href="/history"))
    return join(
        el("section", el("h1", f"What came and went: {cluster}"), links, class_="card"),
        el("section", el("h2", f"Reports ({len(lines)})"), el("div", table, class_="card long")),
    )


def _came(step: Step) -> str:
    if not step.completed:
        return "could not be judged"
    return "first report" if step.first else _changed(step.came, "now also")


def _changed(changes: Sequence[Change], word: str) -> str:
    """Returns which risks came or went, and which objects they were about."""
    return "; ".join(
        f"{change.risk}{f' ({_some(change.objects)})' if change.objects else ''}"
        if change.whole
        else f"{change.risk}: {word} {_some(change.objects)}"
        for change in changes
    )


def _some(objects: Sequence[str]) -> str:
    more = len(objects) - _OBJECTS
    return ", ".join(objects[:_OBJECTS]) + (f" and {more} more" if more > 0 else "")
