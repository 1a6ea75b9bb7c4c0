"""Renders the forecast of a cluster's update: as a page, and next to the progress of an update. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.conditions import status_of
from kubekit.lang.text import in_utc
from runup.api.update_v1alpha1 import ControlPlane, UpdateStatusStatus
from runup.cli.console.render import frame
from runup.cli.rehearse.drain_page import blocked_text, page_body
from runup.cli.rehearse.forecast_command import PAGE_TITLE, forecast_text, page_summary, range_text
from runup.cli.render.html.charts import Mark, Span, axis, lane
from runup.cli.render.html.markup import Child, Markup, age, el, grid, join, long_section, minute_text
from runup.console.decide.board import Board
from runup.console.decide.outlook import Outlook
from runup.rehearse.decide.update_forecast import CONTROL_PLANE, MASTER, Range
from runup.rules.node_events import APPLY, CORDON, DRAIN, READY, REBOOT, STEPS
from runup.updatestatus.decide.node_steps import Steps, steps_of_nodes
from runup.updatestatus.decide.read_status import NodeRow, merged_insights, parts_of, pool_report

# Nodes that are drawn, and those in the table.
_LANES, _ROWS = 100, 1000
_UNKNOWN, _NOT_YET = "unknown", "not yet"
# The step that a node is in by its phase in the status.
_STEP_OF_PHASE = {"Draining": DRAIN, "Updating": APPLY, "Rebooting": REBOOT}
_TONES = {CORDON: "idle", DRAIN: "busy", APPLY: "good", REBOOT: "warn"}


def forecast_page(
    board: Board, name: str, outlook: Outlook | None, why: str, now: datetime, site: frame.Site = frame.ONLY_SHOWS
) -> str:
    """Returns the page of cluster `name`; without an outlook, `why` says why it is missing (empty: not read yet)."""
    member = board.entries[name].member
    flags = frame.where_options(member)
    body: Markup
    if outlook is not None:
        summary = page_summary(outlook.forecast, forecast_text(outlook.forecast))
        age_text = f"Computed {frame.how_old(outlook.now, now)}. Nothing was changed: the drains are simulated."
        notes = el("ul", *(el("li", note) for note in outlook.notes), class_="refs") if outlook.notes else None
        body = join(
            el("p", age_text, class_="faint"),
            el("div", notes, class_="card issue warn") if notes else None,
            page_body(PAGE_TITLE, summary, outlook.slow),
        )
    elif board.kept:
        body = frame.message("Not known", "The console reads kept reports, which hold no nodes and pods.")
    elif why or member.problem:
        body = frame.message("The forecast is not known", f"It could not be computed: {why or member.problem}")
    else:
        body = frame.message("Not computed yet", "The cluster is being read. Reload this page in a moment.")
    lines = [
        ("The same in a terminal", f"runup upgrade forecast{flags}"),
        ("Drains with other limits", f"runup rehearse drain --max-unavailable N{flags}"),
    ]
    commands = None if board.kept else frame.commands(lines)
    return frame.whole_page("Forecast", body, commands, now=now, current_path="forecast", cluster=name, site=site)


def progress_part(status: UpdateStatusStatus, outlook: Outlook | None, why: str, now: datetime) -> Markup | None:
    """Returns the sections that put the forecast next to the progress of an update, and show the steps of its nodes.

    None if no update is under way. `why` says why there is no outlook; it is empty until the outlook was read.
    """
    if not any(status_of(part.conditions, "Updating") == "True" for part in parts_of(status)):
        return None
    reason = f"The forecast is not known: {why}" if why else "The forecast is being computed."
    missing = el("p", reason, class_="card")
    started = _started(status)
    return join(
        el("section", el("h2", "Forecast and progress"), _progress(status, outlook, now) if outlook else missing),
        _under_way(outlook) if outlook else None,
        _node_steps(status, outlook, started, now) if outlook else None,
    )


def _started(status: UpdateStatusStatus) -> datetime | None:
    of_control_plane = merged_insights((status.control_plane or ControlPlane()).informers)
    return next((i.of_version.started_at for i in of_control_plane if i.of_version), None)


def _progress(status: UpdateStatusStatus, outlook: Outlook, now: datetime) -> Markup:
    """Returns a row for the control plane and each pool: what the forecast is, and what has happened so far."""
    ranges = {part.name: part.range for part in outlook.forecast.parts}
    control_plane = status.control_plane or ControlPlane()
    insight = next((i.of_version for i in merged_insights(control_plane.informers) if i.of_version), None)
    lines = []
    if insight is not None:
        forecast = ranges.get(CONTROL_PLANE)
        elapsed = (insight.completed_at or now) - insight.started_at if insight.started_at else None
        so_far = f"{insight.completion} % in {age(elapsed)}" if elapsed is not None else f"{insight.completion} %"
        lines.append(
            _row("Control plane", forecast, so_far, lateness=_lateness(forecast, elapsed), state=insight.assessment)
        )
    for pool in status.worker_pools:
        report = pool_report(pool.name, merged_insights(pool.informers), pool.omitted.nodes)
        so_far = f"{report.counts.done} of {report.counts.total} nodes updated"
        lines.append(_row(f"Pool {pool.name}", ranges.get(pool.name), so_far, state=report.assessment))
    heads = ("Part", "Forecast of a whole update", "So far", "Against the forecast", "State")
    total = f"In all {range_text(outlook.forecast.total)}, by the forecast of {minute_text(outlook.now)}."
    rests = el("ul", *(el("li", f"{part.name}: {text}") for part in outlook.forecast.parts for text in part.sources))
    unknown = el("ul", *(el("li", f"Not in it, or not known: {reason}") for reason in outlook.forecast.unknown))
    sources = el("details", el("summary", "What the forecast rests on"), rests, unknown)
    return el(
        "div", el("p", total), grid("The forecast, and the progress so far", heads, lines), sources, class_="card"
    )


def _row(name: str, forecast: Range | None, so_far: str, *, state: str, lateness: str = "") -> Markup:
    forecast_words = range_text(forecast) if forecast is not None else _UNKNOWN
    cells = (el("td", text) for text in (forecast_words, so_far, lateness or _UNKNOWN, state or _UNKNOWN))
    return el("tr", el("th", name, scope="row"), *cells)


def _lateness(forecast: Range | None, elapsed: timedelta | None) -> str:
    """Returns how the time so far compares with the forecast; empty if either is not known."""
    if forecast is None or elapsed is None:
        return ""
    seconds = elapsed.total_seconds()
    if forecast.high_s is None:
        return "" if seconds >= forecast.low_s else "within its shortest time"
    return f"late by {age(elapsed - timedelta(seconds=forecast.high_s))}" if seconds > forecast.high_s else "within it"


def _under_way(outlook: Outlook) -> Markup | None:
    lines = [
        el(
            "tr",
            el("th", each.node, scope="row"),
            el("td", each.pool),
            el("td", _UNKNOWN if each.elapsed_s is None else age(timedelta(seconds=each.elapsed_s))),
            el("td", age(timedelta(seconds=each.expected_s)) if each.expected_s else _UNKNOWN),
            el("td", age(timedelta(seconds=each.late_s)) if each.late_s else "", class_="bad"),
        )
        for each in outlook.under_way[:_ROWS]
    ]
    heads = ("Node", "Pool", "Under way for", "Forecast", "Late by")
    table = grid(f"Nodes that were being updated at {minute_text(outlook.now)}", heads, lines)
    return el("section", el("h2", "Nodes under way"), table) if lines else None


def _node_steps(status: UpdateStatusStatus, outlook: Outlook, started: datetime | None, now: datetime) -> Markup | None:
    """Returns the chart of the nodes' recorded steps with the same as a table, and what blocks each node."""
    pools = [(part.name if not isinstance(part, ControlPlane) else MASTER, part) for part in parts_of(status)]
    rows = [
        (pool, row)
        for pool, part in pools
        for row in pool_report(pool, merged_insights(part.informers), part.omitted.nodes).rows
    ]
    if not rows:
        return None
    cordoned = {each.node: each.since for each in outlook.under_way if each.since is not None}
    steps = steps_of_nodes(outlook.events, cordoned, started, now) if started is not None else {}
    blocked = _blocks(status, outlook, {row.name for _, row in rows if row.updated})
    lines = [_steps_row(pool, row, steps.get(row.name, {}), blocked.get(row.name, ())) for pool, row in rows[:_ROWS]]
    about = [
        "The times are those of recorded events; an API server keeps events for an hour by default. A step without a "
        "record is unknown."
    ]
    if started is None:
        about.append("When the update began is unknown, so no event can be assigned to it.")
    if outlook.why_no_events:
        about.append(f"Events may be missing: {outlook.why_no_events}.")
    omitted = sum(part.omitted.nodes for part in parts_of(status)) + max(0, len(rows) - _ROWS)
    if omitted:
        about.append(f"{omitted} more nodes are not listed.")
    heads = ("Node", "Pool", *(step.capitalize() for step in STEPS), "What blocks it")
    return join(
        el("section", el("h2", "Steps of nodes (UTC)"), *(el("p", text, class_="faint") for text in about)),
        _steps_chart(rows, steps, started, now),
        long_section("Steps of nodes, as a table", grid("When each step of each node began (UTC)", heads, lines)),
    )


