"""Renders simulated drains, and a forecast that rests on them, as one page: nodes on a time axis, with tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from runup.cli.render.html.charts import Mark, Span, axis, lane
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import Markup, age, el, grid, join, long_section, minute_text
from runup.rehearse.decide.drains.drain_result import Blocked, DrainResult, NodeDrain

# Lanes that are drawn in each pool; the table has all nodes.
_LANES = 100
_ROWS = 1000
_HEADS = ("Node", "Pool", "Drain begins", "Drained", "Back", "What holds it up")
_LEGEND = (("busy", "drain"), ("good", "update"), ("bad", "a pod that cannot be evicted yet"))
Window = tuple[datetime, datetime]


def page(title: str, summary: Sequence[str], result: DrainResult, windows: Sequence[Window] = ()) -> str:
    """Returns the page: sentences of a summary, the chart with `windows` shaded, and what the chart shows as tables."""
    return document(title, page_body(title, summary, result, windows), now=result.started)


def page_body(title: str, summary: Sequence[str], result: DrainResult, windows: Sequence[Window] = ()) -> Markup:
    """Returns the sections of the page, in the order in which they are read."""
    first, *others = summary
    head = el("section", el("h1", title), el("p", first), *(el("p", text) for text in others), class_="card")
    body = (head, _chart(result, windows), _nodes(result), _places(result), _texts("Not known", result.unknown))
    return join(*body, _texts("Taken for granted", result.assumed), _texts("Accuracy", result.trust))


def _chart(result: DrainResult, windows: Sequence[Window]) -> Markup | None:
    """Returns a lane for each node, below its pool; reasons are shown by a pointer, the keyboard or a tap."""
    if not result.nodes:
        return None
    end = result.started + timedelta(seconds=max(60, result.duration_s))
    span = Span(result.started, end)
    shades = [span.bar(opens, closes, "shade") for opens, closes in windows if closes > span.start and opens < end]
    rows: list[Markup] = [axis(span)]
    for pool in result.pools:
        held = f": {pool.held}" if pool.held else ", paused" if pool.paused else ""
        rows.append(el("div", f"Pool {pool.name}{held}", class_="group"))
        rows += [_lane(node, span, shades) for node in pool.nodes[:_LANES]]
        if len(pool.nodes) > _LANES:
            rows.append(el("div", f"{len(pool.nodes) - _LANES} more: see the table", class_="more"))
    legend = [el("span", words, class_=tone) for tone, words in _LEGEND]
    if windows:
        legend.append(el("span", "Pale blue: the window is open", class_="sum"))
    chart = el("div", *rows, class_="time")
    return el(
        "section", el("h2", "Nodes (UTC)"), el("div", el("div", *legend, class_="tally"), chart, class_="card long")
    )


def _lane(node: NodeDrain, span: Span, shades: Sequence[Mark]) -> Markup:
    def at(seconds: int) -> datetime:
        return span.start + timedelta(seconds=seconds)

    marks = [span.bar(at(node.from_s), at(node.drained_s), "busy")]
    if node.back_s is not None:
        marks.append(span.bar(at(node.drained_s), at(node.back_s), "good"))
    held_up = ((each.from_s, node.drained_s if each.to_s is None else each.to_s) for each in node.blocked)
    marks.extend(span.bar(at(from_s), at(to_s), "bad") for from_s, to_s in held_up)
    whole_s = (node.drained_s if node.back_s is None else node.back_s) - node.from_s
    reasons = "; ".join(map(blocked_text, node.blocked))
    label = f"{node.node}: {_length(whole_s)} from {span.clock(at(node.from_s))}"
    drawn = lane(f"{label}; {reasons}" if reasons else label, marks, shades)
    if reasons:
        drawn = el("div", drawn, el("div", reasons, class_="tip"), class_="reason", tabindex="0", role="group",
                   aria_label=f"{node.node}: what holds it up")  # fmt: skip
    state = f"{_length(whole_s)}, held up" if reasons else _length(whole_s)
    return join(el("div", node.node, class_="name"), drawn, el("div", state, class_="bad" if reasons else "idle"))


def _length(seconds: int) -> str:
    return age(timedelta(seconds=seconds))


def blocked_text(blocked: Blocked) -> str:
    """Returns which pod holds a drain up, for how long, and why."""
    budgets = f" ({', '.join(blocked.by)})" if blocked.by else ""
    until = "until it is deleted" if blocked.to_s is None else f"for {_length(blocked.to_s - blocked.from_s)}"
    return f"pod {blocked.pod} {until}: {blocked.why}{budgets}"


def _nodes(result: DrainResult) -> Markup:
    lines = []
    for node in result.nodes[:_ROWS]:
        moments = (node.from_s, node.drained_s, node.back_s)
        times = ("" if s is None else minute_text(result.started + timedelta(seconds=s)) for s in moments)
        texts = "\n".join(map(blocked_text, node.blocked))
        cells = (el("td", text) for text in (node.pool, *times))
        lines.append(el("tr", el("th", node.node, scope="row"), *cells, el("td", texts, class_="wide")))
    count = len(result.nodes)
    cut = f", the first {_ROWS} of {count}" if count > _ROWS else ""
    return long_section(f"Drains ({count})", grid(f"Each node, in the order of its pool{cut}", _HEADS, lines))


def _places(result: DrainResult) -> Markup | None:
    """Returns the table of pods that find no place, or wait for one."""
    lines = [
        el(
            "tr",
            el("th", each.workload, scope="row"),
            el("td", str(each.pods)),
            el("td", "before" if each.before else f"{_length(each.from_s)} after the beginning"),
            el("td", "none" if each.to_s is None else _length(each.to_s - each.from_s)),
            el("td", each.why, class_="wide"),
        )
        for each in result.unplaced[:_ROWS]
    ]
    heads = ("Workload", "Pods", "Since", "Until there is a place", "Why")
    table = grid("Pods for which no node has room, for a time or at the end", heads, lines)
    return long_section(f"Pods without a place ({len(result.unplaced)})", table) if lines else None


def _texts(title: str, texts: Iterable[str]) -> Markup | None:
    items = [el("li", text) for text in texts]
    return long_section(title, el("ul", *items)) if items else None
