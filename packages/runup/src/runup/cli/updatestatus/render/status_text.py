"""Renders a Report as the text of `oc adm upgrade status`, byte for byte. Pure.

Times are integers of nanoseconds since the epoch: oc's output depends on fractions of a second in two places (see
`gotext.short_duration`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from kubekit.lang.gotext import MINUTE, SECOND, nanoseconds, round_duration, short_duration, truncate_duration
from kubekit.lang.text import shorten, timestamp
from runup.api.update_v1alpha1 import ResourceRef
from runup.cli.render.text import columns
from runup.updatestatus.decide.control_plane import assessment_of, to_precision
from runup.updatestatus.decide.finding import INFO, NO_IMPACT, UNKNOWN
from runup.updatestatus.decide.nodes import count
from runup.updatestatus.decide.read_status import HealthRow, NodeRow, PoolReport, Report

NOT_UPDATING = "The cluster is not updating.\n"
DETAILS = ("none", "all", "nodes", "health", "operators")
# Rows of a pool that are printed without --details.
ROWS = 10
# For `rows` of `render`: one line a pool instead of its table, on terminals with too few lines for more.
NO_TABLES = -1
_REASON_WIDTH = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# These depend on the estimate, so they are computed again when they are printed.
_KNOWN_ASSESSMENTS = ("Progressing", "Progressing - Slow", "Stalled")


class Details(msgspec.Struct, frozen=True):
    """The parts of the report that are printed in full."""

    nodes: bool = False
    health: bool = False
    operators: bool = False


_PLAIN = Details()


def details(word: str) -> Details:
    """Returns the Details that `--details=word` selects."""
    return Details(*(word in ("all", part) for part in ("nodes", "health", "operators")))


def to_ns(moment: datetime) -> int:
    """Returns `moment` in nanoseconds since the epoch."""
    return nanoseconds(moment - _EPOCH)


def clock_time(now: int) -> str:
    """Returns the time of day of `now`, for lines of a log."""
    return f"{_EPOCH + _delta(now):%H:%M:%SZ}"


def render(report: Report, now: int, shown_details: Details = _PLAIN, *, rows: int = ROWS) -> str:
    """Returns the whole text at `now` (nanoseconds since the epoch).

    `rows` is the number of rows of a pool that are printed by default; nodes that need attention are always printed.
    """
    if not report.is_updating:
        return NOT_UPDATING + _rows_while_idle(report, now, shown_details)
    return "".join(
        [
            _control_plane(report, now, shown_details),
            _control_plane_table(report, shown_details, rows),
            _workers(report, shown_details, rows),
            _health(report.health, _updating_for(report, now), now, shown_details),
        ]
    )


def _rows_while_idle(report: Report, now: int, shown_details: Details) -> str:
    """Returns the health rows that are printed while nothing is updating: a refused update, and what is not known."""
    rows = [row for row in report.health if row.check == "ReleaseNotLoaded" or row.level == UNKNOWN]
    return _health(rows, 0, now, shown_details) if rows else ""


def _updating_for(report: Report, now: int) -> int:
    started = report.cluster_version.started_at if report.cluster_version else None
    return round_duration(now - to_ns(started), SECOND) if started else 0


# ---- the control plane


class _Times(msgspec.Struct, frozen=True):
    """Times in nanoseconds: the elapsed time, the estimated remaining time (None: no estimate), and the end."""

    elapsed: int
    remaining: int | None
    end: int

    @property
    def duration(self) -> int:
        return round_duration(self.elapsed, MINUTE if self.elapsed > 10 * MINUTE else SECOND)


def _control_plane(report: Report, now: int, shown_details: Details) -> str:
    """Returns the section of the control plane, as `oc` prints it."""
    insight = report.cluster_version
    if insight is None:
        times = _Times(0, None, now)
    else:
        end = to_ns(insight.completed_at) if insight.completed_at else now
        # Without history there is no start: oc takes 0 as the elapsed time, so that its estimate is the whole baseline.
        elapsed = end - to_ns(insight.started_at) if insight.started_at and insight.versions else 0
        estimated = insight.estimated_completed_at
        if estimated is None:
            times = _Times(elapsed, None, end)
        else:
            seconds = round_duration(to_ns(estimated) - end, SECOND) // SECOND
            times = _Times(elapsed, to_precision(seconds) * SECOND, end)
    head = "= Control Plane =\n"
    if report.control_plane_done:
        moment = timestamp(_EPOCH + _delta(times.end))
        duration = short_duration(times.duration)
        return f"{head}Update to {report.target} successfully completed at {moment} (duration: {duration})\n"
    updating = [operator for operator in report.operators if operator.updating]
    lines = [
        ("Assessment:", _assessment_text(report, times)),
        ("Target Version:", report.target_text),
        *([("Updating:", ", ".join(operator.name for operator in updating))] if updating else []),
        ("Completion:", _completion_text(report)),
        ("Duration:", short_duration(times.duration) + _remaining(report, times)),
        ("Operator Health:", _operator_health(report)),
    ]
    text = head + "".join(f"{label:<17}{value}\n" for label, value in lines)
    return text + (_operators(report, now) if shown_details.operators and updating else "")


def _delta(ns: int) -> timedelta:
    return timedelta(microseconds=ns // 1000)


def _assessment_text(report: Report, times: _Times) -> str:
    """Returns the word for the update; computed anew from the time that remains, as in `oc`."""
    insight = report.cluster_version
    if insight is None:
        return UNKNOWN
    if insight.assessment in _KNOWN_ASSESSMENTS and times.remaining is not None:
        return assessment_of(times.remaining // SECOND)
    return insight.assessment


def _completion_text(report: Report) -> str:
    """Returns the share of updated operators in percent, and their numbers."""
    operators = report.operators
    updated = sum(operator.updated for operator in operators)
    percent = (
        f"{100 * (updated / len(operators)):.0f}"
        if operators
        else (str(report.cluster_version.completion) if report.cluster_version else "?")
    )
    updating = sum(operator.updating for operator in operators)
    waiting = sum(operator.waiting for operator in operators)
    return f"{percent}% ({updated} operators updated, {updating} updating, {waiting} waiting)"


def _remaining(report: Report, times: _Times) -> str:
    if not times.remaining:
        return ""
    return f" (Est. Time Remaining: {_remaining_text(report, times, times.remaining)})"


def _remaining_text(report: Report, times: _Times, remaining: int) -> str:
    """Returns the estimate of what remains (nanoseconds), in the words of `oc adm upgrade status`."""
    if report.changes_architecture:
        return "N/A for Multi-Architecture Migration"
    if remaining < -10 * MINUTE:
        return f"N/A; estimate duration was {short_duration(truncate_duration(times.elapsed + remaining, MINUTE))}"
    return "<10m" if remaining < 10 * MINUTE else short_duration(remaining)


def _operator_health(report: Report) -> str:
    """Returns the numbers of healthy, unavailable and degraded operators, as `oc` words them."""
    unavailable = sum(operator.unavailable for operator in report.operators)
    degraded = sum(operator.degraded for operator in report.operators)
    text = f"{len(report.operators) - unavailable - degraded} Healthy"
    text += f", {unavailable} Unavailable" if unavailable else ""
    return text + (f", {degraded} Available but degraded" if degraded else "")


def _operators(report: Report, now: int) -> str:
    """Returns the table of operators that are being updated, as `oc` prints it."""
    rows = [["NAME", "SINCE", "REASON", "MESSAGE"]]
    for operator in report.operators:
        if not operator.updating:
            continue
        progressing = operator.progressing
        since = progressing.last_transition_time if progressing else None
        first, *further = (progressing.message if progressing else "").split("\n")
        age = short_duration(now - to_ns(since)) if since else "-"
        rows.append([operator.name, age, _reason_text(progressing.reason if progressing else ""), first])
        rows += [["", "", "", line] for line in further]
    return "\nUpdating Cluster Operators\n" + _table(rows)


def _reason_text(reason: str) -> str:
    return shorten(reason, _REASON_WIDTH) if reason else "-"


# ---- nodes and pools


def _control_plane_table(report: Report, shown_details: Details, rows: int) -> str:
    """Returns the table of control plane nodes, or one line once all are updated."""
    pool = report.control_plane_pool
    if pool is None or not pool.counts.total:
        return ""
    if pool.is_complete:
        version = pool.rows[0].version if pool.rows else report.target
        return f"\nAll control plane nodes successfully updated to {version}\n"
    return _titled_table("Control Plane Nodes", pool, shown_details, rows)


def _workers(report: Report, shown_details: Details, limit: int) -> str:
    """Returns the section of worker pools and their Nodes, as `oc` prints it; empty without workers."""
    if not any(pool.counts.total for pool in report.worker_pools):
        return ""
    rows = [["WORKER POOL", "ASSESSMENT", "COMPLETION", "STATUS"], *(_pool(pool) for pool in report.worker_pools)]
    text = "\n= Worker Upgrade =\n\n" + _table(rows)
    if report.omitted_worker_pools:
        text += f"...\nOmitted {report.omitted_worker_pools} more worker pools: the report holds no more.\n"
    tables = (pool for pool in report.worker_pools if pool.counts.total)
    return text + "".join(
        _titled_table(f"Worker Pool Nodes: {pool.name}", pool, shown_details, limit) for pool in tables
    )


def _titled_table(title: str, pool: PoolReport, shown_details: Details, limit: int) -> str:
    if limit == NO_TABLES and not any(row.needs_attention for row in pool.rows):
        # Pools of workers have a row in the table of pools already.
        return f"\n{title}: {pool.done} of {pool.counts.total} updated\n" if title.startswith("Control") else ""
    return f"\n{title}{_nodes(pool, shown_details, limit)}"


def _pool(pool: PoolReport) -> list[str]:
    """Returns a pool's row of the table."""
    counts = pool.counts
    if not counts.total:
        return [pool.name, "Empty", "", "0 Total"]
    status = f"{counts.available} Available, {counts.progressing} Progressing, {counts.draining} Draining"
    status += f", {counts.excluded} Excluded" if counts.excluded else ""
    status += f", {counts.degraded} Degraded" if counts.degraded else ""
    completion = f"{100 * (pool.done / counts.total):.0f}% ({pool.done}/{counts.total})"
    return [pool.name, pool.assessment, completion, status]


