"""Renders a simulated drain as text of 80 columns, and as data for programs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from kubekit.lang.text import timestamp
from runup.rehearse.decide.drains.drain_result import (
    Blocked,
    DrainResult,
    NodeDrain,
    PathStep,
    PoolTimeline,
    Unplaced,
)

WIDTH = 80
# Rows of each part that are shown without --verbose.
_MAX_ROWS = 10
_BAR_WIDTH = 24
# Workloads that are named of those that compete with another one.
_MAX_RIVALS = 3


def drain_text(result: DrainResult, *, whole: bool = False) -> str:
    """Returns the text: timeline by pool, what blocks, what finds no place, outages, critical path, what is unknown."""
    most = 10**9 if whole else _MAX_ROWS
    rows = [("POOL", "NODES", "AT ONCE", "TAKES", "")]
    rows += [_pool_row(pool, result.duration_s) for pool in result.pools]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4])) for row in rows
    ]
    held_pools = [_wrapped_text(f"{pool.name}: {pool.held}.", "  ") for pool in result.pools if pool.held]
    pool_timelines = "".join(line.rstrip() + "\n" for line in lines) + "".join(held_pools)
    sections = [
        _headline(result),
        pool_timelines,
        _titled_list(
            "Cannot be evicted; somebody has to delete them",
            [_stuck_pod_text(*stuck_pod) for stuck_pod in result.stuck],
            most,
        ),
        _titled_list("Held up a drain until their budgets let them go", list(_delayed_evictions(result)), most),
        _titled_list(
            "Find no place, even when all nodes are back",
            [_unplaced_before_text(each) for each in result.homeless],
            most,
        ),
        _titled_list(
            "Wait for a place",
            [
                _late_placement_text(each)
                for each in result.unplaced
                if (not each.before and each.to_s is not None and each.to_s > each.from_s)
            ],
            most,
        ),
        _titled_list(
            "Had no place before", [_unplaced_before_text(each) for each in result.unplaced if each.before], most
        ),
        _titled_list(
            "Make way for pods of higher priority",
            [f"{preempted.pod} for {preempted.by} on {preempted.node}" for preempted in result.preempted],
            most,
        ),
        _titled_list("Are lost, since nothing makes them again", list(_lost_pods(result)), most),
        _titled_list(
            "Are down: no pod ready",
            [
                f"{each.workload} for {duration_text(each.seconds)}, {_moment_text(each.from_s)}: {each.why}"
                for each in result.outages
            ],
            most,
        ),
        _titled_list("Decides how long it takes", [_step_text(each) for each in result.path], most),
        _titled_list("Not known", list(result.unknown), most),
        _titled_list("Taken for granted", list(result.assumed), most),
        _titled_list("How far it can be trusted", list(result.trust), most),
    ]
    return "\n".join(section for section in sections if section)


def drain_data(result: DrainResult) -> dict[str, Any]:
    """Returns the result as dicts and lists, with the names of its fields as JSON has them."""
    data: dict[str, Any] = _as_data(result)
    return data


def duration_text(seconds: int | None) -> str:
    """Returns a duration in its two largest units: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`; None is no end."""
    if seconds is None:
        return "without end"
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest_s = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s" if rest_s and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def _as_data(value: Any) -> Any:
    """Returns a dataclass as JSON data: field names in camelCase, times as timestamps."""
    if is_dataclass(value):
        # Seconds keep their unit: `from_s` is fromSeconds.
        return {
            re.sub("_([a-z])", lambda match: match[1].upper(), re.sub("_s$", "_seconds", member.name)): _as_data(
                getattr(value, member.name)
            )
            for member in fields(value)
        }
    if isinstance(value, tuple):
        return [_as_data(each) for each in value]
    return timestamp(value) if isinstance(value, datetime) else value


def _headline(result: DrainResult) -> str:
    """Returns the paragraph with the number of nodes, the duration and the number of evicted pods."""
    count = len(result.nodes)
    if not count:
        return "No node is drained.\n"
    nodes = "1 node" if count == 1 else f"{count} nodes"
    end = result.started + timedelta(seconds=result.duration_s)
    return _wrapped_text(
        f"The drains of {nodes} take {duration_text(result.duration_s)}, from {timestamp(result.started)} to "
        f"{timestamp(end)}; "
        f"{_pod_count(result.evicted)} {'is' if result.evicted == 1 else 'are'} evicted.",
        "",
    )


def _pool_row(pool: PoolTimeline, total_s: int) -> tuple[str, str, str, str, str]:
    """Returns one pool's row: name, nodes, nodes at once, duration and bar."""
    at_once = f"{pool.at_once} more" if pool.surge else str(pool.at_once)
    if pool.paused or pool.held or not pool.nodes:
        return pool.name, str(pool.node_count), at_once, "-", "paused" if pool.paused else "does not begin"
    begin, end = min(node.from_s for node in pool.nodes), max(map(_end_s, pool.nodes))
    first_cell = begin * _BAR_WIDTH // max(total_s, 1)
    end_cell = max(first_cell + 1, -(-end * _BAR_WIDTH // max(total_s, 1)))
    timeline_bar = "." * first_cell + "#" * (end_cell - first_cell) + "." * (_BAR_WIDTH - end_cell)
    return pool.name, str(pool.node_count), at_once, duration_text(end - begin), timeline_bar


def _end_s(node: NodeDrain) -> int:
    return node.drained_s if node.back_s is None else node.back_s


def _titled_list(title: str, rows: Sequence[str], most: int) -> str:
    """Returns `title` and at most `most` rows, with the number of those left out; empty without rows."""
    if not rows:
        return ""
    shown_rows = "".join(_wrapped_text(row, "  ") for row in rows[:most])
    more_text = f"  ... and {len(rows) - most} more; -v shows all.\n" if len(rows) > most else ""
    return f"{title}:\n{shown_rows}{more_text}"


def _wrapped_text(text: str, indent: str) -> str:
    """Returns the text wrapped at `WIDTH`, each line indented, with a final line end."""
    return (
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "  " if indent else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
    )


def _stuck_pod_text(node: NodeDrain, blocked: Blocked) -> str:
    budgets_text = f" ({'budgets' if len(blocked.by) > 1 else 'budget'} {', '.join(blocked.by)})" if blocked.by else ""
    return f"{node.node}: pod {blocked.pod}: {blocked.why}{budgets_text}"


def _delayed_evictions(result: DrainResult) -> Iterator[str]:
    """Yields a line for each pod whose eviction a budget refused for a while and then allowed."""
    for node in result.nodes:
        for blocked in node.blocked:
            if blocked.to_s is not None and blocked.to_s > blocked.from_s:
                budgets = ", ".join(blocked.by)
                duration = duration_text(blocked.to_s - blocked.from_s)
                yield f"{node.node}: pod {blocked.pod} for {duration} ({budgets}; {blocked.why})"


def _lost_pods(result: DrainResult) -> Iterator[str]:
    for node in result.nodes:
        for pod in node.lost:
            yield f"pod {pod} of {node.node}"


def _pod_count(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _unplaced_before_text(unplaced: Unplaced) -> str:
    source = f" from {', '.join(unplaced.moved_from[:3])}" if unplaced.moved_from else ""
    return f"{_pod_count(unplaced.pods)} of {unplaced.workload}{source}: {unplaced.why}{_rivals_text(unplaced)}"


def _late_placement_text(unplaced: Unplaced) -> str:
    assert unplaced.to_s is not None
    waited = duration_text(unplaced.to_s - unplaced.from_s)
    pods = f"{_pod_count(unplaced.pods)} of {unplaced.workload}"
    return f"{pods} for {waited}, {_moment_text(unplaced.from_s)}: {unplaced.why}{_rivals_text(unplaced)}"


def _rivals_text(unplaced: Unplaced) -> str:
    if not unplaced.rivals:
        return ""
    shown, more = unplaced.rivals[:_MAX_RIVALS], len(unplaced.rivals) - _MAX_RIVALS
    named = " or ".join(shown) + (f" or {more} more" if more > 0 else "")
    return f" Or {named} waits instead: which of them gets the room is not known."


def _moment_text(seconds: int) -> str:
    return f"{duration_text(seconds)} after the beginning" if seconds else "from the beginning"


def _step_text(step: PathStep) -> str:
    clock = f"{step.from_s // 3600}:{step.from_s // 60 % 60:02}"
    reason = f": {step.why}" if step.why else ""
    return f"{clock} {step.what}, {duration_text(step.to_s - step.from_s)}{reason}"
