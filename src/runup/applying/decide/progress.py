"""What the worker is asked to apply, and how far it is: values that cross between it and ClusterVersion's reconcile."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from runup.applying.decide.problems import Problem
from runup.release.decide.inclusion import Filters
from runup.release.decide.payload import Payload


class State(StrEnum):
    """Why a release is applied, which decides order and patience (cvo-behaviour 4.1)."""

    INITIALIZING = "Initializing"
    UPDATING = "Updating"
    RECONCILING = "Reconciling"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The release to apply, which of its manifests, and whose they are.

    `filters` are those of loading and applying together; `owner_uid` is ClusterVersion's.
    """

    image: str
    version: str
    filters: Filters = field(default_factory=Filters)
    owner_uid: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the worker is with `wanted` (None: it was not asked for anything yet).

    `done` of `total` manifests are as they should be in this run; `completed` says that all of them were at least once
    since `wanted` was asked for. `problems` are those of this moment. `version_hash` is over what is included.
    `deleting` are the objects whose deletion was asked for and is not done.
    """

    wanted: Wanted | None = None
    state: State = State.INITIALIZING
    version_hash: str = ""
    done: int = 0
    total: int = 0
    completed: bool = False
    problems: tuple[Problem, ...] = ()
    deleting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loading:
    """What is known of a release's payload: loaded, being loaded (`running`), or why not.

    `reason` is the step that failed, `RetrievePayload` or `LoadPayload`; `at` is when it did.
    """

    payload: Payload | None = None
    running: bool = False
    reason: str = ""
    error: str = ""
    at: datetime | None = None