def _nodes(pool: PoolReport, shown_details: Details, limit: int) -> str:
    shown_rows = [row for i, row in enumerate(pool.rows) if shown_details.nodes or i < limit or row.needs_attention]
    rows = [["NAME", "ASSESSMENT", "PHASE", "VERSION", "EST", "MESSAGE"], *(_node(row) for row in shown_rows)]
    return "\n" + _table(rows) + _omitted_text(pool, shown_rows, shown_details)


def _node(row: NodeRow) -> list[str]:
    # oc compares the length in bytes: a name of fewer than 8 is too likely to be part of another word.
    message = row.message.replace(row.name, "<node>") if len(row.name.encode()) >= 8 else row.message
    return [row.name, row.assessment, row.phase, row.version or "?", _estimate(row.estimate_ns), message]


def _estimate(estimate: int | None) -> str:
    if estimate is None:
        return "?"
    return f"+{short_duration(estimate)}" if estimate else "-"


def _omitted_text(pool: PoolReport, shown_rows: Sequence[NodeRow], shown_details: Details) -> str:
    """Returns how many Nodes of the pool are not shown, as `oc` words it; empty if none."""
    omitted = pool.counts.without(count(shown_rows))
    if not omitted.total:
        return ""
    text = (
        f"...\nOmitted additional {omitted.total} Total, {omitted.updated} Completed, {omitted.available} Available, "
        f"{omitted.progressing} Progressing, {omitted.total - omitted.updated} Outdated, {omitted.draining} Draining, "
        f"{omitted.excluded} Excluded, and {omitted.degraded} Degraded nodes.\n"
    )
    if shown_details.nodes:
        return text + "The report holds no more of them.\n"
    return text + "Pass along --details=nodes to see all information.\n"


