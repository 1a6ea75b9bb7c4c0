"""Decides about the actions of the console's pages: which are offered, confirmed or forbidden. Pure.

An action does what a command does. The confirmation shows the cluster's state, and is valid only while that state
lasts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from kubekit.lang.version import without_v
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.fleet.decide.members import Member
from runup.rollout.decide.approvers import missing_approvals
from runup.rollout.decide.run_steps import FINISHED

ACCEPT = "accept"
START = "start"
# Actions on an update run.
APPROVE = "approve"
HOLD = "hold"
RESUME = "resume"
OF_RUNS = (APPROVE, HOLD, RESUME)
ACTIONS = (ACCEPT, START, *OF_RUNS)
# Characters of what a form or a link may say; the commands have limits of their own.
_MAX_NAME = 512
_MAX_TEXT = 4096


class RequestedAction(msgspec.Struct, frozen=True, kw_only=True):
    """A requested action: a `risk` to accept, with reason and last day, a `version` to update to, or an update `run`.

    The approval `gate` of a run has a reason and an end, too. An empty risk, version, run or gate asks for the choices.
    `token` is the user's; it is empty for a session without login, which has the rights of the console's own
    kubeconfig.
    """

    action: str
    member: Member
    risk: str = ""
    reason: str = ""
    until: str = ""
    version: str = ""
    run: str = ""
    gate: str = ""
    token: str = ""

    def __repr__(self) -> str:
        """Returns the requested action, without the token."""
        return f"RequestedAction({self.action!r}, {self.member.name!r}, {self.target!r})"

    @property
    def target(self) -> str:
        """The risk, the version, or the run with its gate; empty if none was named yet."""
        if self.action == APPROVE:
            return f"{self.run} {self.gate}" if self.run and self.gate else ""
        return self.run if self.action in OF_RUNS else self.risk if self.action == ACCEPT else self.version


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a ClusterVersion when it was read, with the server and the user.

    `release` is what the cluster runs or works towards, `requested` spec.desiredUpdate in words. `offered` are the
    versions that can be requested, `risks` the names that can be accepted. `grown` says what accepted risks cover that
    they did not when they were accepted.
    """

    cluster: str
    server: str
    user: str
    release: str
    requested: str = ""
    accepted: tuple[str, ...] = ()
    progress: str = ""
    offered: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an update run when it was read, with the cluster, the server and the user.

    Without a named `run`, `choices` are the runs, each with a gate if an approval was asked for, that the action may be
    about.
    """

    cluster: str
    server: str
    user: str
    run: UpdateRun | None = None
    choices: tuple[tuple[str, str], ...] = ()


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a look, or of an action (`done`): the command's own words, and the cluster's state afterwards.

    `refused` says why nothing was done, `status` is the HTTP status of the answer. `unread` says why there is no
    `truth`.
    """

    truth: ClusterState | RunState | None = None
    said: tuple[str, ...] = ()
    refused: str = ""
    status: int = 200
    done: bool = False
    unread: str = ""


def asked_of(action: str, member: Member, values: Mapping[str, object], token: str) -> RequestedAction:
    """Returns the action that a link or a form asks for; `values` are its fields."""
    has_reason = action in (ACCEPT, APPROVE)
    return RequestedAction(
        action=action,
        member=member,
        risk=_text(values.get("risk"), _MAX_NAME) if action == ACCEPT else "",
        reason=_text(values.get("reason"), _MAX_TEXT) if has_reason else "",
        until=_text(values.get("until"), _MAX_NAME) if has_reason else "",
        version=without_v(_text(values.get("to"), _MAX_NAME)) if action == START else "",
        run=_text(values.get("run"), _MAX_NAME) if action in OF_RUNS else "",
        gate=_text(values.get("gate"), _MAX_NAME) if action == APPROVE else "",
        token=token,
    )


def _text(value: object, most: int) -> str:
    return value.strip()[:most] if isinstance(value, str) else ""


def can_be_changed(member: Member, *, kept: bool) -> bool:
    """Reports whether a cluster can be changed: a dump or a stored report cannot."""
    return not (kept or member.dump or member.problem)


def seal(asked: RequestedAction, truth: ClusterState | RunState) -> str:
    """Returns a digest of what a confirmation is about: the action, the cluster and its state."""
    state: tuple[object, ...]
    if isinstance(truth, RunState):
        run = truth.run
        state = (truth.server, run.metadata.uid, images_of(run), run.status.step, run.spec.control) if run else ()
    else:
        state = (truth.server, truth.cluster, truth.release, truth.requested, truth.accepted)
    parts = (asked.action, asked.member.name, asked.risk, asked.version, asked.run, asked.gate, state)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def images_of(run: UpdateRun) -> tuple[str, ...]:
    """Returns the release images that a run updates to, in their order."""
    return tuple(each.image for each in run.status.hops) or (run.spec.target.image,)


def run_choices(action: str, runs: Sequence[UpdateRun]) -> tuple[tuple[str, str], ...]:
    """Returns the runs that an action on runs may be about, each with the gate of an approval that it lacks."""
    unfinished = [run for run in runs if run.status.step not in FINISHED]
    if action != APPROVE:
        control = "Hold" if action == RESUME else "Run"
        return tuple((run.metadata.name, "") for run in unfinished if run.spec.control == control)
    return tuple((run.metadata.name, name) for run in unfinished for name in approvals_to_give(run))


def approvals_to_give(run: UpdateRun) -> tuple[str, ...]:
    """Returns the names of the approvals that a run lacks, as its spec has them."""
    lacking = {gate.name for gate in missing_approvals(run)}
    return tuple(each.name for each in run.spec.gates.approvals if f"approval {each.name}" in lacking)


def link_to(action: str, target: str = "") -> str:
    """Returns the end of the path of an action's page, after that of its cluster."""
    field = "risk" if action == ACCEPT else "to"
    return f"{action}?{field}={quote(target, safe='')}" if target else action


def link_to_run(action: str, run: str, gate: str = "") -> str:
    """Returns the end of the path of an action on a run, after that of its cluster."""
    more = f"&gate={quote(gate, safe='')}" if gate else ""
    return f"{action}?run={quote(run, safe='')}{more}"


def not_accepted(truth: ClusterState) -> Sequence[str]:
    """Returns the names of risks that can be accepted and are not yet."""
    return tuple(name for name in truth.risks if name not in truth.accepted)
