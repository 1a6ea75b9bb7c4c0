"""What is found of one Module, as a value, and when it is looked at again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.decide.asked import Question
from runup.kernelmodules.decide.runs import Run, Wanted

# ConfigMaps, Secrets and registries are not watched (KMM: 180 s).
AGAIN_S = 180.0


@dataclass(frozen=True, slots=True)
class Task:
    """A Module and the kernel that it is looked at for; `toolkit` is the driver toolkit's image, where it is known."""

    module: Module
    kernel: str
    toolkit: str
    push: bool
    validation: str
    uid: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Looked:
    """What is said of a Module, and what is to be done for it.

    `open` are questions whose answers are missing or old. `start` is the run that is to begin. Where `settled`, the
    Module's runs but `keep` are to go: other inputs, or another attempt. `again_s` is when to look without being told.
    `pending`: nothing is known yet, so what was said before stands.
    """

    verified: bool
    stage: str
    reason: str
    open: tuple[Question, ...] = ()
    keep: tuple[Run, ...] = ()
    start: Wanted | None = None
    settled: bool = False
    again_s: float | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """`again` holds the question when its answer is old: it is asked once more, and the answer stands until then."""

    again: tuple[Question, ...] = ()
    wait_s: float = AGAIN_S


def freshness(question: Question, at: datetime, now: datetime) -> Freshness:
    """Of an answer of the time `at`."""
    left = AGAIN_S - (now - at).total_seconds()
    return Freshness((question,)) if left <= 0 else Freshness((), min(left, AGAIN_S))


def requeued(reason: str, fresh: Freshness) -> Looked:
    """It failed, and is tried again."""
    return Looked(False, "Requeued", reason, open=fresh.again, again_s=fresh.wait_s)


def with_more(looked: Looked, fresh: Freshness, keep: tuple[Run, ...] = ()) -> Looked:
    """`looked`, with another answer that it rests on, and runs that stay."""
    waits = [each for each in (looked.again_s, fresh.wait_s) if each is not None]
    return replace(
        looked, open=(*looked.open, *fresh.again), keep=(*looked.keep, *keep), again_s=None if not waits else min(waits)
    )
