"""`runup check`: what must be so before anything is asked of a cluster, one line each, in seconds."""

from __future__ import annotations

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command


@click.command("check", cls=Command)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The machine form.")
@connection_options
@click.pass_context
def check(ctx: click.Context, output: str | None) -> int:
    """Look whether the cluster can be preflighted and by you: server, field, gates, rights, registry, stores.

    Nothing is changed. Exit codes: 0 all is well, 2 something is to be done, 3 something could not be told, 1 the
    server did not answer.

    \b
      runup check
      runup check --context production -o json
    """
    from runup.cli.check.judge import exit_code, rows
    from runup.cli.check.probe import ask
    from runup.cli.cluster import write
    from runup.cli.render.text import machine

    found = rows(ask(connection_of(ctx)))
    if output:
        data = [
            {"name": row.name, "result": row.result.value, "message": row.says, "wayOut": row.way_out} for row in found
        ]
        write([("out", machine({"checks": data}, output))])
        return exit_code(found)
    for row in found:
        write([("out", f"{row.result.value:<9}{row.name}: {row.says}\n")])
        if row.way_out:
            write([("out", f"{'':<9}{row.way_out}\n")])
    return exit_code(found)
