"""The command `runup upgrade accept RISK[,RISK-...]`: accepts risks by name."""

from __future__ import annotations

import click

from runup.advice.decide.acceptance_change import parse_change
from runup.cli import cluster_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.result_output import ResultPrinter
from runup.clusterversion.control.upgrade import AcceptanceReason, accept_risks


# `accept -NAME` is how the design document writes it, `NAME-` how oc reads it; click would take the first for a flag.
@click.command("accept", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("risks", nargs=-1, metavar="RISK[,RISK-...]", shell_complete=cluster_completion.risks)
@option("--replace", is_flag=True, help="Accept exactly the risks named, and no others.")
@option("--clear", is_flag=True, help="Accept no risk any more.")
@option("--reason", "reason", metavar="TEXT", default="", help="Why; recorded with your name.")
@option("--until", metavar="TIME", default="", help="How long: 30d, 12h, 2026-12-31 or 2026-12-31T12:00:00Z.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def accept(
    ctx: click.Context,
    risks: tuple[str, ...],
    replace: bool,
    clear: bool,
    reason: str,
    until: str,
    output: str | None,
) -> None:
    """Accept risks exposed to conditional updates.

    \b
      runup upgrade accept A,B          accept A and B too
      runup upgrade accept A-           accept A no longer
      runup upgrade accept --replace C  accept C and nothing else
      runup upgrade accept --clear      accept nothing
      runup upgrade accept A --until 30d --reason "fixed in 5.2.3"
    """
    for word in risks:
        if word.startswith("--"):
            raise click.NoSuchOption(word, ctx=ctx)
    # Risk names start with a capital letter, so that a leading minus can only mean removal: `-A,B` is `A-,B`.
    items = [[item.strip() for item in word.split(",")] for word in risks]
    words = [",".join(f"{item[1:]}-" if item.startswith("-") else item for item in word) for word in items]
    try:
        change = parse_change(words, replace=replace, clear=clear)
    except ValueError as error:
        raise UsageProblem(str(error), ctx) from error
    if reason and not change.add:
        raise UsageProblem("--reason says why risks are accepted; name some", ctx)
    if until and not change.add:
        raise UsageProblem("--until says how long risks are accepted; name some", ctx)
    printer = ResultPrinter("accept", output)
    with connection_of(ctx).client() as client:
        accepted = accept_risks(change, client, AcceptanceReason(reason.strip(), until), printer.say)
        printer.done(accepted.patch, acceptRisks=list(accepted.names), recorded=accepted.recorded)
