"""Draws when each operator and node was updated, from the start of the update to now or to its end.

Draws only what the object says: when something finished or began. An operator that finished is a dot, one that is
updating is a bar from its beginning; those that have not begun are listed by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import in_utc
from runup.api.update_v1alpha1 import ClusterOperatorInsight, ControlPlane, NodeInsight, UpdateStatusStatus, WorkerPool
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, Markup, age, el, join
from runup.cli.updatestatus.render.html.pool_card import all_insights, insights_of
from runup.updatestatus.decide.read_status import node_row

# Maximum lanes in a group, and names in a line; the others are only counted.
LANES = 40
NAMES = 12
# Distances between marks of the axis; the smallest that gives at most _MARKS intervals is used.
_STEPS = tuple(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200))
_MARKS = 6


@dataclass(frozen=True, slots=True)
class Span:
    """The time range that is drawn."""

    start: datetime
    end: datetime

    def place(self, moment: datetime) -> float:
        """Returns the position of `moment` in percent of the span, limited to 0 to 100."""
        length_s = (self.end - self.start).total_seconds()
        return min(100.0, max(0.0, 100 * (moment - self.start).total_seconds() / length_s))


@dataclass(frozen=True, slots=True)
class UpdateTimes:
    """Times of an update: now, its start, and the controller's first observation.

    A state that was already there at the first observation has lasted for an unknown time before it.
    """

    now: datetime
    started: datetime
    first_look: datetime

    def seen(self, moment: datetime | None) -> bool:
        """Reports whether the change at `moment` was observed during this update."""
        return (
            moment is not None
            and moment >= self.started
            and (moment > self.first_look or self.first_look < self.started)
        )

    def going_on(self, word: str, moment: datetime, *, observed_start: bool) -> str:
        """Returns `word` followed by how long the state has lasted."""
        lasted = self.now - moment
        if observed_start:
            return f"{word}, {age(lasted)}"
        return f"{word}, {age(lasted)} or more" if lasted >= timedelta(minutes=1) else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A line of the timeline: `until` None is a change at one moment (a dot), `since` None means nothing to draw.

    `before` says that the state began or ended earlier, at an unknown time.
    """

    name: str
    state: str
    tone: str
    since: datetime | None = None
    until: datetime | None = None
    before: bool = False
    trouble: str = ""


def timeline(status: UpdateStatusStatus, now: datetime) -> Markup | None:
    """Returns the drawing, or None if the start of the update is not known."""
    control_plane = status.control_plane or ControlPlane()
    version = next((i.cluster_version for i in insights_of(control_plane) if i.cluster_version), None)
    if version is None or version.started_at is None:
        return None
    since = UpdateTimes(now, version.started_at, _first_look(status) or now)
    groups = list(_lane_groups(status, since))
    end = max(_end_of_drawing(groups, version.completed_at, now), version.started_at + timedelta(minutes=1))
    span = Span(version.started_at, end)
    rows = [_draw_group(span, title, lanes) for title, lanes in groups if lanes]
    return el("div", _axis(span), *rows, class_="time") if rows else None


def _first_look(status: UpdateStatusStatus) -> datetime | None:
    """Returns the oldest transition that the controller recorded: its first observation, unless it watched earlier."""
    insights = (i.node or i.cluster_operator for i in all_insights(status))
    updating = (find(insight.conditions, "Updating") for insight in insights if insight)
    return min(
        (condition.last_transition_time for condition in updating if condition and condition.last_transition_time),
        default=None,
    )


def _end_of_drawing(groups: Sequence[tuple[str, list[Lane]]], completed: datetime | None, now: datetime) -> datetime:
    """Returns the end of the drawing: now while anything is updating, else the time of the last change.

    Idle time after the update says nothing, so it is not drawn.
    """
    lanes = [lane for _, lanes in groups for lane in lanes]
    if completed is None or any(lane.until for lane in lanes):
        return now
    return min(now, max([completed, *(lane.since for lane in lanes if lane.since and not lane.before)]))


def _lane_groups(status: UpdateStatusStatus, since: UpdateTimes) -> Iterable[tuple[str, list[Lane]]]:
    """Yields the title and the lanes of each group: operators, control plane, each worker pool."""
    control_plane = status.control_plane or ControlPlane()
    operators = [i.cluster_operator for i in insights_of(control_plane) if i.cluster_operator]
    yield "Operators", _sorted(_operator(operator, since) for operator in operators)
    yield "Control plane nodes", _sorted(_nodes(control_plane, since))
    for pool in status.worker_pools:
        yield f"Worker pool {pool.name}", _sorted(_nodes(pool, since))


def _sorted(lanes: Iterable[Lane]) -> list[Lane]:
    """Returns the lanes in the order of events, those that go on last, and those with nothing to draw by name."""
    latest = datetime(9999, 1, 1, tzinfo=UTC)
    return sorted(lanes, key=lambda lane: (lane.until is not None, lane.since or latest, lane.name))


def _operator(insight: ClusterOperatorInsight, since: UpdateTimes) -> Lane:
    """Returns an operator's lane. The operator records its own times, so the first observation does not matter."""
    updating, healthy = find(insight.conditions, "Updating"), find(insight.conditions, "Healthy")
    reason = updating.reason if updating else "CannotDetermine"
    moved = insight.progressing.last_transition_time if insight.progressing else None
    trouble = f", {healthy.reason.lower()}" if healthy is not None and healthy.status == "False" else ""
    if reason == "Updated":
        tone, before = BAD if trouble else GOOD, moved is None or moved < since.started
        updated_at = since.started if moved is None or before else moved
        return Lane(name=insight.name, state="updated", tone=tone, since=updated_at, before=before, trouble=trouble)
    if reason == "Progressing":
        begun = moved or since.first_look
        state = since.going_on("updating", begun, observed_start=moved is not None)
        return Lane(
            name=insight.name, state=state, tone=BAD if trouble else BUSY, since=begun, until=since.now, trouble=trouble
        )
    if healthy is not None and trouble:
        return Lane(
            name=insight.name,
            state=healthy.reason.lower(),
            tone=BAD,
            since=healthy.last_transition_time,
            until=since.now,
        )
    return Lane(name=insight.name, state={"Pending": "waiting"}.get(reason, "not known"), tone=IDLE)


