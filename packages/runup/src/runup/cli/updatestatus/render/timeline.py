"""Draws when each operator and node was updated, from the start of the update to now or to its end.

Draws only what the object says: when something finished or began. An operator that finished is a dot, one that is
updating is a bar from its beginning; those that have not begun are listed by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from kubekit.api.conditions import find
from runup.api.update_v1alpha1 import ClusterOperatorInsight, ControlPlane, NodeInsight, UpdateStatusStatus, WorkerPool
from runup.cli.render.html.charts import Mark, Span, axis, lane
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, Markup, age, el, join
from runup.updatestatus.decide.read_status import merged_insights, node_row, parts_of

# Maximum lanes in a group, and names in a line; the others are only counted.
LANES = 40
NAMES = 12
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


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
    lanes = [row for _, group in groups for row in group]
    if version.completed_at is not None and not any(row.until for row in lanes):
        # Idle time after the update says nothing, so the drawing ends with the last change.
        changes = [row.since for row in lanes if row.since and not row.before]
        end = min(now, max([version.completed_at, *changes]))
    span = Span(version.started_at, max(end, version.started_at + timedelta(minutes=1)))
    rows = [_group(span, title, group) for title, group in groups if group]
    return el("div", axis(span), *rows, class_="time") if rows else None


def _group(span: Span, title: str, lanes: list[Lane]) -> Markup:
    """Returns a group of lanes below its title, in the order of events; those without a time are listed by name."""
    lanes = sorted(lanes, key=lambda row: (row.until is not None, row.since or _LATEST, row.name))
    if len({row.name.partition(".")[2] for row in lanes}) == 1:
        # Names of hosts in one domain are cut before it.
        lanes = [replace(row, name=row.name.partition(".")[0]) for row in lanes]
    drawable = [row for row in lanes if row.since is not None]
    lines = [_draw(span, row) for row in drawable[:LANES]]
    if len(drawable) > LANES:
        lines.append(el("div", f"{len(drawable) - LANES} more", class_="more"))
    undated: dict[str, list[str]] = {}
    for row in lanes:
        if row.since is None:
            undated.setdefault(row.state, []).append(row.name)
    for state, names in undated.items():
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        lines.append(el("div", f"{len(names)} {state}: {', '.join(names[:NAMES])}{more}", class_="more"))
    return join(el("div", title, class_="group"), *lines)


def _draw(span: Span, row: Lane) -> Markup:
    """Returns one lane: a bar for a time with an end, a dot for a moment."""
    marks, state = [], row.state
    if row.since is not None and row.until is None:
        marks = [Mark(span.place(row.since), None, row.tone)]
        state = f"{state} {'before ' if row.before else ''}{span.clock(row.since)}"
    elif row.since is not None and row.until is not None:
        marks = [span.bar(row.since, row.until, row.tone)]
    state += row.trouble
    return join(
        el("div", row.name, class_="name"), lane(f"{row.name}: {state}", marks), el("div", state, class_=row.tone)
    )


def _operator(insight: ClusterOperatorInsight, since: UpdateTimes) -> Lane:
    """Returns an operator's lane. The operator records its own times, so the first observation does not matter."""
    updating, healthy = find(insight.conditions, "Updating"), find(insight.conditions, "Healthy")
    reason = updating.reason if updating else "CannotDetermine"
    moved = insight.progressing.last_transition_time if insight.progressing else None
    trouble = f", {healthy.reason.lower()}" if healthy is not None and healthy.status == "False" else ""
    made = partial(Lane, name=insight.name)
    if reason == "Updated":
        before = moved is None or moved < since.started
        updated_at = since.started if moved is None or before else moved
        return made(state="updated", tone=BAD if trouble else GOOD, since=updated_at, before=before, trouble=trouble)
    if reason == "Progressing":
        begun = moved or since.first_look
        state = since.going_on("updating", begun, observed_start=moved is not None)
        return made(state=state, tone=BAD if trouble else BUSY, since=begun, until=since.now, trouble=trouble)
    if healthy is not None and trouble:
        return made(state=healthy.reason.lower(), tone=BAD, since=healthy.last_transition_time, until=since.now)
    return made(state="waiting" if reason == "Pending" else "not known", tone=IDLE)


def _node(insight: NodeInsight, since: UpdateTimes) -> Lane:
    """Returns the Node's lane in the timeline: its state, its colour, and when the state began."""
    row, updating = node_row(insight), find(insight.conditions, "Updating")
    moved = updating.last_transition_time if updating else None
    begun = moved or since.first_look
    made = partial(Lane, name=insight.name)
    if row.assessment in {"Degraded", "Unavailable"}:
        degraded, available = find(insight.conditions, "Degraded"), find(insight.conditions, "Available")
        if degraded is not None and degraded.status == "True":
            begun = degraded.last_transition_time or begun
        elif available is not None and available.status == "False":
            begun = available.last_transition_time or begun
        state = since.going_on(row.assessment.lower(), begun, observed_start=since.seen(begun))
        return made(state=state, tone=BAD, since=begun, until=since.now)
    if row.assessment == "Progressing":
        state = since.going_on(row.phase.lower(), begun, observed_start=since.seen(moved))
        return made(state=state, tone=BUSY, since=begun, until=since.now)
    if row.assessment == "Completed":
        return made(state="updated", tone=GOOD, since=max(begun, since.started), before=not since.seen(moved))
    return made(state={"Outdated": "waiting", "Excluded": "paused"}.get(row.assessment, "not known"), tone=IDLE)
