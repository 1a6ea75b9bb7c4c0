"""Computes new and gone risks from stored reports: per report of a cluster, and per day or week of a fleet. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

import msgspec

from runup.report.changes import Change, changes
from runup.report.report import Report, ReportedRisk, may_be_untold


class ReportStep(msgspec.Struct, frozen=True, kw_only=True):
    """One report of a cluster next to the last one before it that was completed and has the same target.

    `first`: there is none, so nothing is new or gone. A report that failed is told, and nothing is concluded from it. A
    risk whose check could not tell this time is not gone, and neither are its objects. `came` and `went` are the risks
    with the objects that they name since then, or no longer; a risk about no object in particular has none.
    `accepted_applies` and `accepted_unknown` are how many of `applies` and `unknown` the report records as accepted.
    """

    cluster: str
    observed: datetime
    target: str
    completed: bool
    applies: int = 0
    unknown: int = 0
    accepted_applies: int = 0
    accepted_unknown: int = 0
    first: bool = False
    came: tuple[Change, ...] = ()
    went: tuple[Change, ...] = ()

    @property
    def accepted(self) -> int:
        """How many risks the report records as accepted."""
        return self.accepted_applies + self.accepted_unknown

    @property
    def new(self) -> tuple[str, ...]:
        """The risks that the report before did not have."""
        return tuple(change.risk for change in self.came if change.whole)

    @property
    def grown(self) -> tuple[str, ...]:
        """The risks that have objects which they did not have in the report before."""
        return tuple(change.risk for change in self.came if not change.whole)

    @property
    def gone(self) -> tuple[str, ...]:
        """The risks of the report before that this one does not have, and could have told."""
        return tuple(change.risk for change in self.went if change.whole)


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of the newest reports of a day, or of the week that begins with it.

    `new`, `gone` and `grown` are risks with the number of their clusters. `accepted_applies` and `accepted_unknown` are
    how many of `applies` and `unknown` are recorded as accepted.
    """

    day: date
    clusters: int
    failed: int
    applies: int
    unknown: int
    new: tuple[tuple[str, int], ...]
    gone: tuple[tuple[str, int], ...]
    grown: tuple[tuple[str, int], ...] = ()
    accepted_applies: int = 0
    accepted_unknown: int = 0

    @property
    def accepted(self) -> int:
        """How many risks the reports record as accepted."""
        return self.accepted_applies + self.accepted_unknown


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
            known = {name: risk for name, risk in risks_before.items() if not may_be_untold(report, name)}
            applies = sum(risk.applies == "True" for risk in report.risks)
            accepted = [risk.applies == "True" for risk in report.risks if risk.name in report.accepted]
            report_steps.append(
                ReportStep(
                    cluster=cluster,
                    observed=observed,
                    target=report.target_version,
                    completed=True,
                    applies=applies,
                    unknown=len(report.risks) - applies,
                    accepted_applies=accepted.count(True),
                    accepted_unknown=accepted.count(False),
                    first=last_report is None,
                    came=_changes(risks_now, risks_before) if last_report else (),
                    went=_changes(known, risks_now) if last_report else (),
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
    # A check that is unknown does not name all of its objects, so none of them came or went.
    comparable = (
        risk
        for risk in risks.values()
        if risk.name not in other_risks or risk.applies == other_risks[risk.name].applies == "True"
    )
    return changes(comparable, other_risks)


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
        days.append(
            Day(
                day=day,
                clusters=len(newest),
                failed=sum(not step.completed for step in newest),
                applies=sum(step.applies for step in newest),
                unknown=sum(step.unknown for step in newest),
                accepted_applies=sum(step.accepted_applies for step in newest),
                accepted_unknown=sum(step.accepted_unknown for step in newest),
                new=_by_clusters((step.cluster, name) for step in steps for name in step.new),
                gone=_by_clusters((step.cluster, name) for step in steps for name in step.gone),
                grown=_by_clusters((step.cluster, name) for step in steps for name in step.grown),
            )
        )
    return tuple(days)


def changes_of_day(day: Day) -> tuple[int, int, int]:
    """Returns how many risks were new, grown and gone, each counted once for each of its clusters."""
    new, grown, gone = (sum(count for _, count in changed) for changed in (day.new, day.grown, day.gone))
    return new, grown, gone


def _by_clusters(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, int], ...]:
    """Returns each risk of the pairs (cluster, risk) with the number of its clusters, the most clusters first."""
    # Each risk counts once for a cluster, however many of its reports have it.
    counts = Counter(name for _, name in set(pairs))
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
