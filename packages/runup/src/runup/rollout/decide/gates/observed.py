"""The values on which gates are evaluated: everything that a decision about a start needs besides the time."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from runup.api.update_policy_v1alpha1 import Control, PolicyGates, PolicyTarget, PoolsWhen
from runup.preflight.decide.findings import Findings
from runup.rehearse.decide.update_forecast import Forecast
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.gates.gate import Gate
from runup.updatestatus.decide.alerts import Alert, Unreadable


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The release to which the cluster is to be updated, and the release that runs."""

    version: str
    image: str
    source: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What the update service says about a release: the image that it offers, empty if the release is not offered.

    `recommended` is None if it is not known whether the update is recommended. `why_unknown` says why the service
    gave no answer. `is_named`: the cluster has no update service, so the release counts that the run names.
    """

    image: str = ""
    recommended: bool | None = None
    why_unknown: str = ""
    is_named: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The problems of the cluster, the kinds that could not be read, and since when there are neither."""

    problems: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    healthy_since: datetime | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An approval whose author admission verified."""

    gate: str
    approved_by: str
    created: datetime
    not_after: datetime | None = None
    image_digests: tuple[str, ...] = ()
    reason: str = ""


class Approvals(msgspec.Struct, frozen=True, kw_only=True):
    """All approvals of an update; `unverified` says why their authors are not known to be true."""

    given: tuple[Approval, ...] = ()
    requested_by: str = ""
    unverified: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that a run needs: its name and its end; without a name, whether all its turns are used up."""

    name: str = ""
    until: datetime | None = None
    used_up: bool = False


class Holds(msgspec.Struct, frozen=True, kw_only=True):
    """What holds starts back besides the gates about the cluster. `turn` is None if the run needs no turn."""

    paused: bool = False
    paused_until: datetime | None = None
    pause_reason: str = ""
    control: Control = "Run"
    permit_until: datetime | None = None
    no_policy: bool = False
    denied: bool = False
    older_run: str = ""
    other_request: str = ""
    clock_skew_until: datetime | None = None
    turn: Turn | None = None


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the gates of one update are evaluated on.

    `findings` is None if there is no preflight of the release. `report_image` is the image that the stored report is
    about. `ended_acceptances` are accepted names whose acceptance is over, `acceptance_ends` the ends of the others.
    `forecast`, `health` and `alerts` are texts if they could not be obtained: the reason why. `calendar_names` are
    those of the policy, `calendar_errors` says why some of them cannot be used. `own_pauses` are the pools that the run
    keeps paused, and since when; `may_pause`: whether the controller has the right to pause pools. `path_problem`: why
    the releases of a path are not known, or do not exist. `run_acceptances` are the names of risks that the run
    accepts. `withdrawn` is the version of a path that was withdrawn during the update to it. `hop_digests` are the
    digests of a path, `hop` is the place in it of the release that is next. `updater` is the gate of the object that a
    run writes, None if it writes ClusterVersion or nothing.
    """

    wanted: Wanted
    gates: PolicyGates = PolicyGates()
    target: PolicyTarget = PolicyTarget()
    offer: Offer
    findings: Findings | None = None
    report_image: str = ""
    ended_acceptances: frozenset[str] = frozenset()
    acceptance_ends: dict[str, datetime] = {}
    health: Health | str
    alerts: tuple[Alert, ...] | Unreadable
    forecast: Forecast | str
    approvals: Approvals = Approvals()
    holds: Holds = Holds()
    calendar_names: tuple[str, ...] = ()
    calendars: tuple[Calendar, ...] = ()
    calendar_errors: tuple[str, ...] = ()
    pools_when: PoolsWhen = "Together"
    own_pauses: dict[str, datetime] = {}
    run_acceptances: tuple[str, ...] = ()
    path_problem: str = ""
    path_unknown: bool = False
    withdrawn: str = ""
    hop_digests: tuple[str, ...] = ()
    hop: int = 0
    may_pause: bool = True
    why_pools_unknown: str = ""
    updater: Gate | None = None


# Times of the cluster that are further in the future than this are not believed.
CLOCK_TOLERANCE = timedelta(seconds=60)
