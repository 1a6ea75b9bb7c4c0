"""Renders a pool's card of the HTML page: node counts as a bar, then a table of nodes, those with problems first."""

from __future__ import annotations

from dataclasses import dataclass

from kubekit.api.conditions import find, status_of
from kubekit.lang.gotext import parse_duration, short_duration
from runup.api.update_v1alpha1 import ControlPlane, MachineConfigPoolInsight, NodeInsight, WorkerPool
from runup.cli.render.html.markup import Markup, el, join
from runup.cli.render.html.parts import BAD, BUSY, GOOD, IDLE, WARN, badge, bar, grid
from runup.cli.updatestatus.render.html.words import insights_of, tone_of_assessment

# More rows than this are folded away on the screen; on paper all are there.
ROWS_SHOWN = 12
# The order of the rows; an unknown assessment comes first.
_ORDER = ("Degraded", "Unavailable", "Progressing", "Excluded", "Outdated", "Completed")
_FROM_REASON = {"Paused": "Excluded", "Pending": "Outdated", "Completed": "Completed"}


@dataclass(frozen=True, slots=True)
class Row:
    """A node's row in the table."""

    name: str
    assessment: str
    phase: str
    version: str
    estimate: str
    message: str


def row_of(node: NodeInsight) -> Row:
    """Returns a node's row from its insight's conditions, as the text report does; `Unknown` where they do not say."""
    updating = find(node.conditions, "Updating")
    reason = updating.reason if updating else ""
    return Row(
        node.name,
        _node_assessment(node, reason),
        {"Completed": "Updated"}.get(reason, reason) or "Unknown",
        node.version or "?",
        _estimate(node.est_to_complete),
        node.message,
    )


def _estimate(duration: str) -> str:
    nanoseconds = parse_duration(duration)
    if nanoseconds is None:
        return "?"
    return f"+{short_duration(nanoseconds)}" if nanoseconds else "-"


def _node_assessment(node: NodeInsight, reason: str) -> str:
    """Returns the word for a node: the worst of its conditions, or what its reason says."""
    updating = status_of(node.conditions, "Updating")
    if status_of(node.conditions, "Degraded") == "True":
        return "Degraded"
    if status_of(node.conditions, "Available") == "False" and updating != "True":
        return "Unavailable"
    return "Progressing" if updating == "True" else _FROM_REASON.get(reason, "Unknown")


def _rank(row: Row) -> tuple[int, str, str]:
    place = _ORDER.index(row.assessment) if row.assessment in _ORDER else -1
    return place, row.phase, row.name


def pool_card(part: ControlPlane | WorkerPool, title: str) -> Markup | None:
    """Returns the pool's card, or None if the part says nothing about nodes."""
    pool = next((insight.machine_config_pool for insight in insights_of(part) if insight.machine_config_pool), None)
    rows = sorted((row_of(insight.node) for insight in insights_of(part) if insight.node), key=_rank)
    if pool is None and not rows:
        return None
    return el(
        "div",
        join(_summary_head(pool, title) if pool else el("h3", title)),
        _tables(rows, part.omitted.nodes, "the control plane" if isinstance(part, ControlPlane) else f"pool {title}"),
        class_="card long",
    )


def _summary_head(pool: MachineConfigPoolInsight, title: str) -> Markup:
    """Returns the head of a pool's card: assessment, bar and counts."""
    counts = {summary.type: summary.count for summary in pool.summaries}
    total = counts.get("Total", 0)
    if total == 0:
        return el("div", el("h3", title), badge("Empty", IDLE), class_="head")
    parts = _parts(counts, total)
    labels = (el("span", f"{count} {label}", class_=tone) for label, tone, count in parts if count)
    return join(
        el("div", el("h3", title), badge(pool.assessment, tone_of_assessment(pool.assessment)), class_="head"),
        bar(((tone, count) for _, tone, count in parts), total, f"{pool.completion} % of {total} nodes"),
        el("div", *labels, el("span", f"{pool.completion} % of {total} nodes", class_="sum"), class_="tally"),
    )


def _parts(counts: dict[str, int], total: int) -> list[tuple[str, str, int]]:
    """Returns label, colour and number of nodes of each group.

    Each node is counted once: the object's counts overlap, as a node can be degraded and draining.
    """
    updated_count = total - counts.get("Outdated", 0)
    draining = counts.get("Draining", 0)
    degraded, paused = counts.get("Degraded", 0), counts.get("Excluded", 0)
    busy = max(0, counts.get("Progressing", 0) - draining)
    waiting = max(0, total - updated_count - draining - busy - degraded - paused)
    return [
        ("updated", GOOD, updated_count),
        ("updating", BUSY, busy),
        ("draining", BUSY, draining),
        ("degraded", BAD, min(degraded, total - updated_count)),
        ("paused", WARN, paused),
        ("waiting", IDLE, waiting),
    ]


def _tables(rows: list[Row], omitted: int, owner: str) -> Markup:
    """Returns the tables of Nodes: the first rows open, the others folded, and how many are not listed."""
    open_, folded = rows[:ROWS_SHOWN], rows[ROWS_SHOWN:]
    more = (
        el("details", el("summary", f"{len(folded)} more nodes"), _table(folded, f"The other nodes of {owner}"))
        if folded
        else None
    )
    omitted_note = el(
        "p", f"{omitted} more nodes are counted above and not listed, to keep the object small.", class_="faint"
    )
    return join(_table(open_, f"Nodes of {owner}") if open_ else None, more, omitted_note if omitted else None)


def _table(rows: list[Row], caption: str) -> Markup:
    """Returns the rows as a table; it has no column for messages if there are none, so that long names fit."""
    messages = any(row.message for row in rows)
    heads = ("Node", "State", "Phase", "Version", "Needs", *(("Message",) if messages else ()))
    lines = (
        el(
            "tr",
            el("th", row.name, scope="row"),
            el("td", badge(row.assessment, tone_of_assessment(row.assessment))),
            el("td", row.phase),
            el("td", row.version),
            el("td", row.estimate),
            el("td", row.message, class_="wide") if messages else None,
        )
        for row in rows
    )
    return grid(caption, heads, lines)
