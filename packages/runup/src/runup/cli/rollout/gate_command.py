"""The command `runup upgrade gate`: whether the gates of an update policy are open. Only reads."""

from __future__ import annotations

import textwrap
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.text import timestamp
from runup.cli import cluster_completion, static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.options import option, version_option

if TYPE_CHECKING:
    from runup.rollout.control.observe import ClusterInputs
    from runup.rollout.control.policy_files import PolicyFile
    from runup.rollout.decide.gates.gate import Verdict

# How often --wait evaluates the gates again.
_INTERVAL_S = 30.0
_WIDTH = 110


@click.command("gate", cls=Command)
@click.argument("run", default="")
@version_option("--to", shell_complete=cluster_completion.versions, help="The version to update to.")
@option("--policy", metavar="FILE", default="", shell_complete=static_completion.files, help="A policy and calendars.")
@option("--dump", metavar="DIR", default="", shell_complete=static_completion.folders, help="Evaluate a dump.")
@option("--node-minutes", default="", metavar="A-B", help="From drained to ready, where no earlier update shows it.")
@option("--at", metavar="TIME", default="", help="Evaluate the dump as of this time, such as 2026-12-24T22:00:00Z.")
@option("--wait", metavar="DURATION", default="", help="Wait this long for the gates to open, such as 30m.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    run: str,
    to: str,
    policy: str,
    dump: str,
    node_minutes: str,
    at: str,
    wait: str,
    output: str | None,
) -> int:
    """Evaluate the gates of an UpdateRun, or of an update policy for one release; nothing is changed.

    \b
      runup upgrade gate 5.1.0-ff4b4c                      a run, with its approvals
      runup upgrade gate 5.1.0-ff4b4c --wait 30m           until its gates are open
      runup upgrade gate --to 5.1.0                        the cluster's own policy
      runup upgrade gate --to 5.1.0 --policy policy.yaml   a policy from a file
      runup upgrade gate --to 5.1.0 --policy policy.yaml --dump must-gather
      runup upgrade gate --to 5.1.0 --wait 30m             until the gates are open

    Exit codes: 0 all gates are open; 2 a gate is closed; 3 a gate is unknown; 1 an error.
    """
    from runup.cli.output import write
    from runup.cli.rehearse.forecast_command import parse_node_minutes
    from runup.cli.render.text import err, machine, out
    from runup.cli.rollout.cluster_inputs import read_dump
    from runup.rollout.control import policy_files
    from runup.rollout.control.observe import read_cluster
    from runup.rollout.decide.durations import parse, parse_moment

    node_s = parse_node_minutes(node_minutes)
    if bool(run) == bool(to):
        raise CommandError("give either the name of an UpdateRun or --to VERSION")
    if run and (policy or dump):
        raise CommandError("--policy and --dump need --to: a run has its own copy of the policy's gates")
    if dump and (wait or not policy):
        raise CommandError("--dump needs --policy, and cannot be combined with --wait")
    if at and not dump:
        raise CommandError("--at needs --dump: a live cluster is evaluated as of now")
    patience_s = parse(wait, "--wait").total_seconds() if wait else 0.0
    policy_file = policy_files.read(policy) if policy else None
    expressions = policy_file.expressions if policy_file is not None else ()
    if dump:
        inputs = read_dump(dump, node_s, parse_moment(at) if at else None)
        verdict = _evaluate(inputs, policy_file, to)
    else:
        with connection_of(ctx).client("upgrade gate") as client:
            end = time.monotonic() + patience_s
            while True:
                inputs = read_cluster(client, node_s, with_policy=policy_file is None, expressions=expressions)
                verdict = _evaluate_run(inputs, run) if run else _evaluate(inputs, policy_file, to)
                left_s = end - time.monotonic()
                if verdict.open or verdict.final or left_s <= 0:
                    break
                time.sleep(min(left_s, _INTERVAL_S))
        to = to or next(each.spec.target.version for each in inputs.runs if each.metadata.name == run)
    text = machine(gates_data(verdict, to, inputs.now), output) if output else gates_text(verdict, to)
    write([*(err(f"warning: {note}\n") for note in inputs.notes), out(text)])
    return verdict.exit_code


def _evaluate(inputs: ClusterInputs, policy_file: PolicyFile | None, version: str) -> Verdict:
    """Returns the verdict on an update to `version`. Raises CommandError if there is no policy."""
    from runup.api.update_policy_v1alpha1 import POLICY_NAME
    from runup.rollout.decide.assemble import observe
    from runup.rollout.decide.gates.all_gates import evaluate

    policies = inputs.policies if policy_file is None else policy_file.policies
    calendars = inputs.calendars if policy_file is None else policy_file.calendars
    if len(policies) != 1:
        where = "the cluster" if policy_file is None else f"--policy {policy_file.path}"
        raise CommandError(f"{where} must have one UpdatePolicy, named {POLICY_NAME}; it has {len(policies)}")
    observed = observe(inputs.objects, policies[0].spec, calendars, inputs.now, version=version)
    return evaluate(observed, inputs.now)


def _evaluate_run(inputs: ClusterInputs, name: str) -> Verdict:
    """Returns the verdict on a run. Raises CommandError if it does not exist."""
    from runup.rollout.control.observe import observe_run
    from runup.rollout.decide.gates.all_gates import evaluate
    from runup.rollout.decide.run_steps import verdict_of_begun

    for run in inputs.runs:
        if run.metadata.name == name:
            return verdict_of_begun(run) or evaluate(observe_run(run, inputs), inputs.now)
    raise CommandError(f"UpdateRun {name} does not exist: `runup upgrade runs` lists the runs")


def gates_text(verdict: Verdict, version: str) -> str:
    """Returns the gates as a table, and whether the update to `version` may start."""
    width = max(len(gate.name) for gate in verdict.gates)
    lines = [f"Gates of the update to {version}"]
    for gate in verdict.gates:
        head = f"  {gate.name.ljust(width)}  {gate.state.lower().ljust(7)}  "
        lines += textwrap.wrap(
            gate.message, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False
        )
    closed = verdict.closed_by
    opened = "The update has begun." if verdict.final else "The update may start."
    lines.append(opened if closed is None else f"The update does not start: {closed.reason}.")
    return "".join(f"{line}\n" for line in lines)


def gates_data(verdict: Verdict, version: str, now: datetime) -> dict[str, Any]:
    """Returns the gates as JSON data."""
    until = verdict.until(now)
    return {
        "version": version,
        "evaluatedAt": timestamp(now),
        "open": verdict.open,
        "reason": verdict.reason,
        "until": timestamp(until) if until else None,
        "gates": [
            {
                "name": gate.name,
                "state": gate.state,
                "reason": gate.reason,
                "message": gate.message,
                "until": timestamp(gate.until) if gate.until else None,
                "evidence": gate.evidence,
            }
            for gate in verdict.gates
        ],
        "exitCode": verdict.exit_code,
    }
