"""Summarizes many problems into the one that conditions report, and evaluates how long it may last.

Source: docs/reference/upstream.md 4.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kubekit.lang.text import join_within
from runup.applying.decide.progress import Effect, Problem

MULTIPLE = "MultipleErrors"
# Bytes of a message about several problems: half of what a condition may have, so that none is cut in the middle.
MAX_MESSAGE_BYTES = 8 * 1024
# The objects that a message names of those that are waited for.
MAX_WAITS = 3
MACHINE_CONFIG = "machine-config"
# How long an operator may be waited for before it counts as slow. machine-config drains and reboots every node.
SLOW_AFTER = timedelta(minutes=30)
SLOW_AFTER_MACHINE_CONFIG = timedelta(minutes=90)
# How long a problem with effect FAIL_AFTER_INTERVAL counts as progress.
INTERVAL = timedelta(minutes=40)
_ORDER = (Effect.REPORT, Effect.NONE, Effect.FAIL_AFTER_INTERVAL, Effect.FAIL)


@dataclass(frozen=True, slots=True)
class Summary:
    """A problem that represents all; `nested` are the problems it represents if they are several."""

    problem: Problem
    nested: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a problem at a point in time. `progressing`: it is not a failure. `slow`: it takes too long.

    `text` follows "Working towards" or "Unable to apply" in the condition. `next_look` is when time alone may change
    the verdict.
    """

    progressing: bool
    text: str = ""
    slow: bool = False
    next_look: datetime | None = None


def summarize(problems: Iterable[Problem]) -> Summary | None:
    """Returns the one problem that represents `problems`, None if they do not exist.

    Objects that are waited for count only without other problems: upstream reports no error for them.
    """
    merged = _merge_problems(problems)
    merged = [problem for problem in merged if not is_wait(problem)] or merged
    if not merged:
        return None
    if len(merged) == 1:
        return Summary(merged[0])
    lines = sorted({problem.message for problem in merged})
    text = join_within(["Multiple errors are preventing progress:", *lines], "\n* ", MAX_MESSAGE_BYTES)
    # As upstream (newMultipleError in pkg/cvo/sync_worker.go), several errors get no grace period, unless all of them
    # are progress.
    effect = Effect.NONE if all(problem.effect is Effect.NONE for problem in merged) else Effect.FAIL
    return Summary(Problem(reason=MULTIPLE, message=text, effect=effect), tuple(merged))


def without_progress(summary: Summary) -> Summary | None:
    """Returns `summary` without the nested problems that are progress, None if none is left."""
    if not summary.nested:
        return summary
    remaining = [problem for problem in summary.nested if problem.effect is not Effect.NONE]
    return summarize(remaining)


def evaluate_problem(problem: Problem, *, now: datetime) -> Verdict:
    """Decides whether `problem` still counts as progress at `now`, and in which words."""
    if problem.effect is Effect.NONE:
        if not problem.names:
            return Verdict(True, problem.message)
        known = dict(problem.since)
        slow = [name for name in problem.names if name in known and now - known[name] > _patience_for(name)]
        then = _next_overdue(problem, _patience_for, now)
        if not slow:
            return Verdict(True, f"waiting on {', '.join(problem.names)}", next_look=then)
        other_names = ", ".join(name for name in slow if name != MACHINE_CONFIG)
        waits = [f"{other_names} over 30 minutes"] if other_names else []
        waits += [f"{MACHINE_CONFIG} over 90 minutes"] if MACHINE_CONFIG in slow else []
        return Verdict(
            True, f"waiting on {' and '.join(waits)} which is longer than expected", slow=True, next_look=then
        )
    if problem.effect is not Effect.FAIL_AFTER_INTERVAL:
        return Verdict(False, problem.message if problem.effect is Effect.REPORT else "")
    # As upstream, only here a wait whose beginning is unknown counts as too long.
    known = dict(problem.since)
    late = [name for name in problem.names if name not in known or now - known[name] > INTERVAL]
    if late:
        return Verdict(False, f"wait has exceeded 40 minutes for these operators: {', '.join(late)}")
    text = f"waiting up to 40 minutes on {', '.join(problem.names)}"
    return Verdict(True, text, next_look=_next_overdue(problem, lambda _: INTERVAL, now))


def _patience_for(name: str) -> timedelta:
    return SLOW_AFTER_MACHINE_CONFIG if name == MACHINE_CONFIG else SLOW_AFTER


