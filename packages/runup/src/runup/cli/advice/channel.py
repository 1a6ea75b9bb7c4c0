"""The command `runup upgrade channel [CHANNEL]`, which shows, sets or clears the channel. Texts are oc's."""

from __future__ import annotations

import sys

import click

from runup.api.clusterversion_json import read
from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.render.overview import channel_line
from runup.cli.render.text import machine
from runup.cli.result_output import ResultPrinter
from runup.dump import clusterversion_files


@click.command("channel", cls=Command)
@click.argument("words", nargs=-1, metavar="[CHANNEL]")
@option("--allow-explicit-channel", is_flag=True, help="Accept a channel that the release is not known in.")
@option("--dump", metavar="DIR", shell_complete=static_completion.folders, help="Show the channel of a dump.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def channel(
    ctx: click.Context, words: tuple[str, ...], allow_explicit_channel: bool, dump: str | None, output: str | None
) -> None:
    """Set or clear the update channel.

    \b
      runup upgrade channel stable-5.2    be offered the updates of stable-5.2
      runup upgrade channel               be offered none any more
      runup upgrade channel --dump DIR    which channel a cluster was in
    """
    if len(words) > 1:
        raise UsageProblem("multiple positional arguments given", ctx)
    new = words[0] if words else ""
    if not dump:
        printer = ResultPrinter("channel", output)
        with connection_of(ctx).client() as client:
            from runup.clusterversion.control.upgrade import set_channel

            sent = set_channel(new, client, printer.say, explicit=allow_explicit_channel)
            printer.done(sent.patch, **sent.details)
        return
    if words:
        raise CommandError(f"a dump cannot be brought into channel {new}; leave out the channel, or --dump")
    facts = read(clusterversion_files.dump(dump).cluster)
    if output:
        fields = {"channel": facts.channel, "channels": list(facts.channels), "version": facts.desired.version}
        sys.stdout.write(machine(fields, output))
    else:
        sys.stdout.write(channel_line(facts) if facts.channel else "Channel: none, so no updates are offered\n")
