"""How long an update of the control plane takes in all: progress in, seconds out.

The polynomials are a fit of the share of time against the share of updated operators, measured by the authors of
`oc adm upgrade status`; its numbers are kept so that both print the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from runup.api.config_v1 import UpdateHistory

DEFAULT_BASELINE_S = 3600.0
# Earlier than this the curve says more about chance than about the cluster.
_MEANINGFUL_PROGRESS_S = 300.0
_PRECISE_BELOW_S = 600
_CAUTION = 1.2


class Estimate(msgspec.Struct, frozen=True):
    """`remaining_s` is negative once the update takes longer than estimated; it is shown by `to_precision`."""

    remaining_s: int

    @property
    def assessment(self) -> str:
        """The update in words."""
        return assessment_of(self.remaining_s)


def assessment_of(remaining_s: float) -> str:
    """Progressing, or how far beyond its time the update is."""
    if remaining_s < -600:
        return "Stalled"
    return "Progressing - Slow" if remaining_s < 0 else "Progressing"


def baseline_s(history: Sequence[UpdateHistory]) -> float:
    """How long the last completed update took; neither the current one nor the installation counts. An hour if none."""
    for entry in history[1:-1]:
        if entry.state == "Completed" and entry.completion_time:
            return (entry.completion_time - entry.started_time).total_seconds()
    return DEFAULT_BASELINE_S


def share_of_time(completion: float) -> float:
    """Which share of the whole time has usually gone by when this share (0..1) of the operators is updated."""
    c = completion
    if c < 0.25:
        return -0.03078788 + 2.62886 * c - 3.823954 * c**2
    if c < 0.9:
        return 0.1851215 + 1.64994 * c - 4.676898 * c**2 + 5.451824 * c**3 - 2.125286 * c**4
    return 25053.32 - 107394.3 * c + 172527.2 * c**2 - 123107 * c**3 + 32921.81 * c**4


def estimate(*, baseline: float, to_last_progress_s: float, elapsed_s: float, completion: float) -> Estimate:
    """What remains, in seconds: a fifth more than the curve says, and less of what is overdue."""
    share = share_of_time(completion)
    meaningful = completion > 0 and share > 0 and to_last_progress_s > _MEANINGFUL_PROGRESS_S
    total = to_last_progress_s / share if meaningful else baseline
    remaining = total - elapsed_s
    return Estimate(math.trunc(remaining * _CAUTION if remaining >= 0 else remaining * (1 / _CAUTION)))


def to_precision(seconds: int) -> int:
    """`seconds`, rounded to the minute (half of one upwards) above ten minutes."""
    return seconds if seconds <= _PRECISE_BELOW_S else (seconds + 30) // 60 * 60
