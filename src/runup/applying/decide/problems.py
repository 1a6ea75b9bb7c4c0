"""What keeps a task of a release from being done, and what that means for the whole.

The effect says what follows (cvo-behaviour 4.7): `NONE` is progress, not failure; `REPORT` is told and stops nothing;
`FAIL_AFTER_INTERVAL` is progress for a while; `FAIL` is failure now.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Effect(StrEnum):
    """See the module; in the order in which the worst of several counts."""

    REPORT = "Report"
    NONE = "None"
    FAIL_AFTER_INTERVAL = "FailAfterInterval"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Problem:
    """What a task waits for or fails with. `reason` and `message` are the condition's.

    `names` are the ClusterOperators that it is about, and `plural` and `told` what reason and message are where several
    of them have the same: `told` follows their names. `since` is when each operator was first waited for.
    """

    reason: str
    message: str
    effect: Effect = Effect.FAIL
    names: tuple[str, ...] = ()
    plural: str = ""
    told: str = ""
    since: tuple[tuple[str, datetime], ...] = ()

    def waited_longer(self, name: str, limit: timedelta, now: datetime) -> bool:
        """Whether operator `name` is waited for since longer than `limit`; one that nobody knows of counts as such."""
        since = dict(self.since).get(name)
        return since is None or now - since > limit
