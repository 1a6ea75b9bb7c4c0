"""The words and colours of an update, which the pieces of its page share."""

from __future__ import annotations

from collections.abc import Iterator

from runup.api.update_v1alpha1 import ControlPlane, Insight, UpdateStatusStatus, WorkerPool
from runup.cli.render.html.parts import BAD, BUSY, GOOD, IDLE, WARN

LEVELS = {"Unknown": 0, "Info": 1, "Warning": 2, "Error": 3, "Critical": 4}

_TONES = {
    "Completed": GOOD,
    "Progressing": BUSY,
    "Progressing - Slow": WARN,
    "Stalled": BAD,
    "Degraded": BAD,
    "Unavailable": BAD,
    "Excluded": WARN,
    "Pending": IDLE,
    "Outdated": IDLE,
}
_LEVEL_TONES = {"Info": BUSY, "Warning": WARN, "Error": BAD, "Critical": BAD}


def tone_of_assessment(assessment: str) -> str:
    """The colour of an assessment; one that is not known is a warning."""
    return _TONES.get(assessment, WARN)


def tone_of_level(level: str) -> str:
    """The colour of an impact's level; one that is not known is a warning."""
    return _LEVEL_TONES.get(level, WARN)


def insights_of(part: ControlPlane | WorkerPool) -> Iterator[Insight]:
    """All insights of a part, whoever reports them."""
    for informer in part.informers:
        yield from informer.insights


def parts_of(status: UpdateStatusStatus) -> Iterator[ControlPlane | WorkerPool]:
    """The control plane where there is one, then every pool."""
    if status.control_plane:
        yield status.control_plane
    yield from status.worker_pools


def all_insights(status: UpdateStatusStatus) -> Iterator[Insight]:
    """Those of the control plane, then those of every pool."""
    for part in parts_of(status):
        yield from insights_of(part)
