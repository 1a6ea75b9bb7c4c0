"""The command `runup upgrade rollback`: back to the previous release, within one minor version."""

from __future__ import annotations

import click

from kubekit.lang.gotext import quote_go
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.result_output import ResultPrinter
from runup.clusterversion.control.upgrade import roll_back


@click.command("rollback", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def rollback(ctx: click.Context, words: tuple[str, ...], output: str | None) -> None:
    """Rollback the cluster to the previous release.

    \b
      runup upgrade rollback           back to the release that the cluster came from
      runup upgrade rollback -o json   the same, for a script
    """
    if words:
        raise UsageProblem(f"unknown command {quote_go(' '.join(words))}", ctx)
    printer = ResultPrinter("rollback", output)
    with connection_of(ctx).client() as client:
        sent = roll_back(client, printer.say)
        printer.done(sent.patch, **sent.details)