def _steps_row(pool: str, row: NodeRow, steps: Steps, blocked: Sequence[str]) -> Markup:
    cells = [el("td", _step_text(row, steps, step)) for step in STEPS]
    why = el("td", "\n".join(blocked), class_="wide")
    return el("tr", el("th", row.name, scope="row"), el("td", pool), *cells, why)


def _step_text(row: NodeRow, steps: Steps, step: str) -> str:
    """Returns when a step began, or what is known about a step without a record."""
    if step in steps:
        return f"{in_utc(steps[step]):%d %b %H:%M}"
    if row.assessment in ("Outdated", "Excluded") and not steps:
        return _NOT_YET if row.assessment == "Outdated" else "paused"
    current = _STEP_OF_PHASE.get(row.phase)
    if current is None or row.updated:
        return _UNKNOWN
    if step == current:
        return "now, unknown since when"
    return _NOT_YET if STEPS.index(step) > STEPS.index(current) else _UNKNOWN


def _blocks(status: UpdateStatusStatus, outlook: Outlook, done: Collection[str]) -> Mapping[str, list[str]]:
    """Returns what blocks each node: the status's messages and findings, and the simulation of its drain.

    Nodes that are `done` are not drained again.
    """
    blocks: dict[str, list[str]] = {}
    for part in parts_of(status):
        insights = merged_insights(part.informers)
        for insight in insights:
            if insight.node and insight.node.message:
                blocks.setdefault(insight.node.name, []).append(insight.node.message)
            for ref in insight.health.scope.resources if insight.health else ():
                if ref.resource == "nodes" and insight.health:
                    blocks.setdefault(ref.name, []).append(insight.health.impact.summary)
    for drain in outlook.slow.nodes:
        if drain.node not in done:
            blocks.setdefault(drain.node, []).extend(f"Simulated drain: {blocked_text(each)}" for each in drain.blocked)
    return {name: list(dict.fromkeys(texts)) for name, texts in blocks.items()}


