"""The result of examining one Module, as a value, and the time of the next examination. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.decide.external_queries import Question
from runup.kernelmodules.decide.runs import Run, WantedRun

# How long an answer counts, because ConfigMaps, Secrets and registries are not watched (KMM: 180 s).
RECHECK_INTERVAL_S = 180.0


@dataclass(frozen=True, slots=True)
class Task:
    """A Module and the kernel to examine it for; `toolkit` is the driver toolkit's image, empty if it is not known.

    `validation` and `uid` are name and UID of the PreflightValidation.
    """

    module: Module
    kernel: str
    toolkit: str
    push: bool
    validation: str
    uid: str
    now: datetime


@dataclass(frozen=True, slots=True)
class ModuleState:
    """The result of examining a Module, and what is to be done for it.

    `open` are questions whose answers are missing or old. `start` is the run to start. If `settled`, the Module's runs
    besides `keep` are to be deleted: they have other inputs, or are an older attempt. `again_s` is when to examine the
    Module again. `pending`: nothing is known yet, so the previous status stands.
    """

    verified: bool
    stage: str
    reason: str
    open: tuple[Question, ...] = ()
    keep: tuple[Run, ...] = ()
    start: WantedRun | None = None
    settled: bool = False
    again_s: float | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of an answer: `again` holds the question if the answer is old, `wait_s` is when to look again.

    An old answer counts until there is a new one.
    """

    again: tuple[Question, ...] = ()
    wait_s: float = RECHECK_INTERVAL_S


def freshness(question: Question, at: datetime, now: datetime) -> Freshness:
    """Returns the freshness at `now` of an answer that was given `at`."""
    remaining_s = RECHECK_INTERVAL_S - (now - at).total_seconds()
    return Freshness((question,)) if remaining_s <= 0 else Freshness((), min(remaining_s, RECHECK_INTERVAL_S))


def requeued_state(reason: str, fresh: Freshness) -> ModuleState:
    """Returns the result of a failure that is tried again."""
    return ModuleState(False, "Requeued", reason, open=fresh.again, again_s=fresh.wait_s)


def with_more(state: ModuleState, fresh: Freshness, keep: tuple[Run, ...] = ()) -> ModuleState:
    """Returns `state` with another answer that it depends on, and with more runs to keep."""
    waits = [delay_s for delay_s in (state.again_s, fresh.wait_s) if delay_s is not None]
    return replace(
        state, open=(*state.open, *fresh.again), keep=(*state.keep, *keep), again_s=None if not waits else min(waits)
    )
