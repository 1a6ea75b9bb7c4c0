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
    from runup.rollout.decide.explain import Explanation
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
    from runup.rollout.decide.assemble import observe
    from runup.rollout.decide.candidate import choose
    from runup.rollout.decide.explain import explain as explain_policy
    from runup.rollout.decide.policy import failed_run

    node_s = parse_node_minutes(node_minutes)
    given = policy_files.read(file) if file else None
    expressions = given.expressions if given is not None else ()
    with connection_of(ctx).client("upgrade policy explain") as client:
        inputs = read_cluster(client, node_s, with_policy=given is None, expressions=expressions)
    policies = given.policies if given is not None else inputs.policies
    if len(policies) != 1:
        raise CommandError(f"{file or 'the cluster'} must have one UpdatePolicy; it has {len(policies)}")
    spec = policies[0].spec
    offered, plain = policies[0].status.offered, inputs.objects.plain
    choice = choose(spec.target, inputs.objects.cluster, inputs.now, offered, plain=plain)
    version = to or (choice.candidate.version if choice.candidate is not None else "")
    failed = failed_run(inputs.runs)
    stopped = f"Run {failed.metadata.name} failed and is not acknowledged." if failed is not None else ""
    if spec.remote == "Only":
        stopped = "Nothing will start by the policy itself: spec.remote is Only."
    if not version:
        stopped = f"No release is chosen: {choice.message}"
    calendars = given.calendars if given is not None else inputs.calendars
    observed = observe(inputs.objects, spec, calendars, inputs.now, version=version)
    explanation = explain_policy(observed, inputs.now)
    starts = not stopped and (explanation.open_now or explanation.first is not None)
    if not stopped and not starts and not spec.calendars:
        stopped = "Nothing will start: spec.calendars is empty. Add the name of an UpdateCalendar, or Always."
    code = 0 if starts else 2
    if output:
        write([out(machine(explanation_data(explanation, version, stopped, code), output))])
    else:
        write([out(explanation_text(explanation, version, stopped))])
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
    from runup.cli.rollout.calendar_command import parse_moment

    if not reason.strip():
        raise CommandError("--reason must not be empty")
    end = timestamp(parse_moment(until, "--until")) if until else None
    fields = {"paused": end is None, "pausedUntil": end, "pauseReason": reason.strip()}
    _set_pause(ctx, fields, f"Paused{f' until {end}' if end else ''}: updates that have begun continue\n")


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


def _set_pause(ctx: click.Context, fields: dict[str, Any], text: str) -> None:
    from runup.cli.output import write
    from runup.cli.render.text import out
    from runup.rollout.control import policy_objects

    with connection_of(ctx).client("upgrade policy") as client:
        found = policy_objects.policy(client)
        if found is None:
            raise CommandError("the cluster has no UpdatePolicy: docs/how-to/update-policy.md has one to start from")
        policy_objects.set_pause(client, found, fields)
    write([out(text)])


def explanation_text(explanation: Explanation, version: str, stopped: str) -> str:
    """Returns the explanation as text."""
    lines = [stopped] if stopped else []
    if version and not stopped:
        when = "now" if explanation.open_now else "at no time in the next 14 days"
        if not explanation.open_now and explanation.first is not None:
            when = f"at {timestamp(explanation.first)} if all other gates are open then"
        lines.append(f"The update to {version} starts {when}.")
    if explanation.closed_now:
        lines.append("Not open now:")
        for gate in explanation.closed_now:
            lines += _gate_lines(gate)
    if explanation.openings:
        lines.append("Openings in the next 14 days:")
    for each in explanation.openings[:_MAX_OPENINGS]:
        state = f"closed: {each.closed[0].message}" if each.closed else "may start"
        text = f"{timestamp(each.period.start)} to {timestamp(each.period.end)}  {state}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if len(explanation.openings) > _MAX_OPENINGS:
        lines.append(f"  and {len(explanation.openings) - _MAX_OPENINGS} more")
    return "".join(f"{line}\n" for line in lines)


def _gate_lines(gate: Gate) -> list[str]:
    head = f"  {gate.name}  {gate.state.lower()}  "
    return textwrap.wrap(gate.message, _WIDTH, initial_indent=head, subsequent_indent="    ")


def explanation_data(explanation: Explanation, version: str, stopped: str, code: int) -> dict[str, Any]:
    """Returns the explanation as JSON data."""
    return {
        "version": version,
        "stopped": stopped,
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
                "closedBy": [gate.reason for gate in each.closed],
            }
            for each in explanation.openings
        ],
        "exitCode": code,
    }
