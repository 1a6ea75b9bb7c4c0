"""Draws the card of a pool: how many of its nodes are in which state, and a table of the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubekit.lang.gotext import short_duration
from runup.api.update_v1alpha1 import (
    ControlPlane,
    Insight,
    UpdateStatusStatus,
    WorkerPool,
)
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, WARN, Markup, badge, bar, el, grid, join
from runup.updatestatus.decide.read_status import NodeRow, PoolReport, merged_insights, pool_report

LEVELS = {"Unknown": 0, "Info": 1, "Warning": 2, "Error": 3, "Critical": 4}

_TONES = {
    "Completed": GOOD,
    "Progressing": BUSY,
    "Progressing - Slow": WARN,
    "Stalled": BAD,
    "Degraded": BAD,
    "Unavailable": BAD,
    "Excluded": WARN,
    "Pending": IDLE,
    "Outdated": IDLE,
}
_LEVEL_TONES = {"Info": BUSY, "Warning": WARN, "Error": BAD, "Critical": BAD}


def tone_of_assessment(assessment: str) -> str:
    """Returns the colour of an assessment; the colour of a warning if the assessment is not known."""
    return _TONES.get(assessment, WARN)


def tone_of_level(level: str) -> str:
    """Returns the colour of an impact's level; the colour of a warning if the level is not known."""
    return _LEVEL_TONES.get(level, WARN)


def insights_of(part: ControlPlane | WorkerPool) -> list[Insight]:
    """Returns the insights of a part that the text of `upgrade status` is about, too."""
    return merged_insights(part.informers)


def parts_of(status: UpdateStatusStatus) -> Iterator[ControlPlane | WorkerPool]:
    """Yields the control plane if there is one, then every worker pool."""
    if status.control_plane:
        yield status.control_plane
    yield from status.worker_pools


def all_insights(status: UpdateStatusStatus) -> Iterator[Insight]:
    """Yields the insights of the control plane, then those of every worker pool."""
    for part in parts_of(status):
        yield from insights_of(part)


# More rows than this are folded away on the screen; on paper all are there.
ROWS_SHOWN = 12


def pool_card(part: ControlPlane | WorkerPool, title: str) -> Markup | None:
    """Returns the pool's card, or None if the part says nothing about nodes."""
    pool = pool_report(title, insights_of(part), part.omitted.nodes)
    rows = pool.rows
    if pool.completion is None and not rows:
        return None
    owner = "the control plane" if isinstance(part, ControlPlane) else f"pool {title}"
    open_, folded = rows[:ROWS_SHOWN], rows[ROWS_SHOWN:]
    more = (
        el("details", el("summary", f"{len(folded)} more nodes"), _table(folded, f"The other nodes of {owner}"))
        if folded
        else None
    )
    omitted_note = el(
        "p",
        f"{part.omitted.nodes} more nodes are counted above and not listed, to keep the object small.",
        class_="faint",
    )
    tables = join(
        _table(open_, f"Nodes of {owner}") if open_ else None, more, omitted_note if part.omitted.nodes else None
    )
    return el(
        "div",
        join(el("h3", title) if pool.completion is None else _summary_head(pool, title)),
        tables,
        class_="card long",
    )


def _summary_head(pool: PoolReport, title: str) -> Markup:
    """Returns the head of a pool's card: assessment, bar and counts."""
    counts = pool.counts
    total = counts.total
    if total == 0:
        return el("div", el("h3", title), badge("Empty", IDLE), class_="head")
    # Each node is counted once: the object's counts overlap, as a node can be degraded and draining.
    updated_count, draining, degraded, paused = counts.done, counts.draining, counts.degraded, counts.excluded
    busy = max(0, counts.progressing - draining)
    waiting = max(0, total - updated_count - draining - busy - degraded - paused)
    parts = [
        ("updated", GOOD, updated_count),
        ("updating", BUSY, busy),
        ("draining", BUSY, draining),
        ("degraded", BAD, min(degraded, total - updated_count)),
        ("paused", WARN, paused),
        ("waiting", IDLE, waiting),
    ]
    labels = (el("span", f"{count} {label}", class_=tone) for label, tone, count in parts if count)
    return join(
        el("div", el("h3", title), badge(pool.assessment, tone_of_assessment(pool.assessment)), class_="head"),
        bar(((tone, count) for _, tone, count in parts), total, f"{pool.completion} % of {total} nodes"),
        el("div", *labels, el("span", f"{pool.completion} % of {total} nodes", class_="sum"), class_="tally"),
    )


def _estimate_text(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "?"
    return f"+{short_duration(nanoseconds)}" if nanoseconds else "-"


def _table(rows: Sequence[NodeRow], caption: str) -> Markup:
    """Returns the rows as a table; it has no column for messages if there are none, so that long names fit."""
    messages = any(row.message for row in rows)
    heads = ("Node", "State", "Phase", "Version", "Needs", *(("Message",) if messages else ()))
    lines = (
        el(
            "tr",
            el("th", row.name, scope="row"),
            el("td", badge(row.assessment, tone_of_assessment(row.assessment))),
            el("td", row.phase),
            el("td", row.version or "?"),
            el("td", _estimate_text(row.estimate_ns)),
            el("td", row.message, class_="wide") if messages else None,
        )
        for row in rows
    )
    return grid(caption, heads, lines)
