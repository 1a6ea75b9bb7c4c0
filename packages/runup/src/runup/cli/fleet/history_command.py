"""The command `runup fleet history`: new and gone risks of the reports in a `--store`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kubekit.error_types import Terminal
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import one_line, timestamp
from runup.cli.errors import CommandError
from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.render.fleet_text import gone_risks_text, names_with_counts, new_risks_text
from runup.cli.fleet.shared import warnings
from runup.cli.output import screen_of, write
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, out
from runup.fleet.decide.trend import Day, ReportStep, steps_of_reports, summarize_days
from runup.preflight.control import stores

if TYPE_CHECKING:
    from runup.preflight.control.stores import Store
    from runup.process.connection import Connection
    from runup.report.report import Report

# Accepted risks are among those that apply or are unknown.
_COUNTS = ("APPLY", "UNKNOWN", "ACCEPTED OF THESE")


def run(
    connection: Connection, store: str, cluster: str, last_days: int, output: str | None, *, weeks: bool = False
) -> int:
    """Prints the history of one cluster, or of all of them day by day, or week by week."""
    opened_store = stores.open_store(store, connection.config)
    names = opened_store.clusters()
    if cluster and cluster not in names:
        stored_text = f"there are reports of {fleet_text.shorten_names(names, 200)}" if names else "it has no reports"
        raise CommandError(f"--store {store} has no report of {one_line(cluster)}; {stored_text}")
    if not names:
        raise CommandError(f"--store {store} has no report; make some: runup fleet preflight --store {store}")
    since = SystemClock().now() - timedelta(days=last_days) if last_days else None
    notes: list[str] = []
    steps: list[ReportStep] = []
    any_readable = False
    # One cluster after the other: the reports of all of them need not be in memory at once.
    for name in [cluster] if cluster else names:
        all_steps = steps_of_reports(_readable_reports(opened_store, name, notes))
        any_readable = any_readable or bool(all_steps)
        steps += [step for step in all_steps if since is None or step.observed >= since]
    if notes and not any_readable:
        raise CommandError(f"--store {store} has no report that can be read ({notes[0]})")
    steps.sort(key=lambda step: (step.observed, step.cluster))
    screen = screen_of(sys.stdout)
    if output == "html":
        from runup.cli.fleet.render import history_page

        left_out = (*notes, *opened_store.notes())
        page = history_page.page(steps, cluster, SystemClock().now(), weeks=weeks, notes=left_out)
        printed = [out(page)]
    elif output:
        printed = [out(machine(reports_as_data(steps), output))]
    elif cluster:
        printed = [out(line) for line in report_lines(steps, screen)]
    else:
        printed = [out(part) for part in day_lines(summarize_days(steps, weeks=weeks), screen, weeks=weeks)]
    write([*warnings([*notes, *opened_store.notes()]), *printed])
    return 0


def _readable_reports(store: Store, cluster: str, notes: list[str]) -> Iterator[tuple[str, datetime, Report]]:
    """Yields the reports of a cluster; those that cannot be read are added to `notes`."""
    for report in store.reports_of(cluster):
        try:
            yield cluster, report.observed, report.report()
        except Terminal as error:
            notes.append(f"left out: {error.message}")


def day_lines(history_days: Sequence[Day], screen: Screen = PIPE, *, weeks: bool = False) -> Iterator[Drawn]:
    """Yields a line for each day, or each week by its Monday, the newest last."""
    if not history_days:
        yield join_parts(wrap_text("No report is as new as that; leave out --days, or give more.", screen))
        return
    columns = tuple(
        Column(title=title) for title in ("WEEK OF" if weeks else "DAY", "CLUSTERS", "NOT EVALUATED", *_COUNTS)
    )
    rows = [
        Row(
            (
                f"{day.day:%Y-%m-%d}",
                *map(str, (day.clusters, day.failed, day.applies, day.unknown, day.accepted)),
                names_with_counts(day.new),
                names_with_counts(day.grown),
                names_with_counts(day.gone),
            )
        )
        for day in history_days
    ]
    yield draw_table(
        Table(
            columns=(*columns, *(Column(title=title, flows=True) for title in ("NEW", "GROWN", "GONE"))),
            rows=rows,
            gap=2,
        ),
        screen,
    )


def report_lines(report_steps: Sequence[ReportStep], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields a line for each report of a cluster, the newest last."""
    columns = tuple(Column(title=title) for title in ("OBSERVED", "TARGET", *_COUNTS))
    rows = [
        Row(
            (
                timestamp(step.observed),
                step.target,
                *(str(n) if step.completed else "" for n in (step.applies, step.unknown, step.accepted)),
                one_line(new_risks_text(step)),
                one_line(gone_risks_text(step)),
            )
        )
        for step in report_steps
    ]
    yield draw_table(
        Table(columns=(*columns, Column(title="NEW", flows=True), Column(title="GONE", flows=True)), rows=rows, gap=2),
        screen,
    )


def reports_as_data(report_steps: Sequence[ReportStep]) -> list[dict[str, Any]]:
    """Returns each report for programs."""
    return [
        {
            "cluster": step.cluster,
            "observedTime": timestamp(step.observed),
            "target": step.target,
            "completed": step.completed,
            "applies": step.applies,
            "unknown": step.unknown,
            "accepted": step.accepted,
            "new": list(step.new),
            "grown": list(step.grown),
            "gone": list(step.gone),
            "first": step.first,
            "came": [
                {"risk": change.risk, "objects": list(change.objects), "more": change.more} for change in step.came
            ],
            "went": [{"risk": each.risk, "objects": list(each.objects), "more": each.more} for each in step.went],
        }
        for step in report_steps
    ]