# ---- health


def _health(rows: Sequence[HealthRow], updating_for: int, now: int, shown_details: Details) -> str:
    """Returns the section of health: as a table, or with --details=health in blocks."""
    head = "\n= Update Health =\n"
    if not rows:
        well = [short_duration(truncate_duration(updating_for, SECOND)), INFO, NO_IMPACT, "Update is proceeding well"]
        return head + _table([["SINCE", "LEVEL", "IMPACT", "MESSAGE"], well])
    if shown_details.health:
        return head + "\n".join(_block(row, now) for row in rows)
    table = [["SINCE", "LEVEL", "IMPACT", "MESSAGE"]]
    table += [[_since_text(row, now), row.level, row.impact, row.summary] for row in rows]
    more = "Run with --details=health for additional description and links to related online documentation"
    return f"{head}{_table(table)}\n{more}\n"


def _since_text(row: HealthRow, now: int) -> str:
    """Returns the row's age, by the first observation if the cluster records no beginning; `-` if it was just now."""
    if row.since:
        return short_duration(truncate_duration(now - to_ns(row.since), SECOND))
    observed_for = truncate_duration(now - to_ns(row.first_observed), SECOND) if row.first_observed else 0
    return short_duration(observed_for) if observed_for > 0 else "-"


def _block(row: HealthRow, now: int) -> str:
    """Returns a health insight with all its details, a line each."""
    description = row.description.replace("\n", "\n" + " " * 15 + ", ")
    return "".join(
        [
            f"Message: {row.summary}\n",
            f"  Since:       {_since_text(row, now)}\n",
            f"  Level:       {row.level}\n",
            f"  Impact:      {row.impact}\n",
            f"  Reference:   {row.reference}\n",
            "  Resources:\n",
            *_resource_lines(row.resources),
            f"  Description: {description}\n",
        ]
    )


