"""Draws when each operator and node was updated, from the start of the update to now or to its end.

Draws only what the object says: when something finished or began. An operator that finished is a dot, one that is
updating is a bar from its beginning; those that have not begun are listed by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from kubekit.api.conditions import find
from kubekit.lang.text import in_utc
from runup.api.update_v1alpha1 import ClusterOperatorInsight, ControlPlane, NodeInsight, UpdateStatusStatus, WorkerPool
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, Markup, age, el, join
from runup.updatestatus.decide.read_status import merged_insights, node_row, parts_of

# Maximum lanes in a group, and names in a line; the others are only counted.
LANES = 40
NAMES = 12
# Distances between marks of the axis; the smallest that gives at most _MARKS intervals is used.
_STEPS = tuple(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200))
_MARKS = 6
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


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
    parts = [(part, merged_insights(part.informers)) for part in parts_of(status)]
    of_control_plane = next((insights for part, insights in parts if isinstance(part, ControlPlane)), [])
    version = next((i.of_version for i in of_control_plane if i.of_version), None)
    if version is None or version.started_at is None:
        return None
    # The oldest transition that the controller recorded is its first observation, unless it watched earlier.
    recorded = (i.node or i.cluster_operator for _, insights in parts for i in insights)
    updating = (find(insight.conditions, "Updating") for insight in recorded if insight)
    moments = [condition.last_transition_time for condition in updating if condition and condition.last_transition_time]
    since = UpdateTimes(now, version.started_at, min(moments, default=now))
    groups = [("Operators", [_operator(i.cluster_operator, since) for i in of_control_plane if i.cluster_operator])]
    for part, insights in parts:
        title = f"Worker pool {part.name}" if isinstance(part, WorkerPool) else "Control plane nodes"
        groups.append((title, [_node(i.node, since) for i in insights if i.node]))
    end = now
    lanes = [lane for _, group in groups for lane in group]
    if version.completed_at is not None and not any(lane.until for lane in lanes):
        # Idle time after the update says nothing, so the drawing ends with the last change.
        changes = [lane.since for lane in lanes if lane.since and not lane.before]
        end = min(now, max([version.completed_at, *changes]))
    span = Span(version.started_at, max(end, version.started_at + timedelta(minutes=1)))
    rows = [_group(span, title, group) for title, group in groups if group]
    return el("div", _axis(span), *rows, class_="time") if rows else None


def _group(span: Span, title: str, lanes: list[Lane]) -> Markup:
    """Returns a group of lanes below its title, in the order of events; those without a time are listed by name."""
    lanes = sorted(lanes, key=lambda lane: (lane.until is not None, lane.since or _LATEST, lane.name))
    if len({lane.name.partition(".")[2] for lane in lanes}) == 1:
        # Names of hosts in one domain are cut before it.
        lanes = [replace(lane, name=lane.name.partition(".")[0]) for lane in lanes]
    drawable = [lane for lane in lanes if lane.since is not None]
    lines = [_draw(span, lane) for lane in drawable[:LANES]]
    if len(drawable) > LANES:
        lines.append(el("div", f"{len(drawable) - LANES} more", class_="more"))
    undated: dict[str, list[str]] = {}
    for lane in lanes:
        if lane.since is None:
            undated.setdefault(lane.state, []).append(lane.name)
    for state, names in undated.items():
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        lines.append(el("div", f"{len(names)} {state}: {', '.join(names[:NAMES])}{more}", class_="more"))
    return join(el("div", title, class_="group"), *lines)


def _draw(span: Span, lane: Lane) -> Markup:
    """Returns one lane: a bar for a time with an end, a dot for a moment."""
    shape, state = None, lane.state
    if lane.since is not None:
        start_percent = span.place(lane.since)
        if lane.until is None:
            shape = el("i", class_=f"dot fill-{lane.tone}", style=f"left:{start_percent:.2f}%")
            state = f"{state} {'before ' if lane.before else ''}{_clock(lane.since, span)}"
        else:
            style = f"left:{start_percent:.2f}%;width:{span.place(lane.until) - start_percent:.2f}%"
            shape = el("i", class_=f"fill-{lane.tone}", style=style)
    state += lane.trouble
    return join(
        el("div", lane.name, class_="name"),
        el("div", shape, class_="lane", role="img", aria_label=f"{lane.name}: {state}"),
        el("div", state, class_=lane.tone),
    )


def _operator(insight: ClusterOperatorInsight, since: UpdateTimes) -> Lane:
    """Returns an operator's lane. The operator records its own times, so the first observation does not matter."""
    updating, healthy = find(insight.conditions, "Updating"), find(insight.conditions, "Healthy")
    reason = updating.reason if updating else "CannotDetermine"
    moved = insight.progressing.last_transition_time if insight.progressing else None
    trouble = f", {healthy.reason.lower()}" if healthy is not None and healthy.status == "False" else ""
    lane = partial(Lane, name=insight.name)
    if reason == "Updated":
        before = moved is None or moved < since.started
        updated_at = since.started if moved is None or before else moved
        return lane(state="updated", tone=BAD if trouble else GOOD, since=updated_at, before=before, trouble=trouble)
    if reason == "Progressing":
        begun = moved or since.first_look
        state = since.going_on("updating", begun, observed_start=moved is not None)
        return lane(state=state, tone=BAD if trouble else BUSY, since=begun, until=since.now, trouble=trouble)
    if healthy is not None and trouble:
        return lane(state=healthy.reason.lower(), tone=BAD, since=healthy.last_transition_time, until=since.now)
    return lane(state="waiting" if reason == "Pending" else "not known", tone=IDLE)


def _node(insight: NodeInsight, since: UpdateTimes) -> Lane:
    """Returns the Node's lane in the timeline: its state, its colour, and when the state began."""
    row, updating = node_row(insight), find(insight.conditions, "Updating")
    moved = updating.last_transition_time if updating else None
    begun = moved or since.first_look
    lane = partial(Lane, name=insight.name)
    if row.assessment in {"Degraded", "Unavailable"}:
        degraded, available = find(insight.conditions, "Degraded"), find(insight.conditions, "Available")
        if degraded is not None and degraded.status == "True":
            begun = degraded.last_transition_time or begun
        elif available is not None and available.status == "False":
            begun = available.last_transition_time or begun
        state = since.going_on(row.assessment.lower(), begun, observed_start=since.seen(begun))
        return lane(state=state, tone=BAD, since=begun, until=since.now)
    if row.assessment == "Progressing":
        state = since.going_on(row.phase.lower(), begun, observed_start=since.seen(moved))
        return lane(state=state, tone=BUSY, since=begun, until=since.now)
    if row.assessment == "Completed":
        return lane(state="updated", tone=GOOD, since=max(begun, since.started), before=not since.seen(moved))
    return lane(state={"Outdated": "waiting", "Excluded": "paused"}.get(row.assessment, "not known"), tone=IDLE)


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
