"""Renders the page of one cluster's way through the update graph: a drawing, and the same as tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from runup.advice.decide.update_paths import UpdatePaths, UpdateStep
from runup.cli.console.render.frame import ONLY_SHOWS, Site, message, whole_page
from runup.cli.render.html.markup import BAD, GOOD, WARN, Markup, badge, el, grid, join, long_section
from runup.console.decide.graph_ways import UpdateWay

_WIDE, _HIGH, _LEFT, _TOP, _RIGHT = 180, 30, 30, 40, 150
_TONES = {"plain": GOOD, "risky": WARN, "blocked": BAD}
_WORDS = {"plain": "no known risks", "risky": "with risks", "blocked": "blocked"}


def page(name: str, update_way: UpdateWay, now: datetime, site: Site = ONLY_SHOWS) -> str:
    """Returns the page of cluster `name`."""
    if update_way.paths is None:
        body = message("The way is not known", update_way.why)
    else:
        # The section with the start, the goal, the number of updates between them, and the source.
        paths = update_way.paths
        source_text = f"As told by {update_way.source}."
        if paths.origin == paths.goal:
            verdict = f"{paths.goal} is the newest release there."
        elif paths.way:
            count = len(paths.way)
            risky = sum(bool(step.risks) for step in paths.way)
            verdict = f"{count} {'update' if count == 1 else 'updates'}, {risky} with known risks."
        else:
            verdict = f"No way leads to {paths.goal}."
        body = join(
            el(
                "section",
                el("h1", f"The way from {paths.origin} to {paths.goal}"),
                el("p", verdict),
                el("p", update_way.why, class_="warn") if update_way.why else None,
                el("p", source_text, class_="faint"),
                class_="card",
            ),
            _draw_graph(paths),
            long_section("The way", grid(_WAY, _WAY_HEADS, _way_lines(paths))) if paths.way else None,
            _updates_table(update_way, paths),
        )
    return whole_page("Way", body, now=now, current_path="graph", cluster=name, site=site)


def _draw_graph(paths: UpdatePaths) -> Markup:
    """Returns the drawing: a column for each minor version, the newest release on top."""
    steps = dict.fromkeys((*paths.updates, *paths.way))
    edges = [(step, "risky" if step.risks else "plain") for step in steps]
    edges += [(UpdateStep(paths.origin, to, files), "blocked") for to, files in paths.blocked.items()]
    positions = _node_positions({version for step, _ in edges for version in (step.origin, step.to)} | {paths.origin})
    shapes = []
    for step, kind in edges:
        (x1, y1), (x2, y2) = positions[step.origin], positions[step.to]
        # Releases of one minor version are in one column, so that a straight line would run through them.
        bend = (x1 + x2) // 2 + (60 if x1 == x2 else 0)
        reason = f": {', '.join(step.risks)}" if step.risks else ""
        title = el("title", f"{step.origin} to {step.to}, {_WORDS[kind]}{reason}")
        class_ = f"{kind} onway" if step in paths.way else kind
        shapes.append(el("path", title, class_=class_, d=f"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"))
    for version, (x, y) in positions.items():
        role = "origin" if version == paths.origin else "goal" if version == paths.goal else None
        shapes.append(el("circle", cx=str(x), cy=str(y), r="4"))
        shapes.append(el("text", version, x=str(x - 4), y=str(y - 9), class_=role))
    width = max(x for x, _ in positions.values()) + _RIGHT
    height = max(y for _, y in positions.values()) + _TOP
    drawn = el(
        "svg",
        *shapes,
        width=str(width),
        height=str(height),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"Updates from {paths.origin}, and the way to {paths.goal}; the tables below say the same",
    )
    legend = el("p", "Solid: no known risks. Dashed: with risks. Dotted: blocked. Thick: the way.", class_="faint")
    frame_ = el("div", drawn, class_="scroll", tabindex="0", role="region", aria_label="The drawing of the way")
    return long_section("Drawing", legend, frame_)


def _node_positions(versions: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Returns the (x, y) of each version in the drawing: one column a minor version, the newest on top."""
    by_minor: dict[tuple[int, ...], list[str]] = {}
    for version in sorted(versions, key=_version_key, reverse=True):
        by_minor.setdefault(_version_key(version)[0][:2], []).append(version)
    return {
        version: (_LEFT + column * _WIDE, _TOP + row * _HIGH)
        for column, minor in enumerate(sorted(by_minor))
        for row, version in enumerate(by_minor[minor])
    }


_WAY, _WAY_HEADS = "The updates of the way, in their order", ("Update", "From", "To", "State", "Risks")


def _way_lines(paths: UpdatePaths) -> Iterable[Markup]:
    for number, step in enumerate(paths.way, 1):
        state, risks = _kind_badge("risky" if step.risks else "plain"), el("td", ", ".join(step.risks), class_="wide")
        cells = (el("td", cell) for cell in (step.origin, step.to, state))
        yield el("tr", el("th", str(number), scope="row"), *cells, risks)


def _version_key(version: str) -> tuple[tuple[int, ...], str]:
    """Returns a sort key of a version; those of Kubernetes may lack the patch."""
    match = re.match(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", version)
    return tuple(int(number or 0) for number in match.groups()) if match else (), version


def _updates_table(update_way: UpdateWay, paths: UpdatePaths) -> Markup | None:
    """Returns the direct updates of the origin as a table, blocked ones included; None if there are none."""
    rows: Sequence[tuple[str, str, Sequence[str]]] = [
        *((step.to, "risky" if step.risks else "plain", step.risks) for step in paths.updates),
        *((to, "blocked", files) for to, files in paths.blocked.items()),
    ]
    if not rows:
        return None
    lines = (
        el("tr", el("th", to, scope="row"), el("td", _kind_badge(kind)), el("td", ", ".join(reason), class_="wide"))
        for to, kind, reason in rows
    )
    table = grid(f"Where {paths.origin} can go next", ("Release", "State", "Risks, or what blocks it"), lines)
    left_out = f"{update_way.left_out} more are left out; `runup graph show` has them all."
    note = el("p", left_out) if update_way.left_out else None
    return long_section(f"Updates of {paths.origin}", table, note)


def _kind_badge(kind: str) -> Markup:
    return badge(_WORDS[kind], _TONES[kind])
