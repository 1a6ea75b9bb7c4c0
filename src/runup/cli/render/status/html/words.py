"""The words, colours and small parts that the pieces of the HTML page share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from runup.api.update_v1alpha1 import ControlPlane, Insight, UpdateStatusStatus, WorkerPool
from runup.cli.render.status.html.markup import Markup, el

GOOD, BUSY, WARN, BAD, IDLE = "good", "busy", "warn", "bad", "idle"
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


def badge(label: str, tone: str) -> Markup:
    """A word on a coloured ground."""
    return el("span", label, class_=f"badge {tone}")


def bar(parts: Iterable[tuple[str, int]], total: int, label: str) -> Markup:
    """A bar of `parts` (colour, count) out of `total`; `label` is for who cannot see it."""
    shares = (
        el("i", class_=f"fill-{tone}", style=f"width:{100 * count / total:.2f}%") for tone, count in parts if count
    )
    return el("div", *shares, class_="bar", role="img", aria_label=label)


def moment(when: datetime) -> str:
    """A time to the minute."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def age(span: timedelta) -> str:
    """A length of time in its two largest units; nothing is negative."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"
