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
from runup.fleet.decide.members import Member

ACCEPT = "accept"
START = "start"
ACTIONS = (ACCEPT, START)
# Characters of what a form or a link may say; the commands have limits of their own.
_MAX_NAME = 512
_MAX_TEXT = 4096


class RequestedAction(msgspec.Struct, frozen=True, kw_only=True):
    """A requested action: a `risk` to accept, with reason and last day, or a `version` to update to.

    An empty risk or version asks for the choices. `token` is the user's; it is empty for a session without login, which
    has the rights of the console's own kubeconfig.
    """

    action: str
    member: Member
    risk: str = ""
    reason: str = ""
    until: str = ""
    version: str = ""
    token: str = ""

    def __repr__(self) -> str:
        """Returns the requested action, without the token."""
        return f"RequestedAction({self.action!r}, {self.member.name!r}, {self.target!r})"

    @property
    def target(self) -> str:
        """The risk or the version, empty if none was named yet."""
        return self.risk if self.action == ACCEPT else self.version


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


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a look, or of an action (`done`): the command's own words, and the cluster's state afterwards.

    `refused` says why nothing was done, `status` is the HTTP status of the answer. `unread` says why there is no
    `truth`.
    """

    truth: ClusterState | None = None
    said: tuple[str, ...] = ()
    refused: str = ""
    status: int = 200
    done: bool = False
    unread: str = ""


def asked_of(action: str, member: Member, values: Mapping[str, object], token: str) -> RequestedAction:
    """Returns the action that a link or a form asks for; `values` are its fields."""
    return RequestedAction(
        action=action,
        member=member,
        risk=_text(values.get("risk"), _MAX_NAME) if action == ACCEPT else "",
        reason=_text(values.get("reason"), _MAX_TEXT) if action == ACCEPT else "",
        until=_text(values.get("until"), _MAX_NAME) if action == ACCEPT else "",
        version=without_v(_text(values.get("to"), _MAX_NAME)) if action == START else "",
        token=token,
    )


def _text(value: object, most: int) -> str:
    return value.strip()[:most] if isinstance(value, str) else ""


def can_be_changed(member: Member, *, kept: bool) -> bool:
    """Reports whether a cluster can be changed: a dump or a stored report cannot."""
    return not (kept or member.dump or member.problem)


def seal(asked: RequestedAction, truth: ClusterState) -> str:
    """Returns a digest of what a confirmation is about: the action, the cluster and its state."""
    state = (truth.server, truth.cluster, truth.release, truth.requested, truth.accepted)
    parts = (asked.action, asked.member.name, asked.risk, asked.version, state)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def link_to(action: str, target: str = "") -> str:
    """Returns the end of the path of an action's page, after that of its cluster."""
    field = "risk" if action == ACCEPT else "to"
    return f"{action}?{field}={quote(target, safe='')}" if target else action


def not_accepted(truth: ClusterState) -> Sequence[str]:
    """Returns the names of risks that can be accepted and are not yet."""
    return tuple(name for name in truth.risks if name not in truth.accepted)
