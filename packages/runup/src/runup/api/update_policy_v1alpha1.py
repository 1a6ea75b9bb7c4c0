"""`update.runup.dev/v1alpha1`: UpdateCalendar, UpdatePolicy, UpdateRun and UpdateTurn: when an update may start.

Durations and times without an offset are text here, as in the API; `runup.rollout.decide` parses them. A field that
this version does not know is an error, because it may be a gate.
"""

from datetime import datetime
from typing import Literal

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire

GROUP = "update.runup.dev"
API_VERSION = f"{GROUP}/v1alpha1"
POLICY_NAME = "cluster"
# Lets an update that has begun end before its deleted run is removed.
FINALIZER = f"{GROUP}/run"
# The annotation of a MachineConfigPool that a run pauses; its value is the UID of the run.
PAUSED_BY = f"{GROUP}/paused-by"
# The name in `spec.calendars` that means no restriction.
ALWAYS = "Always"

Severity = Literal["info", "warning", "critical"]
Follow = Literal["Patch", "Minor", "Exact"]
Actuator = Literal["None", "ClusterVersion", "Field", "RemoveAnnotation", "Extension"]
Control = Literal["Run", "Hold", "Abort", "Skip"]
Remote = Literal["Within", "Only", "Deny"]
EventKind = Literal[
    "planned", "waiting", "approval.needed", "started", "hop.completed", "done", "failed", "withdrawn", "held"
]
ApprovalPoint = Literal["start", "pools", "hop"]
PoolsWhen = Literal["Together", "NextWindow", "Manual"]
Step = Literal[
    "Waiting",
    "Preparing",
    "Committing",
    "ControlPlane",
    "BetweenHops",
    "Pools",
    "Soaking",
    "Done",
    "Failed",
    "Superseded",
    "Aborted",
]
WAITING: Step = "Waiting"


