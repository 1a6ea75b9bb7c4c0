"""The command `runup fleet history`: what came and went, out of the reports that `--store` has kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from kubekit.errors import Terminal
from kubekit.kube.clock import SystemClock
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, out, timestamp
from runup.fleet.cli.fleet_members import warnings
from runup.fleet.decide.trend import Day, Step, days, steps
from runup.preflight.control import report_store


def run(store: str, cluster: str, last_days: int, output: str | None) -> int:
    """Prints the history of one cluster, or of all of them day by day."""
    folder = Path(store)
    names = report_store.clusters_in(folder)
    if cluster and cluster not in names:
        raise CommandError(f"--store {store} has no report of {cluster}; there are reports of {', '.join(names)}")
    if not names:
        raise CommandError(f"--store {store} has no report; make some: runup fleet preflight --store {store}")
    since = SystemClock().now() - timedelta(days=last_days) if last_days else None
    reports, notes = [], []
    for name in [cluster] if cluster else names:
        for kept in report_store.reports_of(folder, name):
            if since is not None and kept.observed < since:
                continue
            try:
                reports.append((name, kept.observed, kept.report()))
            except Terminal as error:
                notes.append(f"left out: {error.message}")
    found = steps(reports)
    screen = screen_of(sys.stdout)
    if output:
        printed = [out(machine(reports_as_data(found), output))]
    elif cluster:
        printed = [out(part) for part in report_lines(found, screen)]
    else:
        printed = [out(part) for part in day_lines(days(found), screen)]
    write([*warnings(notes), *printed])
    return 0


def day_lines(found: Sequence[Day], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields a line for each day, the newest last."""
    if not found:
        yield join_parts(wrap_text("No report is as new as that; leave out --days, or give more.", screen))
        return
    columns = tuple(map(Column, ("DAY", "CLUSTERS", "NOT JUDGED", "APPLY", "UNKNOWN")))
    rows = [
        Row(
            (
                f"{day.day:%Y-%m-%d}",
                *map(str, (day.clusters, day.failed, day.applies, day.unknown)),
                _names_with_counts(day.new),
                _names_with_counts(day.gone),
            )
        )
        for day in found
    ]
    yield draw_table(Table((*columns, Column("NEW", flows=True), Column("GONE", flows=True)), rows, gap=2), screen)


def _names_with_counts(pairs: Sequence[tuple[str, int]]) -> str:
    return ", ".join(name if number == 1 else f"{name} ({number} clusters)" for name, number in pairs)


def report_lines(found: Sequence[Step], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields a line for each report of a cluster, the newest last."""
    columns = tuple(map(Column, ("OBSERVED", "TARGET", "APPLY", "UNKNOWN")))
    rows = [
        Row(
            (
                timestamp(step.observed),
                step.target,
                *((str(step.applies), str(step.unknown)) if step.completed else ("", "")),
                "could not be judged" if not step.completed else "first report" if step.first else ", ".join(step.new),
                ", ".join(step.gone),
            )
        )
        for step in found
    ]
    yield draw_table(Table((*columns, Column("NEW", flows=True), Column("GONE", flows=True)), rows, gap=2), screen)


def reports_as_data(found: Sequence[Step]) -> list[dict[str, Any]]:
    """Returns each report for programs."""
    return [
        {
            "cluster": step.cluster,
            "observedTime": timestamp(step.observed),
            "target": step.target,
            "completed": step.completed,
            "applies": step.applies,
            "unknown": step.unknown,
            "new": list(step.new),
            "gone": list(step.gone),
            "first": step.first,
        }
        for step in found
    ]
