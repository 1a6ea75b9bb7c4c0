"""Carries out the console's actions on update runs, by the functions of the commands: approves, holds and resumes."""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.error_types import InputError
from kubekit.kube.client_sync import SyncClient
from runup.advice.control.acceptance_records import user_name
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.console.decide.asked_actions import APPROVE, HOLD, RequestedAction, RunState, run_choices
from runup.process.messages import Output
from runup.rollout.control import policy_objects, run_changes
from runup.rollout.decide.run_controls import refuse_control


def read_state(asked: RequestedAction, client: SyncClient) -> RunState:
    """Returns the run that is asked for, or the runs to choose from. Raises InputError, KubeError and DecodeError."""
    run = policy_objects.run(client, asked.run) if asked.target else None
    choices = () if run is not None else run_choices(asked.action, policy_objects.runs(client))
    server, user = client.config.address, user_name(client)
    return RunState(cluster=asked.member.name, server=server, user=user, run=run, choices=choices)


def check(asked: RequestedAction, truth: RunState, client: SyncClient) -> Sequence[Output]:
    """Returns the warnings of the command; changes nothing. Raises InputError where the command does, or KubeError."""
    run = _run_of(asked, truth)
    if asked.action == APPROVE:
        return run_changes.plan_approval(client, run_changes.approval_of(client, run), gate=asked.gate)[1]
    refuse_control(run, "Hold" if asked.action == HOLD else "Run")
    return ()


def carry_out(asked: RequestedAction, truth: RunState, client: SyncClient) -> Sequence[Output]:
    """Carries out the action on the run as it was confirmed; returns the messages. Raises InputError or KubeError."""
    run = _run_of(asked, truth)
    if asked.action == APPROVE:
        return run_changes.approve(client, run, asked.gate, reason=asked.reason, until=asked.until)
    return (run_changes.set_control(client, run, "Hold" if asked.action == HOLD else "Run"),)


def _run_of(asked: RequestedAction, truth: RunState) -> UpdateRun:
    if truth.run is None:
        raise InputError(f"{asked.action}: name a run; the page without one lists them")
    return truth.run
