"""The command `runup rehearse drain`: a simulation of all drains of an update. The cluster is only read."""

from __future__ import annotations

import re
from datetime import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command

if TYPE_CHECKING:
    from runup.process.connection import Connection
    from runup.rehearse.control.drain_source import DrainSource
    from runup.rehearse.decide.drains.drain_result import DrainResult

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
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
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
    """Simulate the drains of an update: what blocks, what finds no place, what is down, how long it takes.

    Pods are placed as kube-scheduler's filters say, and evicted as budgets allow. Nothing is changed.

    \b
      runup rehearse drain
      runup rehearse drain --dump must-gather --max-unavailable 3
      runup rehearse drain --window 22:00-06:00 -o json

    Exit codes: 0 all nodes are drained and all pods find a place, 2 not so, 3 not all is known, 1 an error.
    """
    from kubekit.kube.clock import SystemClock
    from runup.cli.output import write
    from runup.cli.rehearse.render.drain_text import drain_data, drain_text
    from runup.cli.render.text import err, machine, out
    from runup.rehearse.decide.drain_inputs import drained_cluster
    from runup.rehearse.decide.drains.drained_cluster import DrainSettings, Window
    from runup.rehearse.decide.drains.simulation import simulate

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
        raise CommandError(f"there are no nodes to drain: {source.missing.get('Node', 'the cluster has none')}")
    result = simulate(cluster, settings, source.now or SystemClock().now())
    text = machine(drain_data(result), output) if output else drain_text(result, whole=verbose)
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


def read_source(connection: Connection, dump: str) -> DrainSource:
    """Returns what is known of the dump, or without one of the cluster. Raises CommandError for a bad dump."""
    from runup.dump.dump_files import BadDump
    from runup.rehearse.control import drain_source

    if dump:
        try:
            return drain_source.read_dump_objects(Path(dump))
        except BadDump as error:
            raise CommandError(error.message) from error
    with connection.client("rehearse drain") as client:
        return drain_source.read_cluster_objects(client)