class CalendarWindow(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window that opens at the times of a cron expression and stays open for an elapsed time."""

    opens: str
    for_: str = msgspec.field(name="for")
    min_remaining: str = "0s"


class CalendarFreeze(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A period without starts, `[from, to)`, in dates or times of the calendar's zone."""

    from_: str = msgspec.field(name="from")
    to: str
    reason: str = ""


class UpdateCalendarSpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of an UpdateCalendar; `time_zone` is an IANA name and has no default."""

    time_zone: str
    windows: tuple[CalendarWindow, ...]
    freezes: tuple[CalendarFreeze, ...] = ()


class UpdateCalendar(Object, frozen=True, kw_only=True):
    """The windows in which updates may start, and the freezes in which they may not."""

    spec: UpdateCalendarSpec


class PolicyTarget(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The releases that a policy may update to.

    `behind`: for Minor, how many minor versions the cluster stays behind the newest one. `min_age`: how long a release
    must have been offered here. `max_hops`: for Exact, through how many releases the cluster may update at most.
    """

    follow: Follow = "Patch"
    behind: int = 0
    version: str = ""
    image: str = ""
    min_age: str = "0s"
    max_hops: int = 1
    block_versions: tuple[str, ...] = ()


class AcceptedGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which acceptances count for a release: those made since the cluster knows it, or its minor version, or all."""

    inherit: Literal["Target", "Minor", "Name"] = "Target"


class PreflightGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maximum age of a preflight, and the severity that closes the gate. Unknown results always close it."""

    max_age: str = "1h"
    fail_on: Severity = "warning"
    accepted: AcceptedGate = AcceptedGate()


class ExpressionRead(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of objects that an expression sees as variable `name`, with these fields; as in a PreflightCheck."""

    name: str
    fields: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""


class HealthExpression(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CEL expression that is true while the cluster is healthy: once, or for each object of the list `for_`.

    `optional`: a cluster without such a kind, or without such objects, is healthy.
    """

    name: str
    reads: tuple[ExpressionRead, ...]
    for_: str = msgspec.field(default="", name="for")
    expression: str
    message: str = ""
    optional: bool = False


class HealthGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time for which the cluster must have been healthy before a start, and further conditions of its health."""

    settle: str = "10m"
    expressions: tuple[HealthExpression, ...] = ()


class AlertGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The alerts that close the gate once they have fired for `for_`."""

    severities: tuple[str, ...] = ("critical",)
    except_: tuple[str, ...] = msgspec.field(default=(), name="except")
    for_: str = msgspec.field(default="5m", name="for")


class ApprovalGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An approval by name: how many people must give it, for how long it counts, and whether the requester may.

    `scope`: an approval is for all releases of a path, or for one of them. `before`: what waits for it: every start of
    a release, the start of a later release of a path, or the resumption of pools.
    """

    name: str
    before: tuple[ApprovalPoint, ...] = ("start",)
    count: int = 1
    expires: str = "7d"
    four_eyes: bool = True
    scope: Literal["Run", "Hop"] = "Run"


class PolicyGates(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The gates of a policy."""

    preflight: PreflightGate = PreflightGate()
    forecast: Literal["Fits", "NotTooLong", "Ignore"] = "Fits"
    health: HealthGate = HealthGate()
    alerts: AlertGate = AlertGate()
    approvals: tuple[ApprovalGate, ...] = ()


class PolicyPools(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When worker pools are updated: with the control plane, one by one in later windows, or when people resume them.

    `names` are resumed first, in this order. `deadline` is the time from a pool's resumption to its end. `max_paused`:
    how long a pool should stay paused at most.
    """

    when: PoolsWhen = "Together"
    names: tuple[str, ...] = ()
    deadline: str = "24h"
    max_paused: str = "14d"


class Notification(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An address that gets CloudEvents about runs: the Secret with the key of their signatures, and their kinds."""

    url: str
    secret_name: str = ""
    events: tuple[EventKind, ...] = ()


class ObjectField(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The field into which actuator Field writes the version; `path` is such as `.spec.version`."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    path: str


class ClusterReference(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Cluster of Cluster API from which actuator RemoveAnnotation removes the annotation."""

    name: str
    namespace: str


class UpdatePolicySpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of UpdatePolicy. Without calendars no update starts.

    `remote`: whether runs that others create may start, and whether the policy creates runs. `keep_runs`: how many of
    its finished runs are kept.
    """

    paused: bool = False
    paused_until: datetime | None = None
    pause_reason: str = ""
    target: PolicyTarget = PolicyTarget()
    gates: PolicyGates = PolicyGates()
    calendars: tuple[str, ...] = ()
    soak: str = "1h"
    deadline: str = "4h"
    pools: PolicyPools = PolicyPools()
    actuator: Actuator = "None"
    field: ObjectField | None = None
    cluster: ClusterReference | None = None
    remote: Remote = "Within"
    keep_runs: int = 10
    notify: tuple[Notification, ...] = ()


class Candidate(Wire, frozen=True, kw_only=True):
    """The release that a policy chose."""

    version: str
    image: str


class OfferedRelease(Wire, frozen=True, kw_only=True):
    """A release that the policy follows, and since when it has been offered here."""

    version: str
    image: str
    first_seen: datetime


class UpdatePolicyStatus(Wire, frozen=True, kw_only=True):
    """`status` of UpdatePolicy."""

    offered: tuple[OfferedRelease, ...] = ()
    candidate: Candidate | None = None
    active_run: str = ""
    next_opening: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class UpdatePolicy(Object, frozen=True, kw_only=True):
    """The singleton `cluster`: which updates may start without a person, and behind which gates."""

    spec: UpdatePolicySpec = UpdatePolicySpec()
    status: UpdatePolicyStatus = UpdatePolicyStatus()


class RunAcceptance(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A risk that a run accepts: why, by whom, until when, and for which versions; without versions for all."""

    name: str
    reason: str
    by: str = ""
    until: datetime | None = None
    versions: tuple[str, ...] = ()


class UpdateRunSpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of UpdateRun; only `control`, `permit_until` and `round` may change. Admission verifies `requested_by`.

    `needs_turn`: nothing starts without an UpdateTurn for this run. `round`: the round of turns of the hub. The
    run neither pauses `skip_pools` nor waits for them. `retry_of` is the failed run that this one tries again.
    """

    target: Candidate
    requested_by: str = ""
    control: Control = "Run"
    permit_until: datetime | None = None
    max_hops: int = 1
    needs_turn: bool = False
    round: int = 1
    block_versions: tuple[str, ...] = ()
    gates: PolicyGates = PolicyGates()
    calendars: tuple[str, ...] = ()
    soak: str = "1h"
    deadline: str = "4h"
    pools: PolicyPools = PolicyPools()
    skip_pools: tuple[str, ...] = ()
    retry_of: str = ""
    accept_risks: tuple[RunAcceptance, ...] = ()
    actuator: Actuator = "None"
    field: ObjectField | None = None
    cluster: ClusterReference | None = None


class RunGate(Wire, frozen=True, kw_only=True):
    """A gate as it was evaluated last."""

    name: str
    state: Literal["Open", "Closed", "Unknown"]
    reason: str
    message: str = ""
    until: datetime | None = None
    evidence: dict[str, str] = {}


class RunIntent(Wire, frozen=True, kw_only=True):
    """The write that is about to be sent: the version of ClusterVersion whose gates were open, and the sender."""

    image: str
    cluster_version_resource_version: str
    leader: str
    decided_at: datetime


class RunHop(Wire, frozen=True, kw_only=True):
    """A release that the run updates to on its way, and when that began and was complete."""

    version: str
    image: str
    started: datetime | None = None
    completed: datetime | None = None


class PausedPool(Wire, frozen=True, kw_only=True):
    """A MachineConfigPool that the run pauses: since when, when it was resumed, and when it was updated.

    `resource_version` is the version of the pool on which the pause is written.
    """

    name: str
    since: datetime
    resource_version: str
    resumed: datetime | None = None
    updated: datetime | None = None


class RunDecision(Wire, frozen=True, kw_only=True):
    """A step of a run, its reason, and the evidence of the gates at that time."""

    at: datetime
    step: str
    reason: str
    message: str = ""
    evidence: dict[str, str] = {}


class UpdateRunStatus(Wire, frozen=True, kw_only=True):
    """`status` of UpdateRun. `gated` is false if the update started while a gate was not open.

    `hop` is the place in `hops` of the one that is next or in progress; `hops` is empty for a run without a path.

    `closed_since`: since when a gate has not been open while pools are paused for the start.
    `used_up_turns` are the UIDs of turns with which the run never starts, because it did not start in time.
    """

    # By a factory, since a default is left out of what is written, and `kubectl get updateruns` has a column of it.
    step: Step = msgspec.field(default_factory=lambda: WAITING)
    from_: str = msgspec.field(default="", name="from")
    hop: int = 0
    hops: tuple[RunHop, ...] = ()
    gates: tuple[RunGate, ...] = ()
    intent: RunIntent | None = None
    paused_pools: tuple[PausedPool, ...] = ()
    closed_since: datetime | None = None
    gated: bool = False
    started: datetime | None = None
    completed: datetime | None = None
    healthy_since: datetime | None = None
    unhealthy_since: datetime | None = None
    used_up_turns: tuple[str, ...] = ()
    decisions: tuple[RunDecision, ...] = ()
    conditions: tuple[Condition, ...] = ()


class UpdateRun(Object, frozen=True, kw_only=True):
    """One attempt to update the cluster to one release."""

    spec: UpdateRunSpec
    status: UpdateRunStatus = UpdateRunStatus()


class UpdateTurnSpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of UpdateTurn; immutable. `place_for`: how long after its creation the turn may be used for a start."""

    run: str
    round: int = 1
    place_for: str = "12h"


class UpdateTurnStatus(Wire, frozen=True, kw_only=True):
    """`status` of UpdateTurn: Done and Failed, from the run, each with the observed generation."""

    conditions: tuple[Condition, ...] = ()


class UpdateTurn(Object, frozen=True, kw_only=True):
    """The turn of this cluster in the rollout of a hub."""

    spec: UpdateTurnSpec
    status: UpdateTurnStatus = UpdateTurnStatus()


class FleetUpdateRef(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage of a FleetUpdate."""

    namespace: str
    name: str
    stage: str


class UpdateApprovalSpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of UpdateApproval, of a run or of a stage; immutable. Admission verifies `approved_by`."""

    run: str = ""
    fleet_update: FleetUpdateRef | None = None
    gate: str
    approved_by: str
    image_digests: tuple[str, ...]
    reason: str = ""
    not_after: datetime | None = None


class UpdateApproval(Object, frozen=True, kw_only=True):
    """A person's approval of one named gate of a run or a stage, for the images with these digests."""

    spec: UpdateApprovalSpec