def _steps_chart(
    rows: Sequence[tuple[str, NodeRow]], steps: Mapping[str, Steps], started: datetime | None, now: datetime
) -> Markup | None:
    """Returns a lane for each node with a recorded step, below its pool; None without any."""
    drawable = [(pool, row) for pool, row in rows if steps.get(row.name)]
    if not drawable or started is None:
        return None
    first = min(at for _, row in drawable for at in steps[row.name].values())
    span = Span(first, max(now, first + timedelta(minutes=1)))
    drawn: list[Child] = [axis(span)]
    last_pool = ""
    for pool, row in drawable[:_LANES]:
        if pool != last_pool:
            drawn.append(el("div", f"Pool {pool}", class_="group"))
            last_pool = pool
        drawn.append(_steps_lane(row, steps[row.name], span, now))
    if len(drawable) > _LANES:
        drawn.append(el("div", f"{len(drawable) - _LANES} more: see the table", class_="more"))
    legend = [el("span", step, class_=tone) for step, tone in _TONES.items()]
    legend.append(el("span", "Pale: several steps, unknown when each began. Dot: the last record.", class_="sum"))
    chart = el("div", *drawn, class_="time")
    return el("div", el("div", *legend, class_="tally"), chart, class_="card long")


def _steps_lane(row: NodeRow, steps: Steps, span: Span, now: datetime) -> Markup:
    known = [step for step in STEPS if step in steps]
    marks: list[Mark] = []
    for step, following in zip(known, [*known[1:], ""], strict=True):
        if following:
            is_next = STEPS.index(following) == STEPS.index(step) + 1
            marks.append(span.bar(steps[step], steps[following], _TONES[step] if is_next else "shade"))
        elif step == READY:
            marks.append(Mark(span.place(steps[step]), None, "good"))
        elif _STEP_OF_PHASE.get(row.phase) == step:
            marks.append(span.bar(steps[step], now, _TONES[step]))
        else:
            marks.append(Mark(span.place(steps[step]), None, _TONES[step]))
    words = ", ".join(f"{step} {span.clock(steps[step])}" for step in known)
    return join(
        el("div", row.name, class_="name"), lane(f"{row.name}: {words}", marks), el("div", row.phase or _UNKNOWN)
    )
