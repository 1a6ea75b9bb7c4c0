"""The command `runup rehearse drain`: a simulation of all drains of an update. The cluster is only read."""

from __future__ import annotations

import re
import textwrap
from dataclasses import fields, is_dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import count, timestamp
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command

if TYPE_CHECKING:
    from runup.process.connection import Connection
    from runup.rehearse.control.drain_source import DrainSource
    from runup.rehearse.decide.drains.drain_result import DrainResult, Unplaced

CLEAR, FOUND, UNKNOWN = 0, 2, 3
# A week: whoever gives more has given seconds.
_MOST_MINUTES = 7 * 24 * 60
_TIMES = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")


@click.command("drain", cls=Command)
@click.option("--dump", default="", metavar="DIR", help="A must-gather or another dump; else the cluster, read only.")
@click.option("--max-unavailable", type=click.IntRange(1), metavar="N", help="As if each pool had this many at once.")
@click.option("--surge", type=click.IntRange(0), default=0, metavar="N", help="New nodes that come before old ones go.")
@click.option("--window", default="", metavar="HH:MM-HH:MM", help="When drains may begin, each day, in UTC.")
@click.option(
    "--nodes-fewer", type=click.IntRange(0), default=0, metavar="N", help="Nodes of each pool that do not come back."
)
@click.option(
    "--node-minutes",
    type=click.IntRange(0, _MOST_MINUTES),
    default=10,
    show_default=True,
    help="From drained to ready.",
)
@click.option(
    "--drain-minutes",
    type=click.IntRange(1, _MOST_MINUTES),
    default=60,
    show_default=True,
    help="Time limit of a drain.",
)
@click.option("--force/--no-force", default=None, help="Whether pods without an owner are evicted, too.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "html"]), help="Output format for programs, or a web page."
)
@click.option("-v", "--verbose", is_flag=True, help="Every row.")
@connection_options
@click.pass_context
def drain(
    ctx: click.Context,
    /,
    dump: str,
    max_unavailable: int | None,
    surge: int,
    window: str,
    nodes_fewer: int,
    node_minutes: int,
    drain_minutes: int,
    force: bool | None,
    output: str | None,
    verbose: bool,
) -> int:
    """Simulate the drains of an update: blocked evictions, unschedulable pods, downtimes, and the duration.

    Pods are placed as kube-scheduler's filters say, and evicted as budgets allow. Nothing is changed.

    \b
      runup rehearse drain
      runup rehearse drain --dump must-gather --max-unavailable 3
      runup rehearse drain --window 22:00-06:00 -o json

    Exit codes: 0 all nodes are drained and all pods find a place, 2 not so, 3 not all is known, 1 an error.
    """
    from kubekit.kube.clock import SystemClock
    from runup.cli.output import write
    from runup.cli.render.text import err, machine, out
    from runup.rehearse.control.drain_source import simulated
    from runup.rehearse.decide.drain_inputs import drained_cluster
    from runup.rehearse.decide.drains.drained_cluster import DrainSettings, Window

    hours = parse_times(window, "--window", "UTC")
    source = read_source(connection_of(ctx), dump)
    settings = DrainSettings(
        forces=source.openshift if force is None else force,
        drain_timeout_s=drain_minutes * 60,
        node_update_s=node_minutes * 60,
        max_unavailable=max_unavailable,
        window=Window(*hours) if hours is not None else None,
        nodes_lost=nodes_fewer,
        uncordons_all=source.openshift,
    )
    cluster = drained_cluster(source.objects, source.missing, openshift=source.openshift, surge=surge)
    if not cluster.nodes:
        raise CommandError(f"there are no nodes to drain: {source.missing.get('Node', 'the cluster lists no nodes')}")
    result = simulated(cluster, settings, source.now or SystemClock().now())
    if output == "html":
        from runup.cli.rehearse import drain_page

        end = result.started + timedelta(seconds=result.duration_s)
        windows = tuple(settings.window.spans(result.started, end)) if settings.window else ()
        text = drain_page.page("Simulated drains", drain_summary(result), result, windows)
    elif output:
        text = machine({**drain_data(result), "needsHelp": list(result.needs_help)}, output)
    else:
        text = drain_text(result, whole=verbose)
    write([*(err(f"warning: {note}\n") for note in source.notes), out(text)])
    return exit_code(result)


