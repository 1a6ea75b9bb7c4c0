"""The reconciler's view of applying a release: its progress and its problems, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from runup.release.decide.inclusion import Filters
from runup.release.decide.payload import Payload


class Effect(StrEnum):
    """The effect of a problem on the update, as the module describes; from the mildest to the worst."""

    REPORT = "Report"
    NONE = "None"
    FAIL_AFTER_INTERVAL = "FailAfterInterval"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem that a task waits for or fails with. `reason` and `message` are the condition's.

    `names` are the ClusterOperators concerned. If several have the same problem, `plural` is the reason, and the
    message is their names followed by `predicate`, a verb phrase. `since` is when each operator was first waited for.
    """

    reason: str
    message: str
    effect: Effect = Effect.FAIL
    names: tuple[str, ...] = ()
    plural: str = ""
    predicate: str = ""
    since: tuple[tuple[str, datetime], ...] = ()


class ApplyReason(StrEnum):
    """The reason to apply a release, which decides the order of tasks and how long to wait.

    Source: docs/reference/upstream.md 4.1.
    """

    INITIALIZING = "Initializing"
    UPDATING = "Updating"
    RECONCILING = "Reconciling"


@dataclass(frozen=True, slots=True)
class WantedRelease:
    """The release to apply, the filters that select its manifests, and the owner of its objects.

    `filters` combine those of loading and of applying; `owner_uid` is the UID of ClusterVersion.
    """

    image: str
    version: str
    filters: Filters = field(default_factory=Filters)
    owner_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The worker's progress with `wanted` (None: nothing was wanted yet).

    `done` of `total` manifests are in place in this run; `completed` is True once all of them were, since `wanted` was
    asked for. `problems` are the current ones. `version_hash` is over the included manifests. `deleting` are the
    objects whose deletion was requested and that still exist.
    """

    wanted: WantedRelease | None = None
    state: ApplyReason = ApplyReason.INITIALIZING
    version_hash: str = ""
    done: int = 0
    total: int = 0
    completed: bool = False
    problems: tuple[Problem, ...] = ()
    deleting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The state of loading a release: its `payload`, or `running`, or the `error` of the last attempt.

    `reason` is the step that failed, `RetrievePayload` or `LoadPayload`, and `at` is when it failed.
    """

    payload: Payload | None = None
    running: bool = False
    reason: str = ""
    error: str = ""
    at: datetime | None = None