def _nodes(part: ControlPlane | WorkerPool, since: UpdateTimes) -> Iterable[Lane]:
    for insight in insights_of(part):
        if insight.node:
            yield _node_lane(insight.node, since)


def _node_lane(insight: NodeInsight, since: UpdateTimes) -> Lane:
    """Returns the Node's lane in the timeline: its state, its colour, and when the state began."""
    row, updating = node_row(insight), find(insight.conditions, "Updating")
    moved = updating.last_transition_time if updating else None
    if row.assessment in {"Degraded", "Unavailable"}:
        begun = _troubled_since(insight) or moved or since.first_look
        state = since.going_on(row.assessment.lower(), begun, observed_start=since.seen(begun))
        return Lane(name=insight.name, state=state, tone=BAD, since=begun, until=since.now)
    if row.assessment == "Progressing":
        begun = moved or since.first_look
        return Lane(
            name=insight.name,
            state=since.going_on(row.phase.lower(), begun, observed_start=since.seen(moved)),
            tone=BUSY,
            since=begun,
            until=since.now,
        )
    if row.assessment == "Completed":
        updated_at = max(moved or since.first_look, since.started)
        return Lane(name=insight.name, state="updated", tone=GOOD, since=updated_at, before=not since.seen(moved))
    return Lane(
        name=insight.name,
        state={"Outdated": "waiting", "Excluded": "paused"}.get(row.assessment, "not known"),
        tone=IDLE,
    )


def _troubled_since(insight: NodeInsight) -> datetime | None:
    """Returns when the node became degraded or unavailable, None if it is neither."""
    for type_, bad in (("Degraded", "True"), ("Available", "False")):
        condition: Condition | None = find(insight.conditions, type_)
        if condition is not None and condition.status == bad:
            return condition.last_transition_time
    return None


def _draw_group(span: Span, title: str, lanes: list[Lane]) -> Markup:
    """Returns a group of lanes below its title; those without a time are listed."""
    lanes = _with_short_names(lanes)
    drawable = [lane for lane in lanes if lane.since is not None]
    undated_lanes = [lane for lane in lanes if lane.since is None]
    lines = [_lane(span, lane) for lane in drawable[:LANES]]
    if len(drawable) > LANES:
        lines.append(el("div", f"{len(drawable) - LANES} more", class_="more"))
    lines += [_list_names(state, undated_lanes) for state in dict.fromkeys(lane.state for lane in undated_lanes)]
    return join(el("div", title, class_="group"), *lines)


def _with_short_names(lanes: list[Lane]) -> list[Lane]:
    """Returns the lanes with host names cut before the domain, if all share the same domain."""
    domains = {lane.name.partition(".")[2] for lane in lanes}
    if len(domains) != 1:
        return lanes
    return [replace(lane, name=lane.name.partition(".")[0]) for lane in lanes]


def _list_names(state: str, lanes: list[Lane]) -> Markup:
    names = [lane.name for lane in lanes if lane.state == state]
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return el("div", f"{len(names)} {state}: {', '.join(names[:NAMES])}{more}", class_="more")


def _lane(span: Span, lane: Lane) -> Markup:
    """Returns one lane: a bar for a time with an end, a dot for a moment."""
    shape = None
    if lane.since is not None and lane.until is None:
        shape = el("i", class_=f"dot fill-{lane.tone}", style=f"left:{span.place(lane.since):.2f}%")
    elif lane.since is not None and lane.until is not None:
        start_percent = span.place(lane.since)
        style = f"left:{start_percent:.2f}%;width:{span.place(lane.until) - start_percent:.2f}%"
        shape = el("i", class_=f"fill-{lane.tone}", style=style)
    state = lane.state
    if lane.since is not None and lane.until is None:
        state = f"{state} {'before ' if lane.before else ''}{_clock(lane.since, span)}"
    state += lane.trouble
    label = f"{lane.name}: {state}"
    return join(
        el("div", lane.name, class_="name"),
        el("div", shape, class_="lane", role="img", aria_label=label),
        el("div", state, class_=lane.tone),
    )


def _axis(span: Span) -> Markup:
    """Returns the axis, with a mark for each round time that has room."""
    length = span.end - span.start
    step = next((step for step in _STEPS if length / step <= _MARKS), _STEPS[-1])
    times = [span.start]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    following = epoch + -(-(span.start - epoch) // step) * step
    while following < span.end:
        # A mark that would overlap its neighbours is left out.
        if min(following - span.start, span.end - following) > length / (2 * _MARKS):
            times.append(following)
        following += step
    marks = [el("span", _clock(tick, span), style=f"left:{span.place(tick):.2f}%") for tick in times]
    marks.append(el("span", _clock(span.end, span), class_="last", style="left:100%"))
    blank = el("div", class_="corner")
    return join(blank, el("div", *marks, class_="axis", aria_hidden="true"), blank)


def _clock(moment: datetime, span: Span) -> str:
    long = span.end - span.start > timedelta(hours=20)
    return f"{in_utc(moment):{'%d %b %H:%M' if long else '%H:%M'}}"
