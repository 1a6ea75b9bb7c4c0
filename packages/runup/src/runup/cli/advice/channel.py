"""The command `runup upgrade channel [CHANNEL]`, which shows, sets or clears the channel. Texts are oc's.

`plan` is pure.
"""

from __future__ import annotations

import sys

import click
import msgspec

from runup.api.clusterversion_json import JSON, Facts, read
from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.cli.render.overview import channel_line
from runup.cli.render.text import Output, err, machine, out
from runup.cli.result_output import ResultPrinter
from runup.process.connection import Connection

_CLEARED = "cluster will no longer request available update recommendations."


class Plan(msgspec.Struct, frozen=True):
    """The messages before the patch, and the patch; None if there is nothing to change."""

    said: tuple[Output, ...]
    patch: JSON | None


def plan(facts: Facts, new: str, *, explicit: bool) -> Plan:
    """Returns the messages and the patch that set the channel to `new` (empty: none). Raises CommandError."""
    current = facts.channel
    if new == current:
        if not current:
            return Plan((out("info: Cluster channel is already clear (no change)\n"),), None)
        return Plan((out(f"info: Cluster is already in {current} (no change)\n"),), None)
    messages = _validate_channel(facts, new, explicit=explicit)
    if not new:
        messages = (*messages, err(f'warning: Clearing channel "{current}"; {_CLEARED}\n'))
    return Plan(messages, {"spec": {"channel": new}})


def _validate_channel(facts: Facts, new: str, *, explicit: bool) -> tuple[Output, ...]:
    """Returns the warnings about setting the channel to `new`, as `oc` words them; raises CommandError to refuse."""
    current, channels = facts.channel, ", ".join(facts.channels)
    way_out = "you must pass --allow-explicit-channel to continue\n"
    if not facts.channels:
        if not new:
            return ()
        unknown = f'No channels known to be compatible with the current version "{facts.desired.version}"'
        return (
            err(f'warning: {unknown}; unable to validate "{new}". Setting the update channel to "{new}" anyway.\n'),
        )
    if not new and current in facts.channels and not explicit:
        text = (
            f'You are requesting to clear the update channel. The current channel "{current}" is one of the available'
        )
        raise CommandError(f"{text} channels, {way_out}")
    if not new or new in facts.channels:
        return ()
    text = f'requested channel "{new}" is not one of the available channels ({channels})'
    if not explicit:
        raise CommandError(f"the {text}, {way_out}")
    used = f'You have used --allow-explicit-channel to proceed anyway. Setting the update channel to "{new}".'
    return (err(f"warning: The {text}. {used}\n"),)


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
        _change_channel(connection_of(ctx), new, explicit=allow_explicit_channel, output=output)
    elif words:
        raise CommandError(f"a dump cannot be brought into channel {new}; leave out the channel, or --dump")
    else:
        _show_channel(dump, output)


def _show_channel(dump: str, output: str | None) -> None:
    """Prints the channel of a dump's ClusterVersion, as text or as `output`."""
    from runup.dump import clusterversion_files

    facts = read(clusterversion_files.dump(dump).cluster)
    if output:
        fields = {"channel": facts.channel, "channels": list(facts.channels), "version": facts.desired.version}
        sys.stdout.write(machine(fields, output))
    else:
        sys.stdout.write(channel_line(facts) if facts.channel else "Channel: none, so no updates are offered\n")


def _change_channel(connection: Connection, new: str, *, explicit: bool, output: str | None) -> None:
    """Patches the channel of the live ClusterVersion and prints the result."""
    from kubekit.kube.api_errors import KubeError, message_of
    from runup.process import clusterversion_client as clusters

    printer = ResultPrinter("channel", output)
    with connection.client() as client:
        facts = read(clusters.read_raw(client, no="no"))
        decided = plan(facts, new, explicit=explicit)
        printer.extend(decided.said)
        if decided.patch is not None:
            try:
                clusters.patch(client, decided.patch)
            except KubeError as error:
                raise CommandError(f"unable to set channel: {message_of(error)}") from error
        printer.done(decided.patch, channel=new)