def exit_code(result: DrainResult) -> int:
    """Returns the exit code that a result ends the command with."""
    if result.stuck or result.homeless or any(pool.held for pool in result.pools):
        return FOUND
    return UNKNOWN if result.unknown else CLEAR


def parse_times(text: str, option: str, zone: str = "") -> tuple[time, time] | None:
    """Returns the two times of day of `HH:MM-HH:MM`, None without any.

    Raises CommandError, which names `option` and, if one is given, the `zone` that they are in.
    """
    if not text:
        return None
    match = _TIMES.fullmatch(text)
    if match is None:
        in_zone = f" in {zone}" if zone else ""
        raise CommandError(f"{option} {text}: give two times of day{in_zone}, such as 22:00-06:00")
    numbers = [int(digits) for digits in match.groups()]
    opens, closes = time(numbers[0], numbers[1]), time(numbers[2], numbers[3])
    if opens == closes:
        raise CommandError(f"{option} {text}: it never opens; leave it out for any time of day")
    return opens, closes


def read_source(connection: Connection, dump: str, *, with_status: bool = False) -> DrainSource:
    """Returns the facts about the dump or, without one, the cluster. Raises CommandError for a bad dump."""
    from runup.dump.dump_files import BadDump
    from runup.rehearse.control import drain_source

    if dump:
        try:
            return drain_source.read_dump_objects(Path(dump), with_status=with_status)
        except BadDump as error:
            raise CommandError(error.message) from error
    with connection.client("rehearse drain") as client:
        return drain_source.read_cluster_objects(client, with_status=with_status)


WIDTH = 80
# Rows of each part that are shown without --verbose.
_MAX_ROWS = 10
_BAR_WIDTH = 24
# Workloads that are named of those that compete with another one.
_MAX_RIVALS = 3


def drain_summary(result: DrainResult) -> list[str]:
    """Returns the sentences about all drains: whether they need help, and how long they take."""
    from runup.rehearse.decide.drains.drain_result import without_help

    if not result.nodes:
        return ["No node is drained."]
    end = result.started + timedelta(seconds=result.duration_s)
    drains, why = f"The drains of {count(len(result.nodes), 'node')}", without_help(result.needs_help)
    takes = (
        f"{'With that help they' if why else drains} take {duration_text(result.duration_s)}, from "
        f"{timestamp(result.started)} to {timestamp(end)}; {_pod_count(result.evicted)} "
        f"{'is' if result.evicted == 1 else 'are'} evicted."
    )
    return [f"{drains} do {why}.", takes] if why else [takes]


def drain_text(result: DrainResult, *, whole: bool = False) -> str:
    """Returns the text: timeline by pool, blocked evictions, unschedulable pods, outages, critical path, unknowns."""
    summary = "".join(map(_wrapped_text, drain_summary(result)))
    titled_rows: dict[str, list[str]] = {
        "Cannot be evicted; somebody has to delete them": [
            f"{node.node}: pod {blocked.pod}: {blocked.why}"
            + (f" ({'budgets' if len(blocked.by) > 1 else 'budget'} {', '.join(blocked.by)})" if blocked.by else "")
            for node, blocked in result.stuck
        ],
        "Held up a drain until their budgets let them go": [
            f"{node.node}: pod {blocked.pod} for {duration_text(blocked.to_s - blocked.from_s)} "
            f"({', '.join(blocked.by)}; {blocked.why})"
            for node in result.nodes
            for blocked in node.blocked
            if blocked.to_s is not None and blocked.to_s > blocked.from_s
        ],
        "Find no place, even when all nodes are back": list(map(_unplaced_text, result.homeless)),
        "Wait for a place": [
            _unplaced_text(each, f" for {duration_text(each.to_s - each.from_s)}, {_moment_text(each.from_s)}")
            for each in result.unplaced
            if not each.before and each.to_s is not None and each.to_s > each.from_s
        ],
        "Had no place before": [_unplaced_text(each) for each in result.unplaced if each.before],
        "Make way for pods of higher priority": [
            f"{preempted.pod} for {preempted.by} on {preempted.node}" for preempted in result.preempted
        ],
        "Are lost, since nothing makes them again": [
            f"pod {pod} of {node.node}" for node in result.nodes for pod in node.lost
        ],
        "Are down: no pod ready": [
            f"{each.workload} for {duration_text(each.seconds)}, {_moment_text(each.from_s)}: {each.why}"
            for each in result.outages
        ],
        "Decides how long it takes": [
            f"{step.from_s // 3600}:{step.from_s // 60 % 60:02} {step.what}, {duration_text(step.to_s - step.from_s)}"
            + (f": {step.why}" if step.why else "")
            for step in result.path
        ],
        "Not known": list(result.unknown),
        "Taken for granted": list(result.assumed),
        "Accuracy": list(result.trust),
    }
    sections = [summary, _pool_table(result)]
    for title, rows in titled_rows.items():
        shown = rows if whole else rows[:_MAX_ROWS]
        more_text = f"  ... and {len(rows) - len(shown)} more; -v shows all.\n" if len(rows) > len(shown) else ""
        if rows:
            sections.append(f"{title}:\n{''.join(_wrapped_text(row, '  ') for row in shown)}{more_text}")
    return "\n".join(sections)


