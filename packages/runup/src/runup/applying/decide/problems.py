"""Problems that keep a task of a release from being done, and their effect on the whole update.

The effects (docs/upstream-behaviour.md 4.7): `NONE` is progress, not failure. `REPORT` is reported but stops nothing.
`FAIL_AFTER_INTERVAL` is progress for a while, then failure. `FAIL` is failure at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Effect(StrEnum):
    """The effect of a problem on the update, as the module describes; from the mildest to the worst."""

    REPORT = "Report"
    NONE = "None"
    FAIL_AFTER_INTERVAL = "FailAfterInterval"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that a task waits for or fails with. `reason` and `message` are the condition's.

    `names` are the ClusterOperators concerned. If several have the same problem, `plural` is the reason, and the
    message is their names followed by `told`, a verb phrase. `since` is when each operator was first waited for.
    """

    reason: str
    message: str
    effect: Effect = Effect.FAIL
    names: tuple[str, ...] = ()
    plural: str = ""
    told: str = ""
    since: tuple[tuple[str, datetime], ...] = ()

    def waited_longer(self, name: str, limit: timedelta, now: datetime) -> bool:
        """Returns whether operator `name` has been waited for longer than `limit`; True if its start is unknown."""
        since = dict(self.since).get(name)
        return since is None or now - since > limit
