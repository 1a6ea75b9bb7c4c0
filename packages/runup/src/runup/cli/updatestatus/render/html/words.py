"""Levels, colours and iterators over insights that the parts of the HTML page share."""

from __future__ import annotations

from collections.abc import Iterator

from runup.api.update_v1alpha1 import ControlPlane, Insight, UpdateStatusStatus, WorkerPool
from runup.cli.render.html.parts import BAD, BUSY, GOOD, IDLE, WARN
from runup.updatestatus.decide.read_status import merged_insights

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
    """Returns the colour of an assessment; the colour of a warning if the assessment is not known."""
    return _TONES.get(assessment, WARN)


def tone_of_level(level: str) -> str:
    """Returns the colour of an impact's level; the colour of a warning if the level is not known."""
    return _LEVEL_TONES.get(level, WARN)


def insights_of(part: ControlPlane | WorkerPool) -> list[Insight]:
    """Returns the insights of a part that the text of `upgrade status` is about, too."""
    return merged_insights(part.informers)


def parts_of(status: UpdateStatusStatus) -> Iterator[ControlPlane | WorkerPool]:
    """Yields the control plane if there is one, then every worker pool."""
    if status.control_plane:
        yield status.control_plane
    yield from status.worker_pools


def all_insights(status: UpdateStatusStatus) -> Iterator[Insight]:
    """Yields the insights of the control plane, then those of every worker pool."""
    for part in parts_of(status):
        yield from insights_of(part)
