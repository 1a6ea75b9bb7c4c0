"""`runup check`: checks the prerequisites of a preflight or an update within seconds, one line each."""

from __future__ import annotations

import sys

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.options import option


@click.command("check", cls=Command)
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def check(ctx: click.Context, output: str | None) -> int:
    """Look whether the cluster can be preflighted and by you: server, field, gates, components, registry, stores,
    rights.

    Nothing is changed. Exit codes: 0 all is well, 2 something is to be done, 3 something could not be told, 1 the
    server did not answer.

    \b
      runup check
      runup check --context production -o json
    """
    from runup.cli.clusterversion.check_lines import text
    from runup.cli.output import screen_of, write
    from runup.cli.render.text import machine
    from runup.clusterversion.control.prerequisite_probe import collect_facts
    from runup.clusterversion.decide.check_prerequisites import exit_code, rows

    checked_rows = rows(collect_facts(connection_of(ctx)))
    if output:
        data = [
            {"name": row.name, "result": row.result.value, "message": row.says, "wayOut": row.way_out}
            for row in checked_rows
        ]
        write([("out", machine({"checks": data}, output))])
        return exit_code(checked_rows)
    write([("out", text(checked_rows, screen_of(sys.stdout)))])
    return exit_code(checked_rows)
