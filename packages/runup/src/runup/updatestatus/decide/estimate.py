"""Estimates the remaining time of a control plane update, in seconds, from its progress.

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
# Seconds of progress below which the curve is dominated by chance.
_MEANINGFUL_PROGRESS_S = 300.0
# Below ten minutes seconds are shown, above it only minutes.
_PRECISE_BELOW_S = 600
_SAFETY_FACTOR = 1.2


class Estimate(msgspec.Struct, frozen=True):
    """The remaining time in seconds, negative once the update takes longer than estimated; shown by `to_precision`."""

    remaining_s: int

    @property
    def assessment(self) -> str:
        """The assessment of the update, in words."""
        return assessment_of(self.remaining_s)


def assessment_of(remaining_s: float) -> str:
    """Returns Progressing, or how far the update is beyond its estimated time."""
    if remaining_s < -600:
        return "Stalled"
    return "Progressing - Slow" if remaining_s < 0 else "Progressing"


def baseline_s(history: Sequence[UpdateHistory]) -> float:
    """Returns the seconds that the last completed update took, 3600 if none.

    Neither the current update nor the installation counts.
    """
    # The first entry is the current update, the last one is the installation.
    for entry in history[1:-1]:
        if entry.state == "Completed" and entry.completion_time:
            return (entry.completion_time - entry.started_time).total_seconds()
    return DEFAULT_BASELINE_S


def share_of_time(completion: float) -> float:
    """Returns the share of the whole time that has usually passed when this share (0..1) of operators is updated."""
    c = completion
    if c < 0.25:
        return -0.03078788 + 2.62886 * c - 3.823954 * c**2
    if c < 0.9:
        return 0.1851215 + 1.64994 * c - 4.676898 * c**2 + 5.451824 * c**3 - 2.125286 * c**4
    return 25053.32 - 107394.3 * c + 172527.2 * c**2 - 123107 * c**3 + 32921.81 * c**4


def estimate(*, baseline: float, to_last_progress_s: float, elapsed_s: float, completion: float) -> Estimate:
    """Returns the remaining time in seconds: a fifth more than the curve says, and less if overdue."""
    share = share_of_time(completion)
    meaningful = completion > 0 and share > 0 and to_last_progress_s > _MEANINGFUL_PROGRESS_S
    total = to_last_progress_s / share if meaningful else baseline
    remaining = total - elapsed_s
    return Estimate(math.trunc(remaining * _SAFETY_FACTOR if remaining >= 0 else remaining * (1 / _SAFETY_FACTOR)))


def to_precision(seconds: int) -> int:
    """Returns `seconds`, rounded to the minute (half of one upwards) above ten minutes."""
    return seconds if seconds <= _PRECISE_BELOW_S else (seconds + 30) // 60 * 60
