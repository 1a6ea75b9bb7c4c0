"""Many problems -> the one that conditions tell (cvo-behaviour 4.7), and what it means after so long a wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kubekit.lang.cut import joined
from runup.applying.decide.problems import Effect, Problem

MULTIPLE = "MultipleErrors"
SLOW = "SlowClusterOperator"
# Bytes of one message that tells of many: half of what a condition is given, so that none of them is cut in its middle.
MOST_TOLD = 8 * 1024
MACHINE_CONFIG = "machine-config"
PATIENCE = timedelta(minutes=30)
PATIENCE_WITH_MACHINES = timedelta(minutes=90)
INTERVAL = timedelta(minutes=40)
_ORDER = (Effect.REPORT, Effect.NONE, Effect.FAIL_AFTER_INTERVAL, Effect.FAIL)


@dataclass(frozen=True, slots=True)
class Summary:
    """One problem for all of them, and those that it stands for where they are several."""

    problem: Problem
    nested: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What a summary comes to at a moment. `progressing`: it is no failure; `slow`: nor is it as it should be.

    `text` follows "Working towards" where it is progress. `next_look` is when time alone changes the verdict.
    """

    progressing: bool
    text: str = ""
    slow: bool = False
    next_look: datetime | None = None


def summarize(problems: Iterable[Problem]) -> Summary | None:
    """The one problem that `problems` come to, None where there is none."""
    found = _merged(problems)
    if not found:
        return None
    if len(found) == 1:
        return Summary(found[0])
    lines = sorted({problem.message for problem in found})
    text = joined(["Multiple errors are preventing progress:", *lines], "\n* ", MOST_TOLD)
    return Summary(Problem(MULTIPLE, text, _worst(found)), tuple(found))


def without_progress(summary: Summary) -> Summary | None:
    """`summary` without the nested problems that are progress, None where nothing is left."""
    if not summary.nested:
        return summary
    left = [problem for problem in summary.nested if problem.effect is not Effect.NONE]
    return summarize(left)


def judge(problem: Problem, *, now: datetime) -> Judged:
    """Whether `problem` is progress still, and in which words."""
    if problem.effect is Effect.NONE:
        return _waiting(problem, now)
    if problem.effect is not Effect.FAIL_AFTER_INTERVAL:
        return Judged(False)
    late = [name for name in problem.names if problem.waited_longer(name, INTERVAL, now)]
    if late:
        return Judged(False, f"wait has exceeded 40 minutes for these operators: {', '.join(late)}")
    text = f"waiting up to 40 minutes on {', '.join(problem.names)}"
    return Judged(True, text, next_look=_next(problem, lambda _: INTERVAL, now))


def _waiting(problem: Problem, now: datetime) -> Judged:
    if not problem.names:
        return Judged(True, problem.message)
    slow = [name for name in problem.names if problem.waited_longer(name, _patience(name), now)]
    then = _next(problem, _patience, now)
    if not slow:
        return Judged(True, f"waiting on {', '.join(problem.names)}", next_look=then)
    others = ", ".join(name for name in slow if name != MACHINE_CONFIG)
    waits = [f"{others} over 30 minutes"] if others else []
    waits += [f"{MACHINE_CONFIG} over 90 minutes"] if MACHINE_CONFIG in slow else []
    return Judged(True, f"waiting on {' and '.join(waits)} which is longer than expected", slow=True, next_look=then)


def _patience(name: str) -> timedelta:
    return PATIENCE_WITH_MACHINES if name == MACHINE_CONFIG else PATIENCE


def _next(problem: Problem, limit: Callable[[str], timedelta], now: datetime) -> datetime | None:
    """When the next of the operators will have been waited for too long."""
    ends = [since + limit(name) for name, since in problem.since]
    return min((end for end in ends if end >= now), default=None)


def _merged(problems: Iterable[Problem]) -> list[Problem]:
    """Those of several ClusterOperators that say the same are one; each other one is itself, once."""
    found: dict[object, list[Problem]] = {}
    for problem in problems:
        key: object = (problem.reason, problem.plural) if problem.plural else (problem.reason, problem.message)
        found.setdefault(key, []).append(problem)
    merged = [_plural(same) if same[0].plural and len(same) > 1 else same[0] for same in found.values()]
    return sorted(merged, key=lambda problem: (problem.reason, problem.message))


def _plural(same: Sequence[Problem]) -> Problem:
    names = tuple(sorted({name for problem in same for name in problem.names}))
    since = tuple(sorted({pair for problem in same for pair in problem.since}))
    one = same[0]
    return Problem(
        one.plural, f"Cluster operators {', '.join(names)} {one.told}", _worst(same), names, one.plural, one.told, since
    )


def _worst(problems: Iterable[Problem]) -> Effect:
    return max((problem.effect for problem in problems), key=_ORDER.index)
