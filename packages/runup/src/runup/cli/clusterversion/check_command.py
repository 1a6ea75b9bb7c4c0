"""`runup check`: checks the prerequisites of a preflight or an update within seconds, one line each."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.output import screen_of, write
from runup.cli.render import table
from runup.cli.render.screen import PIPE, Drawn, Screen
from runup.cli.render.text import machine
from runup.clusterversion.control.prerequisite_probe import collect_facts
from runup.clusterversion.decide.check_prerequisites import PrerequisiteRow, Result, exit_code, rows


@click.command("check", cls=Command)
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def check(ctx: click.Context, output: str | None) -> int:
    """Look whether the cluster can be preflighted and by you: server, field, gates, components, registry, stores,
    rights.

    Nothing is changed. Exit codes: 0 all is well, 2 something must be done, 3 something is unknown, 1 the
    server did not answer.

    \b
      runup check
      runup check --context production -o json
    """
    checked_rows = rows(collect_facts(connection_of(ctx)))
    if output:
        data = [
            {"name": row.name, "result": row.result.value, "message": row.says, "wayOut": row.way_out}
            for row in checked_rows
        ]
        write([("out", machine({"checks": data}, output))])
    else:
        write([("out", text(checked_rows, screen_of(sys.stdout)))])
    return exit_code(checked_rows)


_STYLES = {Result.OK.value: "green", Result.PROBLEM.value: "bold red", Result.UNKNOWN.value: "yellow"}
_WIDEST = max(len(result.value) for result in Result)


def text(checked_rows: Sequence[PrerequisiteRow], screen: Screen = PIPE) -> Drawn:
    """Returns one line a row, with `ok`, `problem` or `unknown` first."""
    columns = (table.Column(title="", least=_WIDEST, styles=_STYLES), table.Column(title="", flows=True))
    lines = [
        table.Row((row.result.value, f"{row.name}: {row.says}"), (row.way_out,) if row.way_out else ())
        for row in checked_rows
    ]
    return table.draw_table(table.Table(columns=columns, rows=lines, gap=2), screen)