def _next_overdue(problem: Problem, limit: Callable[[str], timedelta], now: datetime) -> datetime | None:
    """Returns when the next of the operators will have been waited for too long, None if none will."""
    ends = [since + limit(name) for name, since in problem.since]
    return min((end for end in ends if end >= now), default=None)


def _merge_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Merges equal problems of several objects, and drops duplicates; sorted by reason."""
    by_key: dict[object, list[Problem]] = {}
    for problem in problems:
        key: object = (problem.reason, problem.message)
        if problem.plural or is_wait(problem):
            key = (problem.reason, problem.plural)
        by_key.setdefault(key, []).append(problem)
    merged = [_as_one(problems) for problems in by_key.values()]
    return sorted(merged, key=lambda problem: (problem.reason, problem.message))


def is_wait(problem: Problem) -> bool:
    """Returns whether `problem` is that an object is waited for: several of them are no errors."""
    return problem.effect is Effect.NONE and not problem.names


def _as_one(problems: Sequence[Problem]) -> Problem:
    """Returns several problems of the same kind as one."""
    if len(problems) == 1:
        return problems[0]
    if problems[0].plural:
        names = tuple(sorted({name for problem in problems for name in problem.names}))
        since = tuple(sorted({pair for problem in problems for pair in problem.since}))
        first_problem = problems[0]
        return Problem(
            reason=first_problem.plural,
            message=f"Cluster operators {', '.join(names)} {first_problem.predicate}",
            effect=_worst_effect(problems),
            names=names,
            plural=first_problem.plural,
            predicate=first_problem.predicate,
            since=since,
        )
    if not is_wait(problems[0]):
        return problems[0]
    messages = sorted({problem.message for problem in problems})
    more = len(messages) - MAX_WAITS
    texts = [*messages[:MAX_WAITS], *([f"and {more} more"] if more > 0 else [])]
    return Problem(reason=problems[0].reason, message="; ".join(texts), effect=Effect.NONE)


def _worst_effect(problems: Iterable[Problem]) -> Effect:
    return max((problem.effect for problem in problems), key=_ORDER.index)


_FIXED = {
    "UpdatePayloadResourceNotFound": "some resources could not be updated",
    "UpdatePayloadResourceConflict": "some resources could not be updated",
    "UpdatePayloadClusterDown": "the control plane is down or not responding",
    "UpdatePayloadClusterError": "the control plane is reporting an internal error",
    "UpdatePayloadClusterOverloaded": "the control plane is overloaded and is not accepting updates",
    "UpdatePayloadClusterUnauthorized": "could not authenticate to the server",
    "UpdatePayloadRetrievalFailed": "could not download the update",
    "UpdatePayloadResourceForbidden": "the server is rejecting updates",
    "UpdatePayloadResourceTypeMissing": "a required extension is not available to update",
    "UpdatePayloadResourceInvalid": "some cluster configuration is invalid",
    "UpdatePayloadIntegrity": "the contents of the update are invalid",
    "ImageVerificationFailed": "the image may not be safe to use",
    "UpgradePreconditionCheckFailed": "it may not be safe to apply this update",
    "ClusterOperatorsDegraded": "some cluster operators are degraded",
    "ClusterOperatorsNotAvailable": "some cluster operators are not available",
    "ClusterOperatorsNoVersions": "some cluster operators do not declare expected versions",
    "ClusterOperatorsUpdating": "some cluster operators are updating versions",
}
_NAMED = {
    "ClusterOperatorDegraded": ("cluster operator", "is degraded"),
    "ClusterOperatorNotAvailable": ("cluster operator", "is not available"),
    "ClusterOperatorNoVersions": ("cluster operator", "does not declare expected versions"),
    "ClusterOperatorUpdating": ("cluster operator", "is updating versions"),
    "WorkloadNotAvailable": ("workload", "has not yet successfully rolled out"),
    "WorkloadNotProgressing": ("workload", "cannot roll out"),
}


def summary_of(problem: Problem) -> str:
    """Returns a short text for `problem`, without its details."""
    if problem.reason in _FIXED:
        return _FIXED[problem.reason]
    name = problem.names[0] if problem.names else ""
    if problem.reason in _NAMED:
        noun, words = _NAMED[problem.reason]
        return f"the {noun} {name} {words}" if name else f"a {noun} {words}"
    if problem.reason.startswith("UpdatePayload"):
        return "the update could not be applied"
    if not problem.reason:
        return "an error occurred"
    return f"{name or 'an unknown error has occurred'}{' has an unknown error' if name else ''}: {problem.reason}"
