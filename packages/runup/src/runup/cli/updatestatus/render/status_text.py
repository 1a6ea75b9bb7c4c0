"""Renders a Report as the text of `oc adm upgrade status`, byte for byte. Pure.

Times are integers of nanoseconds since the epoch: oc's output depends on fractions of a second in two places (see
`gotext.short_duration`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kubekit.api.conditions import find
from kubekit.lang.gotext import MINUTE, SECOND, datetime_of_ns, round_duration, short_duration, to_ns, truncate_duration
from kubekit.lang.text import shorten, timestamp
from runup.api.update_v1alpha1 import HostedClusterInsight, KubernetesVersionInsight, OperatorProgress
from runup.cli.render.text import columns
from runup.updatestatus.decide.control_plane import assessment_of, to_precision
from runup.updatestatus.decide.finding import HEALTHY, HOSTED_SIDE, INFO, NO_IMPACT, UNKNOWN, UPDATE_STALLED, WARNING
from runup.updatestatus.decide.nodes import count
from runup.updatestatus.decide.read_status import HealthRow, PoolReport, Report

NOT_UPDATING = "The cluster is not updating.\n"
_UNKNOWN = "Could not determine whether the cluster is updating.\n"
DETAILS = ("none", "all", "nodes", "health", "operators")
# Rows of a pool that are printed without --details.
ROWS = 10
# For `rows` of `render`: one line a pool instead of its table, on terminals with too few lines for more.
NO_TABLES = -1
_REASON_WIDTH = 20
# The row of an update that is Stalled where no insight says so: another controller wrote the report, or time passed.
_STALLED = HealthRow(
    level=WARNING, impact=UPDATE_STALLED, summary="The update of the control plane takes longer than estimated"
)


class Details(msgspec.Struct, frozen=True):
    """The parts of the report that are printed in full."""

    nodes: bool = False
    health: bool = False
    operators: bool = False


_PLAIN = Details()


def details(word: str) -> Details:
    """Returns the Details that `--details=word` selects."""
    return Details(*(word in ("all", part) for part in ("nodes", "health", "operators")))


def clock_time(now: int) -> str:
    """Returns the time of day of `now`, for lines of a log."""
    return f"{datetime_of_ns(now):%H:%M:%SZ}"


def render(report: Report, now: int, shown_details: Details = _PLAIN, *, rows: int = ROWS, as_oc: bool = False) -> str:
    """Returns the whole text at `now` (nanoseconds since the epoch).

    `rows` is the number of rows of a pool that are printed by default; nodes that need attention are always printed.
    With `as_oc`, an update that is Stalled and has no insights proceeds well, as oc prints it of its example files.
    """
    if report.kubernetes is not None:
        return _kubernetes(report, report.kubernetes, now, shown_details, rows=rows)
    if report.hosted is not None:
        return _hosted(report, report.hosted, now, shown_details, rows=rows)
    if not report.is_updating:
        # A refused update, and what is not known, are printed while nothing is updating, too.
        idle_rows = [row for row in report.health if row.check == "ReleaseNotLoaded" or row.level == UNKNOWN]
        first = _UNKNOWN if report.has_unknown_pools and not as_oc else NOT_UPDATING
        return first + (_health(idle_rows, 0, now, shown_details) if idle_rows else "")
    health = report.health
    if not (health or as_oc or report.control_plane_done) and _assessment(report, now) == "Stalled":
        health = (_STALLED,)
    text = _control_plane(report, now, shown_details) + _control_plane_nodes(report, shown_details, rows)
    started = report.cluster_version.started_at if report.cluster_version else None
    updating_for = round_duration(now - to_ns(started), SECOND) if started else 0
    return text + _workers(report, shown_details, rows) + _health(health, updating_for, now, shown_details)


# ---- the control plane


def _kubernetes(
    report: Report, insight: KubernetesVersionInsight, now: int, shown_details: Details, *, rows: int
) -> str:
    """Returns the text about a cluster without a ClusterVersion, with all groups also while nothing is updating."""
    updated = round(insight.completion * len(insight.api_servers) / 100)
    servers = ", ".join(f"{server.name} {server.version}" for server in insight.api_servers)
    done, total = report.nodes_done
    lines = [
        ("Assessment:", insight.assessment),
        ("Target Version:" if report.is_updating else "Version:", report.target_text),
        ("API Servers:", f"{updated} of {len(insight.api_servers)} updated ({servers or 'none is known'})"),
        ("Nodes:", f"{done} of {total} updated"),
        ("Distribution:", insight.distribution),
    ]
    started_ns = to_ns(insight.started_at) if insight.started_at and report.is_updating else now
    if report.is_updating and insight.started_at is not None:
        elapsed = now - started_ns
        duration = short_duration(round_duration(elapsed, MINUTE if elapsed > 10 * MINUTE else SECOND))
        if remaining_s := _remaining_s(report, now):
            duration += f" (Est. Time Remaining: {_remaining(report, elapsed, remaining_s * SECOND)})"
        lines.insert(4, ("Duration:", duration))
    text = "" if report.is_updating else _not_updating(report)
    text += "= Control Plane =\n" + "".join(f"{label:<17}{value}\n" for label, value in lines)
    if report.is_updating:
        text += _control_plane_nodes(report, shown_details, rows)
    shown_rows = rows if report.is_updating or shown_details.nodes else NO_TABLES
    text += _workers(report, shown_details, shown_rows)
    if not report.is_updating and not report.health:
        return text
    return text + _health(report.health, now - started_ns, now, shown_details)


def _hosted(report: Report, insight: HostedClusterInsight, now: int, shown_details: Details, *, rows: int) -> str:
    """Returns the text about a hosted cluster, with all node pools also while nothing is updating."""
    healthy = find(insight.conditions, HEALTHY)
    health = "Yes" if healthy is not None and healthy.status == "True" else "Unknown"
    if healthy is not None and healthy.status == "False":
        health = f"No ({healthy.reason})"
    lines = [
        ("Assessment:", insight.assessment),
        ("Target Version:" if report.is_updating else "Version:", report.target_text),
        ("Completion:", f"{insight.completion}%"),
        ("Healthy:", health),
    ]
    side = find(report.conditions, HOSTED_SIDE)
    if side is not None and side.status != "True":
        lines.append(("Hosted side:", side.message))
    started_ns = to_ns(insight.started_at) if insight.started_at and report.is_updating else now
    if insight.assessment in ("Progressing", "Stalled") and insight.started_at is not None:
        elapsed = now - started_ns
        duration = short_duration(round_duration(elapsed, MINUTE if elapsed > 10 * MINUTE else SECOND))
        lines.insert(3, ("Duration:", duration))
    text = "" if report.is_updating else _not_updating(report)
    text += "= Control Plane =\n" + "".join(f"{label:<17}{value}\n" for label, value in lines)
    text += _workers(report, shown_details, rows if report.is_updating or shown_details.nodes else NO_TABLES)
    if not report.is_updating and not report.health:
        return text
    return text + _health(report.health, now - started_ns, now, shown_details)


def _not_updating(report: Report) -> str:
    """Returns the first lines of a report about a cluster without a ClusterVersion that is not updating."""
    if report.updating is not None and report.updating.status == "False":
        return f"{NOT_UPDATING}\n"
    return f"{_UNKNOWN}\n"


def _control_plane_nodes(report: Report, shown_details: Details, rows: int) -> str:
    """Returns the section of the control plane's nodes; empty if none are known."""
    pool = report.control_plane_pool
    if pool is None or not pool.counts.total:
        return ""
    if pool.is_complete:
        version = pool.rows[0].version if pool.rows else report.target
        return f"\nAll control plane nodes successfully updated to {version}\n"
    if rows == NO_TABLES and not any(row.needs_attention for row in pool.rows):
        return f"\nControl Plane Nodes: {pool.done} of {pool.counts.total} updated\n"
    return f"\nControl Plane Nodes\n{_nodes(pool, shown_details, rows)}"