def _pool_table(result: DrainResult) -> str:
    """Returns a row for each pool, with the time of its drains as a bar, and why drains of a pool do not begin."""
    rows = [("POOL", "NODES", "AT ONCE", "TAKES", "")]
    total_s = max(result.duration_s, 1)
    for pool in result.pools:
        at_once = f"{pool.at_once} more" if pool.surge else str(pool.at_once)
        if pool.paused or pool.held or not pool.nodes:
            takes, bar = "-", "paused" if pool.paused else "does not begin"
        else:
            begin = min(node.from_s for node in pool.nodes)
            end = max(node.drained_s if node.back_s is None else node.back_s for node in pool.nodes)
            first_cell = begin * _BAR_WIDTH // total_s
            end_cell = max(first_cell + 1, -(-end * _BAR_WIDTH // total_s))
            bar = "." * first_cell + "#" * (end_cell - first_cell) + "." * (_BAR_WIDTH - end_cell)
            takes = duration_text(end - begin)
        rows.append((pool.name, str(pool.node_count), at_once, takes, bar))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4])) for row in rows
    ]
    held_pools = [_wrapped_text(f"{pool.name}: {pool.held}.", "  ") for pool in result.pools if pool.held]
    return "".join(line.rstrip() + "\n" for line in lines) + "".join(held_pools)


def drain_data(value: Any) -> Any:
    """Returns a result as JSON data: names of fields in camelCase, times as timestamps."""
    if is_dataclass(value):
        # Seconds keep their unit: `from_s` is fromSeconds.
        return {
            re.sub("_([a-z])", lambda match: match[1].upper(), re.sub("_s$", "_seconds", member.name)): drain_data(
                getattr(value, member.name)
            )
            for member in fields(value)
        }
    if isinstance(value, tuple):
        return [drain_data(each) for each in value]
    return timestamp(value) if isinstance(value, datetime) else value


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


def _wrapped_text(text: str, indent: str = "") -> str:
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


def _pod_count(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _unplaced_text(unplaced: Unplaced, waited: str = "") -> str:
    """Returns why pods of a workload found no place; `waited` says how long, of those that found one later."""
    moved_from = f" from {', '.join(unplaced.moved_from[:3])}" if unplaced.moved_from and not waited else ""
    rivals_text = ""
    if unplaced.rivals:
        shown, more = unplaced.rivals[:_MAX_RIVALS], len(unplaced.rivals) - _MAX_RIVALS
        named = " or ".join(shown) + (f" or {more} more" if more > 0 else "")
        rivals_text = f" Or {named} waits instead: which of them gets the room is not known."
    hint = f" {unplaced.hint}" if unplaced.hint else ""
    return f"{_pod_count(unplaced.pods)} of {unplaced.workload}{moved_from}{waited}: {unplaced.why}{hint}{rivals_text}"


def _moment_text(seconds: int) -> str:
    return f"{duration_text(seconds)} after the beginning" if seconds else "from the beginning"
