"""The commands `runup upgrade runs`, which only reads, and `runup upgrade run start|retry|hold|resume|abort|skip`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import timestamp
from runup.cli import cluster_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command, Group
from runup.cli.options import option, typed_version

if TYPE_CHECKING:
    from runup.api.update_policy_v1alpha1 import Control, UpdateRun
    from runup.rollout.decide.approvers import Approvers

_WIDTH = 110
_NOT_INSTALLED = "There are no update runs: the component update-policy, which creates them, is not installed"


@click.command("runs", cls=Command)
@click.argument("run", default="")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def runs(ctx: click.Context, /, run: str, output: str | None) -> None:
    """Show the update runs of the cluster, the newest first, with the gates that keep them from starting.

    \b
      runup upgrade runs
      runup upgrade runs 5.1.0-ff4b4c             one run, with its decisions
      runup upgrade runs 5.1.0-ff4b4c -o json     the record of the run

    Gates are those that the controller evaluated last; `runup upgrade gate RUN` evaluates them now.
    """
    from runup.cli.output import write
    from runup.cli.render.text import machine, out
    from runup.rollout.control import policy_objects
    from runup.rollout.control.policy_reading import approvers_of_runs

    with connection_of(ctx).client("upgrade runs") as client:
        found = (policy_objects.run(client, run),) if run else policy_objects.runs(client)[::-1]
        approvers = approvers_of_runs(client, found)
        none = "There are no update runs" if found or policy_objects.serves_runs(client) else _NOT_INSTALLED
    named = [(each, approvers.get(each.metadata.name)) for each in found]
    if output:
        write([out(machine({"runs": [run_data(each, who) for each, who in named]}, output))])
    else:
        texts = [run_text(each, who, decisions=bool(run)) for each, who in named]
        write([out("".join(texts) or f"{none}.\n")])


@click.group("run", cls=Group)
def control_run() -> None:
    """Start, retry, hold, resume, abort or skip an update run.

    \b
      runup upgrade run start 5.1.0
      runup upgrade run hold 5.1.0-ff4b4c
      runup upgrade run resume 5.1.0-ff4b4c
    """


@control_run.command("start")
@click.argument("version", callback=typed_version, shell_complete=cluster_completion.versions)
@connection_options
@click.pass_context
def start(ctx: click.Context, /, version: str) -> None:
    """Create a run to an offered release, in your own name; it starts behind the gates of the policy.

    \b
      runup upgrade run start 5.1.0
      runup upgrade run start 5.1.0 --context production
    """
    from runup.cli.output import write
    from runup.rollout.control import run_changes

    with connection_of(ctx).client("upgrade run start") as client:
        said = run_changes.start_run(client, version)
    write([said])


@control_run.command("retry")
@click.argument("run")
@option("--skip-pool", "pools", multiple=True, metavar="NAME", help="Neither pause this pool nor wait for it.")
@connection_options
@click.pass_context
def retry(ctx: click.Context, /, run: str, pools: tuple[str, ...]) -> None:
    """Create another run to the image of a failed run; all gates are evaluated from the beginning.

    \b
      runup upgrade run retry 5.1.0-ff4b4c
      runup upgrade run retry 5.1.0-ff4b4c --skip-pool infra
    """
    from runup.cli.output import write
    from runup.rollout.control import run_changes

    with connection_of(ctx).client("upgrade run retry") as client:
        said = run_changes.retry_run(client, run, pools)
    write([said])


# The value of `spec.control` that each command sets, and its help text.
_CONTROLS: dict[str, tuple[Control, str]] = {
    "hold": ("Hold", "Start no further step of a run until `resume`; a step that has begun continues."),
    "resume": ("Run", "Let a run that is held start its next step once its gates are open."),
    "abort": ("Abort", "End a run; an update that has begun is completed first, and nothing is rolled back."),
    "skip": ("Skip", "End a run that has not begun, as done: the policy does not try this release again."),
}


def _add_control(word: str) -> None:
    control, text = _CONTROLS[word]
    typed = f"runup upgrade run {word} 5.1.0-ff4b4c"

    @control_run.command(word, help=f"{text}\n\n\b\n  {typed}\n  {typed} --context production")
    @click.argument("run")
    @connection_options
    @click.pass_context
    def command(ctx: click.Context, /, run: str) -> None:
        _set_control(ctx, run, control)


for _word in _CONTROLS:
    _add_control(_word)


def _set_control(ctx: click.Context, name: str, control: Control) -> None:
    from runup.cli.output import write
    from runup.rollout.control import policy_objects, run_changes

    with connection_of(ctx).client("upgrade run") as client:
        said = run_changes.set_control(client, policy_objects.run(client, name), control)
    write([said])


def run_text(run: UpdateRun, approvers: Approvers | None = None, *, decisions: bool) -> str:
    """Returns a run as text: its step, its control, the gates that are not open, and who may give approvals."""
    status, from_ = run.status, f"from {run.status.from_} " if run.status.from_ else ""
    hop = f", hop {status.hop + 1} of {len(status.hops)}" if status.hops else ""
    held = "" if run.spec.control == "Run" else f", control {run.spec.control}"
    lines = [f"{run.metadata.name}  {from_}to {run.spec.target.version}  {status.step}{hop}{held}"]
    for text, time in (("started", status.started), ("completed", status.completed)):
        lines += [f"  {text} {timestamp(time)}"] if time else []
    closed = [gate for gate in status.gates if gate.state != "Open"]
    width = max((len(gate.name) for gate in closed), default=0)
    for gate in closed:
        head = f"  {gate.name.ljust(width)}  {gate.state.lower().ljust(7)}  "
        lines += textwrap.wrap(gate.message or gate.reason, _WIDTH, initial_indent=head, subsequent_indent=" " * 6)
    if approvers is not None:
        text = approvers_text(approvers)
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent=" " * 6)
    for each in status.decisions if decisions else ():
        text = f"{timestamp(each.at)}  {each.step}  {each.reason}{': ' if each.message else ''}{each.message}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent=" " * 6)
    return "".join(f"{line}\n" for line in lines)


def approvers_text(approvers: Approvers) -> str:
    """Returns who may give the approvals that a run lacks, as a sentence."""
    if isinstance(approvers, str):
        return f"Could not determine who may approve: {approvers}"
    if not approvers:
        return "By RBAC nobody may approve: an administrator binds the ClusterRole runup-update-approver."
    return f"May approve: {', '.join(approvers)}."


def run_data(run: UpdateRun, approvers: Approvers | None = None) -> dict[str, Any]:
    """Returns the record of a run as JSON data."""
    from kubekit.api import codec

    data: dict[str, Any] = {"name": run.metadata.name, "uid": run.metadata.uid}
    if approvers is not None:
        # Null where it is unknown who may approve.
        data["approvers"] = None if isinstance(approvers, str) else list(approvers)
    return {**data, "spec": codec.to_dict(run.spec), "status": codec.to_dict(run.status)}
