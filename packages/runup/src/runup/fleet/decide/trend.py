"""Tells from kept reports what came and went: per report of a cluster, and per day or week of a fleet. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

import msgspec

from runup.report.report import Report, ReportedRisk, may_be_untold


class ReportStep(msgspec.Struct, frozen=True, kw_only=True):
    """One report of a cluster beside the last one before it that was completed and has the same target.

    `first`: there is none, so nothing is new or gone. A report that failed is told, and nothing is concluded from it. A
    risk whose check could not tell this time is not gone. `came` and `went` are the risks with the objects that they
    name since then, or no longer; a risk about no object in particular has none.
    """

    cluster: str
    observed: datetime
    target: str
    completed: bool
    applies: int = 0
    unknown: int = 0
    first: bool = False
    came: tuple[Change, ...] = ()
    went: tuple[Change, ...] = ()

    @property
    def new(self) -> tuple[str, ...]:
        """The risks that the report before did not have."""
        return tuple(change.risk for change in self.came if change.whole)

    @property
    def gone(self) -> tuple[str, ...]:
        """The risks of the report before that this one does not have, and could have told."""
        return tuple(change.risk for change in self.went if change.whole)


class Change(msgspec.Struct, frozen=True):
    """The objects that a risk names on one side only; `whole`: the risk itself is not on the other."""

    risk: str
    objects: tuple[str, ...]
    whole: bool


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest reports of a day, or of the week that begins with it, come to.

    `new` and `gone` are risks with the number of their clusters.
    """

    day: date
    clusters: int
    failed: int
    applies: int
    unknown: int
    new: tuple[tuple[str, int], ...]
    gone: tuple[tuple[str, int], ...]


def steps_of_reports(reports: Iterable[tuple[str, datetime, Report]]) -> tuple[ReportStep, ...]:
    """Returns a step for each report (cluster, when, report), in the order of time.

    A completed report is compared with the cluster's last completed one of the same target.
    """
    last_reports: dict[tuple[str, str], Report] = {}
    report_steps = []
    for cluster, observed, report in sorted(reports, key=lambda each: (each[1], each[0])):
        if report.execution_status == "completed":
            last_report = last_reports.get((cluster, report.target_version))
            risks_now, risks_before = (
                {risk.name: risk for risk in each.risks} if each else {} for each in (report, last_report)
            )
            still = {
                name: risk
                for name, risk in risks_before.items()
                if name in risks_now or not may_be_untold(report, name)
            }
            applies = sum(risk.applies == "True" for risk in report.risks)
            report_steps.append(
                ReportStep(
                    cluster=cluster,
                    observed=observed,
                    target=report.target_version,
                    completed=True,
                    applies=applies,
                    unknown=len(report.risks) - applies,
                    first=last_report is None,
                    came=_changes(risks_now, risks_before) if last_report else (),
                    went=_changes(still, risks_now) if last_report else (),
                )
            )
            last_reports[cluster, report.target_version] = report
        else:
            report_steps.append(
                ReportStep(cluster=cluster, observed=observed, target=report.target_version, completed=False)
            )
    return tuple(report_steps)


def _changes(risks: Mapping[str, ReportedRisk], other_risks: Mapping[str, ReportedRisk]) -> tuple[Change, ...]:
    """Returns what the risks `risks` name and those of the same names `other_risks` do not."""
    changes = []
    for name in sorted(risks):
        other_objects = {item.text for item in other_risks[name].resources} if name in other_risks else set()
        objects = tuple(sorted({item.text for item in risks[name].resources} - other_objects))
        # A check that could not tell names no objects, so none of them came or went.
        is_told = name not in other_risks or risks[name].applies == other_risks[name].applies
        if name not in other_risks or (objects and is_told):
            changes.append(Change(name, objects, name not in other_risks))
    return tuple(changes)


def summarize_days(report_steps: Sequence[ReportStep], *, weeks: bool = False) -> tuple[Day, ...]:
    """Returns each day that has reports: counts are of the newest of each cluster, changes are of all of them.

    `weeks`: each week, by its Monday.
    """
    by_day: dict[date, list[ReportStep]] = defaultdict(list)
    for step in report_steps:
        day = step.observed.date()
        by_day[day - timedelta(days=day.weekday()) if weeks else day].append(step)
    days = []
    for day, steps in sorted(by_day.items()):
        newest = {step.cluster: step for step in steps}.values()
        # Each risk counts once for a cluster, however many of its reports have it.
        new = Counter(name for _, name in {(step.cluster, name) for step in steps for name in step.new})
        gone = Counter(name for _, name in {(step.cluster, name) for step in steps for name in step.gone})
        days.append(
            Day(
                day=day,
                clusters=len(newest),
                failed=sum(not step.completed for step in newest),
                applies=sum(step.applies for step in newest),
                unknown=sum(step.unknown for step in newest),
                new=tuple(sorted(new.items(), key=lambda pair: (-pair[1], pair[0]))),
                gone=tuple(sorted(gone.items(), key=lambda pair: (-pair[1], pair[0]))),
            )
        )
    return tuple(days)
