"""The commands `runup upgrade policy show`, `set`, `explain`, `pause`, `resume` and `acknowledge`."""

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
    from collections.abc import Sequence
    from datetime import datetime

    from runup.api.update_policy_v1alpha1 import UpdatePolicy, UpdatePolicySpec
    from runup.rollout.decide.explain import ExplainedOpening, StartPreview
    from runup.rollout.decide.gates.gate import Gate

_WIDTH = 110
_MAX_OPENINGS = 20


@click.group("policy", cls=Group)
def policy() -> None:
    """Show, set or explain the update policy of a cluster, pause it, or let it continue after a failure.

    \b
      runup upgrade policy set policy.yaml
      runup upgrade policy explain
      runup upgrade policy pause --reason "year end"
      runup upgrade policy explain --policy policy.yaml
      runup upgrade policy acknowledge
    """


@policy.command("show")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def show(ctx: click.Context, /, output: str | None) -> None:
    """Show the settings of the policy, and its state as the controller reports it.

    \b
      runup upgrade policy show
      runup upgrade policy show -o yaml
    """
    from kubekit.api import codec
    from runup.cli.output import write
    from runup.cli.render.text import machine, out
    from runup.rollout.control import policy_objects
    from runup.rollout.decide.persons_runs import NO_POLICY

    with connection_of(ctx).client("upgrade policy show") as client:
        found = policy_objects.policy(client)
    if found is None:
        raise CommandError(NO_POLICY)
    if output:
        data = {"spec": codec.to_dict(found.spec), "status": codec.to_dict(found.status)}
        write([out(machine(data, output))])
    else:
        write([out(policy_text(found))])


@policy.command("set")
@click.argument("file", shell_complete=static_completion.files)
@connection_options
@click.pass_context
def set_policy(ctx: click.Context, /, file: str) -> None:
    """Store the policy and the calendars of a file, once the server has accepted all of them in a dry run.

    \b
      runup upgrade policy set policy.yaml
      runup upgrade policy set policy.yaml --context production

    A field that another author manages is refused, never overwritten.
    """
    from runup.cli.output import write
    from runup.cli.render.text import out
    from runup.rollout.control import policy_files, policy_objects
    from runup.rollout.decide.assemble import read_calendars

    given = policy_files.read(file)
    if len(given.policies) != 1:
        raise CommandError(f"{file} must have one UpdatePolicy; it has {len(given.policies)}")
    [wanted] = given.policies
    with connection_of(ctx).client("upgrade policy set") as client:
        # Those of the file replace those of the cluster.
        _, errors = read_calendars(wanted.spec.calendars, (*policy_objects.calendars(client), *given.calendars))
        if errors:
            raise CommandError(f"{file}: {'; '.join(errors)}")
        policy_objects.store(client, wanted, given.calendars)
    names = [f"UpdateCalendar {each.metadata.name}" for each in given.calendars]
    stored = ", ".join([f"UpdatePolicy {wanted.metadata.name}", *names])
    write([out(f"Stored {stored}: `runup upgrade policy explain` shows what the policy would start\n")])


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
    shown = preview(policies[0], inputs.objects, inputs.runs, calendars, now=inputs.now, version=to)
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
    from runup.rollout.decide.persons_runs import NO_POLICY

    with connection_of(ctx).client("upgrade policy") as client:
        found = policy_objects.policy(client)
        if end is not None and end <= (now := client.now()):
            raise CommandError(f"--until {timestamp(end)} must be later than {timestamp(now)}, the server's time")
        if found is None:
            raise CommandError(NO_POLICY)
        policy_objects.set_pause(client, found, fields)
    write([out(text)])


def settings(spec: UpdatePolicySpec) -> Sequence[tuple[str, str]]:
    """Returns the settings of a policy that show when it starts what; addresses of notifications are left out."""
    target, gates = spec.target, spec.gates
    behind = f"{target.behind} behind" if target.behind else ""
    approvals = ", ".join(f"{each.name} ({each.count})" for each in gates.approvals)
    pairs = (
        ("Follows", " ".join(filter(None, (target.follow, target.version, behind)))),
        ("Minimum age", "" if target.min_age == "0s" else target.min_age),
        ("Blocked versions", ", ".join(target.block_versions)),
        ("Calendars", ", ".join(spec.calendars) or "none: nothing starts"),
        ("Preflight", f"at most {gates.preflight.max_age} old, closed from {gates.preflight.fail_on}"),
        ("Forecast", gates.forecast),
        ("Alerts", ", ".join(gates.alerts.severities) or "none"),
        ("Approvals", approvals or "none"),
        ("Worker pools", spec.pools.when),
        ("Soak", spec.soak),
        ("Actuator", spec.actuator),
        ("Runs of a hub", spec.remote),
        ("Paused", "until it is resumed" if spec.paused else ""),
        ("Paused until", timestamp(spec.paused_until) if spec.paused_until else ""),
        ("Pause", spec.pause_reason),
    )
    return [pair for pair in pairs if pair[1]]


def policy_text(policy: UpdatePolicy) -> str:
    """Returns the settings and the state of a policy as text."""
    status = policy.status
    rows = [
        *settings(policy.spec),
        ("Candidate", status.candidate.version if status.candidate else ""),
        ("Run", status.active_run),
        ("Next opening", timestamp(status.next_opening) if status.next_opening else ""),
    ]
    lines = [f"{name.ljust(18)}{value}" for name, value in rows if value]
    if not status.conditions:
        lines.append("The controller has not reported any condition: is it running?")
    for each in status.conditions:
        text = f"{each.type.ljust(18)}{each.status} {each.reason}{': ' if each.message else ''}{each.message}"
        lines += textwrap.wrap(text, _WIDTH, subsequent_indent=" " * 18)
    return "".join(f"{line}\n" for line in lines)


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
