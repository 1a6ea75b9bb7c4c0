"""The commands `runup upgrade policy explain`, `pause`, `resume` and `acknowledge`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import timestamp
from runup.cli import cluster_completion, static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Group
from runup.cli.options import option, version_option

if TYPE_CHECKING:
    from datetime import datetime

    from runup.rollout.decide.explain import ExplainedOpening, StartPreview
    from runup.rollout.decide.gates.gate import Gate

_WIDTH = 110
_MAX_OPENINGS = 20


@click.group("policy", cls=Group)
def policy() -> None:
    """Explain what the update policy of a cluster will do, pause it, or let it continue after a failure.

    \b
      runup upgrade policy explain
      runup upgrade policy pause --reason "year end"
      runup upgrade policy explain --policy policy.yaml
      runup upgrade policy acknowledge
    """


@policy.command("explain")
@version_option("--to", shell_complete=cluster_completion.versions, help="The version; else the policy's choice.")
@option("--policy", "file", metavar="FILE", default="", shell_complete=static_completion.files, help="Try this policy.")
@option("--node-minutes", default="", metavar="A-B", help="From drained to ready, where no earlier update shows it.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def explain(ctx: click.Context, /, to: str, file: str, node_minutes: str, output: str | None) -> int:
    """Show what the policy would do in the next 14 days; nothing is written.

    \b
      runup upgrade policy explain
      runup upgrade policy explain --policy policy.yaml --to 5.2.0

    Exit codes: 0 an update may start now or later; 2 nothing will start; 1 an error.
    """
    from runup.cli.output import write
    from runup.cli.rehearse.forecast_command import parse_node_minutes
    from runup.cli.render.text import machine, out
    from runup.rollout.control import policy_files
    from runup.rollout.control.observe import read_cluster
    from runup.rollout.decide.explain import preview

    node_s = parse_node_minutes(node_minutes)
    given = policy_files.read(file) if file else None
    expressions = given.expressions if given is not None else ()
    with connection_of(ctx).client("upgrade policy explain") as client:
        inputs = read_cluster(client, node_s, with_policy=given is None, expressions=expressions)
    policies = given.policies if given is not None else inputs.policies
    if len(policies) != 1:
        raise CommandError(f"{file or 'the cluster'} must have one UpdatePolicy; it has {len(policies)}")
    calendars = given.calendars if given is not None else inputs.calendars
    shown = preview(policies[0], inputs.objects, inputs.runs, calendars, inputs.now, version=to)
    code = 0 if shown.starts else 2
    if output:
        write([out(machine(explanation_data(shown, code), output))])
    else:
        write([out(explanation_text(shown))])
    return code


@policy.command("acknowledge")
@connection_options
@click.pass_context
def acknowledge(ctx: click.Context, /) -> None:
    """Acknowledge the failed run, so that the policy may start the next one.

    \b
      runup upgrade policy acknowledge
      runup upgrade policy acknowledge --context production
    """
    from runup.cli.output import write
    from runup.cli.render.text import out
    from runup.rollout.control import policy_objects
    from runup.rollout.decide.policy import failed_run

    with connection_of(ctx).client("upgrade policy acknowledge") as client:
        run = failed_run(policy_objects.runs(client))
        if run is None:
            raise CommandError("no failed run waits for an acknowledgement")
        policy_objects.acknowledge(client, run)
    write([out(f"Acknowledged the failure of run {run.metadata.name}\n")])


@policy.command("pause")
@option("--until", metavar="TIME", default="", help="The pause ends then, such as 2027-01-04T06:00:00Z.")
@option("--reason", metavar="TEXT", required=True, help="Why; shown with the closed gate.")
@connection_options
@click.pass_context
def pause(ctx: click.Context, /, until: str, reason: str) -> None:
    """Keep every run of the policy from starting, until a time or until `resume`.

    \b
      runup upgrade policy pause --reason "year end"
      runup upgrade policy pause --reason "year end" --until 2027-01-04T06:00:00Z
    """
    from runup.rollout.decide.durations import parse_moment

    if not reason.strip():
        raise CommandError("--reason must not be empty")
    moment = parse_moment(until, "--until") if until else None
    end = timestamp(moment) if moment else None
    fields = {"paused": end is None, "pausedUntil": end, "pauseReason": reason.strip()}
    _set_pause(ctx, fields, f"Paused{f' until {end}' if end else ''}: updates that have begun continue\n", moment)


@policy.command("resume")
@connection_options
@click.pass_context
def resume(ctx: click.Context, /) -> None:
    """End a pause: runs start again once their gates are open.

    \b
      runup upgrade policy resume
      runup upgrade policy resume --context production
    """
    _set_pause(ctx, {"paused": False, "pausedUntil": None, "pauseReason": None}, "Resumed\n")


def _set_pause(ctx: click.Context, fields: dict[str, Any], text: str, end: datetime | None = None) -> None:
    from runup.cli.output import write
    from runup.cli.render.text import out
    from runup.rollout.control import policy_objects

    with connection_of(ctx).client("upgrade policy") as client:
        found = policy_objects.policy(client)
        if end is not None and end <= (now := client.now()):
            raise CommandError(f"--until {timestamp(end)} must be later than {timestamp(now)}, the server's time")
        if found is None:
            raise CommandError("the cluster has no UpdatePolicy: docs/how-to/update-policy.md has one to start from")
        policy_objects.set_pause(client, found, fields)
    write([out(text)])


def start_sentence(shown: StartPreview) -> str:
    """Returns the sentence that says when the update starts, or why nothing does."""
    if shown.stopped:
        return shown.stopped
    when = "now" if shown.explanation.open_now else "at no time in the next 14 days"
    if not shown.explanation.open_now and shown.explanation.first is not None:
        when = f"at {timestamp(shown.explanation.first)} if all other gates are open then"
    return f"The update to {shown.version} starts {when}."


def explanation_text(shown: StartPreview) -> str:
    """Returns the explanation as text."""
    explanation = shown.explanation
    lines = [start_sentence(shown)]
    if explanation.closed_now:
        lines.append("Not open now:")
        for gate in explanation.closed_now:
            lines += _gate_lines(gate)
    if explanation.openings:
        lines.append("Openings in the next 14 days:")
    for each in explanation.openings[:_MAX_OPENINGS]:
        text = f"{timestamp(each.period.start)} to {timestamp(each.period.end)}  {opening_state(each)}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if len(explanation.openings) > _MAX_OPENINGS:
        lines.append(f"  and {len(explanation.openings) - _MAX_OPENINGS} more")
    return "".join(f"{line}\n" for line in lines)


def opening_state(opening: ExplainedOpening) -> str:
    """Returns whether an update may start at an opening, from when on, or the first reason why not."""
    if opening.closed and opening.start is not None:
        return f"may start from {timestamp(opening.start)}"
    return f"closed: {opening.closed[0].message}" if opening.closed else "may start"


def _gate_lines(gate: Gate) -> list[str]:
    head = f"  {gate.name}  {gate.state.lower()}  "
    return textwrap.wrap(gate.message, _WIDTH, initial_indent=head, subsequent_indent="    ")


def explanation_data(shown: StartPreview, code: int) -> dict[str, Any]:
    """Returns the explanation as JSON data."""
    explanation = shown.explanation
    return {
        "version": shown.version,
        "stopped": shown.stopped,
        "openNow": explanation.open_now,
        "firstStart": timestamp(explanation.first) if explanation.first else None,
        "notOpenNow": [
            {"name": gate.name, "state": gate.state, "reason": gate.reason, "message": gate.message}
            for gate in explanation.closed_now
        ],
        "openings": [
            {
                "opens": timestamp(each.period.start),
                "closes": timestamp(each.period.end),
                "startsFrom": timestamp(each.start) if each.start is not None else None,
                "closedBy": [gate.reason for gate in each.closed],
            }
            for each in explanation.openings
        ],
        "exitCode": code,
    }
