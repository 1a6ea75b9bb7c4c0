"""`update.runup.dev/v1alpha1`: FleetUpdate, which updates the clusters of a fleet stage by stage.

Durations, percentages and times without an offset are text here, as in the API; `runup.rollout.decide` parses them. A
field that this version does not know is an error, because it may be a gate.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from kubekit.api.meta_v1 import Condition, LabelSelector, LabelSelectorRequirement, Object, Wire
from runup.api.update_policy_v1alpha1 import Actuator, Control, PolicyGates

Ready = Literal["Claim", "None"]
GateType = Literal["Approval", "Soak", "Calendar", "NotBefore"]
StagePhase = Literal["Pending", "Checking", "Running", "Over"]
TroubleKind = Literal["Failed", "Unknown", "LateCluster", "OutOfRounds", "Ungated"]


class FleetTarget(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The release to which the fleet is updated; the image has a digest."""

    version: str
    image: str


class PlacementRef(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Placement in the namespace of the FleetUpdate."""

    name: str


class StageGate(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition before or after a stage.

    Approval: `name`, `count` and `expires`. Soak: `for_`. Calendar: the `name` of an UpdateCalendar. NotBefore: `at`.
    """

    type: GateType
    name: str = ""
    count: int = 1
    expires: str = "7d"
    for_: str = msgspec.field(default="", name="for")
    at: datetime | None = None


class StageRequirement(LabelSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """A requirement of a stage's selector."""


class StageSelector(LabelSelector, frozen=True, forbid_unknown_fields=True):
    """The labels of a stage's clusters: a field that is not known could select every cluster."""

    match_expressions: tuple[StageRequirement, ...] = ()


class Stage(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage of a fleet update.

    `placement_ref` chooses its clusters on a hub, `selector` without one. `rollout` is the RolloutStrategy of Open
    Cluster Management, verbatim. `min_done`: the part of the clusters that must be done before the next stage.
    `ready`: Claim gives a turn to clusters whose gates are open, None to all. `place_for`: how long a cluster may keep
    its turn before its update starts. `rounds`: how often a cluster may get a turn. `retries`: how often the stage was
    opened again for clusters that joined late or used up their rounds; each adds a round.
    """

    name: str
    placement_ref: PlacementRef | None = None
    selector: StageSelector | None = None
    rollout: dict[str, Any] = {}
    before: tuple[StageGate, ...] = ()
    after: tuple[StageGate, ...] = ()
    min_done: int | str = "100%"
    ready: Ready = "Claim"
    place_for: str = "12h"
    rounds: int = 3
    retries: int = 0

    @property
    def last_round(self) -> int:
        """The number of the last round of turns, counted from 1."""
        return self.rounds + self.retries


class Mutex(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clusters with the same value of this label are updated one at a time."""

    label: str


class FleetPolicy(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values that the runs of the clusters have besides those of the clusters' own policies."""

    gates: PolicyGates = PolicyGates()
    calendars: tuple[str, ...] = ()
    block_versions: tuple[str, ...] = ()
    soak: str = "1h"
    deadline: str = "4h"
    actuator: Actuator = "ClusterVersion"


class FleetUpdateSpec(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`spec` of FleetUpdate.

    `max_failures`: an absolute number or a percentage of all clusters. `permit_for`: how long starts are permitted
    without contact with the hub.
    """

    target: FleetTarget
    stages: tuple[Stage, ...]
    max_failures: int | str = 0
    policy: FleetPolicy = FleetPolicy()
    permit_for: str = "1h"
    mutexes: tuple[Mutex, ...] = ()
    control: Control = "Run"


class ReasonCount(Wire, frozen=True, kw_only=True):
    """How many clusters have one reason."""

    reason: str
    total: int


class ClosedGate(Wire, frozen=True, kw_only=True):
    """The gate for which a fleet update waits; `stage` is the stage that lists it in `before` or `after`."""

    stage: str
    type: GateType
    name: str = ""
    message: str = ""


class StageStatus(Wire, frozen=True, kw_only=True):
    """The clusters of a stage by state, its round, and why its next turns are not handed out.

    `done_at` is the time at which enough clusters were done, `round_closed` the time from which on no cluster gets a
    turn of this round. Nothing starts in its clusters later than `permit_until`. `retries` is how often it was opened
    again. `turns` is how many clusters have a
    turn of this round that is not over. `waiting_for` has the most frequent reasons of the clusters that wait.
    """

    name: str
    phase: StagePhase = "Pending"
    permit_until: datetime | None = None
    done_at: datetime | None = None
    round: int = 0
    round_closed: datetime | None = None
    retries: int = 0
    clusters: int = 0
    waiting: int = 0
    ready: int = 0
    running: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0
    unknown: int = 0
    turns: int = 0
    waiting_for: tuple[ReasonCount, ...] = ()
    message: str = ""


class Trouble(Wire, frozen=True, kw_only=True):
    """The first clusters with one kind of trouble, as `stage/cluster: reason`, and how many there are in total."""

    kind: TroubleKind
    total: int
    clusters: tuple[str, ...] = ()


class FleetUpdateStatus(Wire, frozen=True, kw_only=True):
    """`status` of FleetUpdate. It never lists all clusters.

    `observed_generation`: the generation of the FleetUpdate for which this status was decided. `closed` is the gate
    that keeps the next stage from its beginning, or the update from its end; None if no gate does.
    """

    observed_generation: int = 0
    permit_until: datetime | None = None
    closed: ClosedGate | None = None
    stages: tuple[StageStatus, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    conditions: tuple[Condition, ...] = ()


class FleetUpdate(Object, frozen=True, kw_only=True):
    """An update of a fleet to one release, stage by stage."""

    spec: FleetUpdateSpec
    status: FleetUpdateStatus = FleetUpdateStatus()