def _control_plane(report: Report, now: int, shown_details: Details) -> str:
    """Returns the section of the control plane; durations are in nanoseconds."""
    insight, operators = report.cluster_version, report.operators
    end = to_ns(insight.completed_at) if insight and insight.completed_at else now
    # Without history there is no start: oc takes 0 as the elapsed time, so that its estimate is the whole baseline.
    elapsed = end - to_ns(insight.started_at) if insight and insight.started_at and insight.versions else 0
    duration = short_duration(round_duration(elapsed, MINUTE if elapsed > 10 * MINUTE else SECOND))
    if report.control_plane_done:
        moment = timestamp(datetime_of_ns(end))
        return (
            f"= Control Plane =\nUpdate to {report.target} successfully completed at {moment} (duration: {duration})\n"
        )
    assessment = _assessment(report, now)
    if remaining_s := _remaining_s(report, now):
        duration += f" (Est. Time Remaining: {_remaining(report, elapsed, remaining_s * SECOND)})"
    updating = [operator for operator in operators if operator.updating]
    updated, waiting = sum(each.updated for each in operators), sum(each.waiting for each in operators)
    percent = str(insight.completion) if insight else "?"
    if operators:
        percent = f"{100 * (updated / len(operators)):.0f}"
    unavailable, degraded = sum(each.unavailable for each in operators), sum(each.degraded for each in operators)
    health = f"{len(operators) - unavailable - degraded} Healthy"
    health += f", {unavailable} Unavailable" if unavailable else ""
    health += f", {degraded} Available but degraded" if degraded else ""
    lines = [
        ("Assessment:", assessment),
        ("Target Version:", report.target_text),
        *([("Updating:", ", ".join(operator.name for operator in updating))] if updating else []),
        ("Completion:", f"{percent}% ({updated} operators updated, {len(updating)} updating, {waiting} waiting)"),
        ("Duration:", duration),
        ("Operator Health:", health),
    ]
    text = "= Control Plane =\n" + "".join(f"{label:<17}{value}\n" for label, value in lines)
    if not shown_details.operators or not updating:
        return text
    rows = [["NAME", "SINCE", "REASON", "MESSAGE"]]
    for operator in updating:
        progressing = operator.progressing or OperatorProgress(status="")
        since = progressing.last_transition_time
        first, *further = progressing.message.split("\n")
        reason = shorten(progressing.reason, _REASON_WIDTH) if progressing.reason else "-"
        rows.append([operator.name, short_duration(now - to_ns(since)) if since else "-", reason, first])
        rows += [["", "", "", line] for line in further]
    return f"{text}\nUpdating Cluster Operators\n{_table(rows)}"


