"""The input (`Task`) and result (`ModuleState`) of examining one Module, and how long an answer stays fresh. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.decide.external_queries import Question
from runup.kernelmodules.decide.readiness import RECHECK_INTERVAL_S
from runup.kernelmodules.decide.runs import Run, WantedRun


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

    The answers to `open_questions` are missing or old. With `deletes_other_runs` the Module's runs besides `kept_runs`
    are deleted: they have other inputs, or are an older attempt. With `keeps_previous_status` nothing is known yet.
    """

    verified: bool
    stage: str
    reason: str
    open_questions: tuple[Question, ...] = ()
    kept_runs: tuple[Run, ...] = ()
    run_to_start: WantedRun | None = None
    deletes_other_runs: bool = False
    recheck_after_s: float | None = None
    keeps_previous_status: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of an answer. If it is old, `questions_to_repeat` has its question.

    An old answer counts until there is a new one.
    """

    questions_to_repeat: tuple[Question, ...] = ()
    recheck_after_s: float = RECHECK_INTERVAL_S


def freshness(question: Question, at: datetime, now: datetime) -> Freshness:
    """Returns the freshness at `now` of an answer that was given `at`."""
    remaining_s = RECHECK_INTERVAL_S - (now - at).total_seconds()
    return Freshness((question,)) if remaining_s <= 0 else Freshness((), min(remaining_s, RECHECK_INTERVAL_S))


def requeued_state(reason: str, fresh: Freshness) -> ModuleState:
    """Returns the result of a failure that is tried again."""
    return ModuleState(
        False, "Requeued", reason, open_questions=fresh.questions_to_repeat, recheck_after_s=fresh.recheck_after_s
    )


def with_more(state: ModuleState, fresh: Freshness, more_runs: tuple[Run, ...] = ()) -> ModuleState:
    """Returns `state` with `fresh`, another answer that it depends on, and with `more_runs` to keep."""
    waits = [delay_s for delay_s in (state.recheck_after_s, fresh.recheck_after_s) if delay_s is not None]
    return replace(
        state,
        open_questions=(*state.open_questions, *fresh.questions_to_repeat),
        kept_runs=(*state.kept_runs, *more_runs),
        recheck_after_s=None if not waits else min(waits),
    )