def _resource_lines(refs: Iterable[ResourceRef]) -> Iterator[str]:
    """Yields a line for each kind with the names of its objects."""
    kinds: dict[str, list[str]] = {}
    for ref in refs:
        kind = f"{ref.resource}.{ref.group}" if ref.group else ref.resource
        kinds.setdefault(kind, []).append(f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name)
    width = max((len(kind) for kind in kinds), default=0) + 1
    for kind, names in kinds.items():
        yield f"    {kind + ':':<{width}} {', '.join(names)}\n"


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Returns `rows` in columns; a newline or tab inside a cell affects the table as in Go's tabwriter."""
    lines = [line.split("\t") for row in rows for line in "\t".join(row).split("\n")]
    return columns(lines)


# More nodes than these in one step are counted instead of named.
_NAMED = 20


def summary(report: Report) -> str:
    """Returns the progress of the update in one line."""
    if not report.is_updating:
        return "The cluster is not updating."
    updated = sum(operator.updated for operator in report.operators)
    parts = [f"control plane {updated} of {len(report.operators)} operators updated"]
    pools = [report.control_plane_pool] if report.control_plane_pool else []
    parts += [_progress(pool) for pool in (*pools, *report.worker_pools) if pool.counts.total]
    return f"Update to {report.target_text}: {', '.join(parts)}"


def _progress(pool: PoolReport) -> str:
    return f"pool {pool.name} {pool.done} of {pool.counts.total} nodes"


def changes(old: Report, new: Report) -> Iterator[str]:
    """Yields a line for each change in `new`, most general first; nothing if only time has passed."""
    if old.is_updating != new.is_updating or old.target_text != new.target_text:
        yield summary(new)
    yield from _changed_operators(old, new)
    if new.control_plane_done and not old.control_plane_done and new.is_updating:
        yield f"Control plane is updated to {new.target}"
    before = {pool.name: pool for pool in _pools(old)}
    for pool in _pools(new):
        yield from _changed_pool(before.get(pool.name), pool)
    yield from _changed_health(old, new)


def _pools(report: Report) -> list[PoolReport]:
    first = [report.control_plane_pool] if report.control_plane_pool else []
    return [*first, *report.worker_pools]


def _changed_operators(old: Report, new: Report) -> Iterator[str]:
    """Yields a line for each operator that is updated or began to be updated."""
    before = {operator.name: operator for operator in old.operators}
    for operator in new.operators:
        was = before.get(operator.name)
        if was is None:
            continue
        if operator.updated and not was.updated:
            updated = sum(operator.updated for operator in new.operators)
            yield f"Cluster Operator {operator.name} is updated ({updated} of {len(new.operators)})"
        elif operator.updating and not was.updating:
            message = operator.progressing.message.partition("\n")[0] if operator.progressing else ""
            yield f"Cluster Operator {operator.name} is updating{f': {message}' if message else ''}"


def _changed_pool(old: PoolReport | None, new: PoolReport) -> Iterator[str]:
    """Yields the lines about one pool: Nodes whose state changed, and how many are updated."""
    if old is None:
        yield f"Pool {new.name} has appeared: {_progress(new)}"
        return
    before = {row.name: row for row in old.rows}
    moved = [(was, row) for row in new.rows if (was := before.get(row.name)) and _state_of(was) != _state_of(row)]
    for was, row in moved[:_NAMED]:
        yield f"Node {row.name}: {_state_of(was)} -> {_state_of(row)}{f' ({row.message})' if row.message else ''}"
    if len(moved) > _NAMED:
        yield f"Pool {new.name}: {len(moved) - _NAMED} more nodes changed"
    if old.done != new.done:
        yield f"Pool {new.name}: {new.done} of {new.counts.total} nodes are updated"


def _state_of(row: NodeRow) -> str:
    return row.phase if not row.needs_attention else f"{row.assessment} ({row.phase})"


def _changed_health(old: Report, new: Report) -> Iterator[str]:
    """Yields a line for each health insight that appeared, changed its level or is over."""
    before = {_key(row): row for row in old.health}
    after = {_key(row): row for row in new.health}
    for key, row in after.items():
        if key not in before or before[key].level != row.level:
            yield f"{row.level}: {row.summary}"
    for key, row in before.items():
        if key not in after:
            yield f"Over: {row.summary}"


def _key(row: HealthRow) -> Hashable:
    # A summary contains reasons and ages, which change; the check and its resources identify the row.
    return (row.check, row.resources) if row.check else row.summary