def _remaining_s(report: Report, now: int) -> int:
    """Returns the seconds until the estimated end, negative if that has passed, 0 without an estimate."""
    insight = report.cluster_version
    if insight is None or insight.estimated_completed_at is None:
        return 0
    end = to_ns(insight.completed_at) if insight.completed_at else now
    return to_precision(round_duration(to_ns(insight.estimated_completed_at) - end, SECOND) // SECOND)


def _assessment(report: Report, now: int) -> str:
    """Returns the assessment at `now`: those that depend on the estimate are computed again."""
    insight = report.cluster_version
    if insight is None:
        return UNKNOWN
    if insight.estimated_completed_at and insight.assessment in ("Progressing", "Progressing - Slow", "Stalled"):
        return assessment_of(_remaining_s(report, now))
    return insight.assessment


def _remaining(report: Report, elapsed: int, remaining: int) -> str:
    """Returns the estimate of what remains (nanoseconds), in the words of `oc adm upgrade status`."""
    if report.changes_architecture:
        return "N/A for Multi-Architecture Migration"
    if remaining < -10 * MINUTE:
        return f"N/A; estimate duration was {short_duration(truncate_duration(elapsed + remaining, MINUTE))}"
    return "<10m" if remaining < 10 * MINUTE else short_duration(remaining)


# ---- nodes and pools


def _workers(report: Report, shown_details: Details, limit: int) -> str:
    """Returns the section of worker pools and their Nodes; empty without workers."""
    if not any(pool.counts.total for pool in report.worker_pools):
        return ""
    rows = [["WORKER POOL", "ASSESSMENT", "COMPLETION", "STATUS"]]
    tables = []
    for pool in report.worker_pools:
        counts = pool.counts
        if not counts.total:
            rows.append([pool.name, "Empty", "", "0 Total"])
            continue
        status = f"{counts.available} Available, {counts.progressing} Progressing, {counts.draining} Draining"
        status += f", {counts.excluded} Excluded" if counts.excluded else ""
        status += f", {counts.degraded} Degraded" if counts.degraded else ""
        completion = f"{100 * (pool.done / counts.total):.0f}% ({pool.done}/{counts.total})"
        rows.append([pool.name, pool.assessment, completion, status])
        # Without tables of nodes, the row is enough.
        if limit != NO_TABLES or any(row.needs_attention for row in pool.rows):
            tables.append(f"\nWorker Pool Nodes: {pool.name}\n{_nodes(pool, shown_details, limit)}")
    text = "\n= Worker Upgrade =\n\n" + _table(rows)
    if report.omitted_worker_pools:
        text += f"...\nOmitted {report.omitted_worker_pools} more worker pools: the report holds no more.\n"
    return text + "".join(tables)


def _nodes(pool: PoolReport, shown_details: Details, limit: int) -> str:
    """Returns the table of a pool's Nodes, and how many of them are not shown."""
    shown_rows = [row for i, row in enumerate(pool.rows) if shown_details.nodes or i < limit or row.needs_attention]
    table = [["NAME", "ASSESSMENT", "PHASE", "VERSION", "EST", "MESSAGE"]]
    for row in shown_rows:
        # oc compares the length in bytes: a name of fewer than 8 is too likely to be part of another word.
        message = row.message.replace(row.name, "<node>") if len(row.name.encode()) >= 8 else row.message
        table.append([row.name, row.assessment, row.phase, row.version or "?", row.estimate_text, message])
    omitted = pool.counts.without(count(shown_rows))
    if not omitted.total:
        return _table(table)
    more = (
        "The report holds no more of them."
        if shown_details.nodes
        else "Pass along --details=nodes to see all information."
    )
    return (
        f"{_table(table)}...\nOmitted additional {omitted.total} Total, {omitted.updated} Completed, "
        f"{omitted.available} Available, {omitted.progressing} Progressing, "
        f"{omitted.total - omitted.updated} Outdated, {omitted.draining} Draining, "
        f"{omitted.excluded} Excluded, and {omitted.degraded} Degraded nodes.\n{more}\n"
    )


# ---- health


def _health(rows: Sequence[HealthRow], updating_for: int, now: int, shown_details: Details) -> str:
    """Returns the section of health: as a table, or with --details=health in blocks."""
    head = "\n= Update Health =\n"
    table = [["SINCE", "LEVEL", "IMPACT", "MESSAGE"]]
    if not rows:
        since = short_duration(truncate_duration(updating_for, SECOND))
        return head + _table([*table, [since, INFO, NO_IMPACT, "Update is proceeding well"]])
    blocks = []
    for row in rows:
        # The age is from the first observation if the cluster records no beginning; `-` if that was just now.
        since = "-"
        if row.since:
            since = short_duration(truncate_duration(now - to_ns(row.since), SECOND))
        elif row.first_observed and (observed_for := truncate_duration(now - to_ns(row.first_observed), SECOND)) > 0:
            since = short_duration(observed_for)
        if shown_details.health:
            blocks.append(_block(row, since))
        table.append([since, row.level, row.impact, row.summary])
    if blocks:
        return head + "\n".join(blocks)
    more = "Run with --details=health for additional description and links to related online documentation"
    return f"{head}{_table(table)}\n{more}\n"


def _block(row: HealthRow, since: str) -> str:
    """Returns a health insight with all its details, a line each; the names of objects of one kind share a line."""
    kinds: dict[str, list[str]] = {}
    for ref in row.resources:
        kind = f"{ref.resource}.{ref.group}" if ref.group else ref.resource
        kinds.setdefault(kind, []).append(f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name)
    width = max((len(kind) for kind in kinds), default=0) + 1
    resources = "".join(f"    {kind + ':':<{width}} {', '.join(names)}\n" for kind, names in kinds.items())
    description = row.description.replace("\n", "\n" + " " * 15 + ", ")
    return (
        f"Message: {row.summary}\n  Since:       {since}\n  Level:       {row.level}\n  Impact:      {row.impact}\n"
        f"  Reference:   {row.reference}\n  Resources:\n{resources}  Description: {description}\n"
    )


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
    pools = [pool.progress for pool in report.pools if pool.counts.total]
    parts = [f"control plane {updated} of {len(report.operators)} operators updated", *pools]
    if report.hosted is not None:
        parts = [f"control plane {report.hosted.completion}%", *pools]
    if (insight := report.kubernetes) is not None:
        parts = [f"{insight.completion}% of the API servers updated", *pools]
    return f"Update to {report.target_text}: {', '.join(parts)}"


def changes(old: Report, new: Report) -> Iterator[str]:
    """Yields a line for each change in `new`, most general first; nothing if only time has passed."""
    if old.is_updating != new.is_updating or old.target_text != new.target_text:
        yield summary(new)
    operators = {operator.name: operator for operator in old.operators}
    for operator in new.operators:
        was = operators.get(operator.name)
        if was and operator.updated and not was.updated:
            updated = sum(operator.updated for operator in new.operators)
            yield f"Cluster Operator {operator.name} is updated ({updated} of {len(new.operators)})"
        elif was and operator.updating and not was.updating:
            message = operator.progressing.message.partition("\n")[0] if operator.progressing else ""
            yield f"Cluster Operator {operator.name} is updating{f': {message}' if message else ''}"
    if new.control_plane_done and not old.control_plane_done and new.is_updating:
        yield f"Control plane is updated to {new.target}"
    pools = {pool.name: pool for pool in old.pools}
    for pool in new.pools:
        if (old_pool := pools.get(pool.name)) is None:
            yield f"Pool {pool.name} has appeared: {pool.progress}"
            continue
        states = {node.name: node.state for node in old_pool.rows}
        moved = [node for node in pool.rows if states.get(node.name, node.state) != node.state]
        for node in moved[:_NAMED]:
            yield f"Node {node.name}: {states[node.name]} -> {node.state}{f' ({node.message})' if node.message else ''}"
        if len(moved) > _NAMED:
            yield f"Pool {pool.name}: {len(moved) - _NAMED} more nodes changed"
        if old_pool.done != pool.done:
            yield f"Pool {pool.name}: {pool.done} of {pool.counts.total} nodes are updated"
    # A summary contains reasons and ages, which change; the check and its resources identify the row.
    before, after = (
        {(row.check, row.resources) if row.check else row.summary: row for row in report.health}
        for report in (old, new)
    )
    for key, row in after.items():
        if key not in before or before[key].level != row.level:
            yield f"{row.level}: {row.summary}"
    yield from (f"Over: {row.summary}" for key, row in before.items() if key not in after)
