"""Tells from kept reports what came and went: per report of a cluster, and per day of a fleet. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime

import msgspec

from runup.preflight.decide.report import Report
from runup.preflight.decide.untold import untold


class Step(msgspec.Struct, frozen=True):
    """One report of a cluster beside the last one before it that was completed and has the same target.

    `first`: there is none, so nothing is new or gone. A report that failed is told, and nothing is concluded from it. A
    risk whose check could not tell this time is not gone.
    """

    cluster: str
    observed: datetime
    target: str
    completed: bool
    applies: int = 0
    unknown: int = 0
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    first: bool = False


class Day(msgspec.Struct, frozen=True):
    """What the newest reports of a day come to; `new` and `gone` are risks with the number of their clusters."""

    day: date
    clusters: int
    failed: int
    applies: int
    unknown: int
    new: tuple[tuple[str, int], ...]
    gone: tuple[tuple[str, int], ...]


def steps(reports: Iterable[tuple[str, datetime, Report]]) -> tuple[Step, ...]:
    """Returns a step for each report (cluster, when, report), in the order of time."""
    before: dict[tuple[str, str], Report] = {}
    found = []
    for cluster, observed, report in sorted(reports, key=lambda each: (each[1], each[0])):
        completed = report.execution_status == "completed"
        last = before.get((cluster, report.target_version))
        found.append(
            _step_between(cluster, observed, report, last) if completed else _step_of_failure(cluster, observed, report)
        )
        if completed:
            before[cluster, report.target_version] = report
    return tuple(found)


def _step_of_failure(cluster: str, observed: datetime, report: Report) -> Step:
    return Step(cluster, observed, report.target_version, completed=False)


def _step_between(cluster: str, observed: datetime, report: Report, last: Report | None) -> Step:
    names, known = ({risk.name for risk in each.risks} if each else set() for each in (report, last))
    applies = sum(risk.applies == "True" for risk in report.risks)
    return Step(
        cluster,
        observed,
        report.target_version,
        completed=True,
        applies=applies,
        unknown=len(report.risks) - applies,
        new=tuple(sorted(names - known)) if last else (),
        gone=tuple(sorted(name for name in known - names if not untold(report, name))) if last else (),
        first=last is None,
    )


def days(found: Sequence[Step]) -> tuple[Day, ...]:
    """Returns each day that has reports: counts are of the newest of each cluster, changes are of all of them."""
    by_day: dict[date, list[Step]] = defaultdict(list)
    for step in found:
        by_day[step.observed.date()].append(step)
    return tuple(_day_of_steps(day, by_day[day]) for day in sorted(by_day))


def _day_of_steps(day: date, found: Sequence[Step]) -> Day:
    newest = {step.cluster: step for step in found}.values()
    new, gone = (
        Counter(name for _, name in {(s.cluster, n) for s in found for n in of(s)}) for of in (_new_risks, _gone_risks)
    )
    return Day(
        day,
        len(newest),
        sum(not step.completed for step in newest),
        sum(step.applies for step in newest),
        sum(step.unknown for step in newest),
        tuple(sorted(new.items(), key=_most_frequent_first)),
        tuple(sorted(gone.items(), key=_most_frequent_first)),
    )


def _new_risks(step: Step) -> tuple[str, ...]:
    return step.new


def _gone_risks(step: Step) -> tuple[str, ...]:
    return step.gone


def _most_frequent_first(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
