"""Compares two reports and describes what changed, one line each: the form of `--watch` for logs and pipes. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from runup.updatestatus.decide.report_rows import HealthRow, NodeRow, PoolReport, Report

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
    yield from _operators(old, new)
    if new.control_plane_done and not old.control_plane_done and new.is_updating:
        yield f"Control plane is updated to {new.target}"
    before = {pool.name: pool for pool in _pools(old)}
    for pool in _pools(new):
        yield from _pool(before.get(pool.name), pool)
    yield from _health(old, new)


def _pools(report: Report) -> list[PoolReport]:
    first = [report.control_plane_pool] if report.control_plane_pool else []
    return [*first, *report.worker_pools]


def _operators(old: Report, new: Report) -> Iterator[str]:
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


def _pool(old: PoolReport | None, new: PoolReport) -> Iterator[str]:
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


def _health(old: Report, new: Report) -> Iterator[str]:
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
