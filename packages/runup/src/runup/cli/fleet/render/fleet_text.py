"""Renders the preflights of a fleet as text: risks by cluster, shared risks, and clusters without an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubekit.lang.text import count, one_line
from runup.cli.fleet.shared import grouped_problems
from runup.cli.fleet.shared import shorten_names as shorten_names
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, cells, draw_table, wrap_text
from runup.fleet.decide.matrix import Matrix, RiskRow, group_alike
from runup.fleet.decide.trend import ReportStep
from runup.preflight.decide.findings import Result
from runup.report.changes import Change

# The width that text has where none is known.
_WIDTH = 80
_INDENT = 2
# As many rows and groups as are printed without `-v`.
_ROWS = 25
_GROUPS = 10
_NAMED_RISKS = 6
_MARKS = {"refuses": "R", "applies": "X", "unknown": "?", "accepted": "a", "informs": "i", "": "."}
_LEGEND = "R refuses, X applies, ? unknown, a accepted, i informs, . not found"
_WORST_FIRST = (Result.COULD_NOT_RUN, Result.APPLY, Result.UNKNOWN, Result.CLEAR)
_SEVERITY_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


def text(table: Matrix, screen: Screen = PIPE, *, whole: bool = False) -> Iterator[Drawn]:
    """Yields the result of the fleet; `whole` has every risk, group and name."""
    width = screen.width or _WIDTH
    # Also in a pipe, of which most end in a log or a mail.
    screen = screen if screen.width else Screen(width)
    yield join_parts(wrap_text(headline(table), screen))
    rows = [row for row in table.rows if whole or row.applies or row.unknown]
    if rows:
        yield from _risk_lines(rows if whole else rows[:_ROWS], table, screen, width, whole=whole)
    if not whole and len(rows) > _ROWS:
        yield join_parts(f"  and {len(rows) - _ROWS} more risks: -v\n")
    yield from _known_lines(table, screen, whole=whole)
    shared_groups = [group for group in table.groups if whole or len(group.clusters) > 1]
    if shared_groups and len(table.groups) > 1 and len(table.clusters) > 2:
        yield join_parts("\nClusters with the same result:\n")
        for group in shared_groups if whole else shared_groups[:_GROUPS]:
            names = ", ".join(map(one_line, group.clusters)) if whole else shorten_names(group.clusters, width - 10)
            yield wrap_text(f"{len(group.clusters)}: {names}", screen, first="  ", indent=4)
            texts = []
            for risks, verb, of_one in (
                (group.applies, "apply", "applies"),
                (group.unknown, "are unknown", "is unknown"),
            ):
                if risks and (whole or len(risks) <= _NAMED_RISKS):
                    texts.append(f"{', '.join(risks)} {of_one if len(risks) == 1 else verb}")
                elif risks:
                    first_risks = ", ".join(risks[:_NAMED_RISKS])
                    texts.append(f"{first_risks} and {len(risks) - _NAMED_RISKS} more {verb}")
            yield wrap_text(("; ".join(texts) or group.result.text), screen, first="    ", indent=6)
        if not whole and len(shared_groups) > _GROUPS:
            yield join_parts(f"  and {len(shared_groups) - _GROUPS} more groups: -v\n")
    if table.failed:
        yield join_parts("\nCould not be evaluated, so nothing is known about them:\n")
        for names, problem in grouped_problems(table.failed):
            yield wrap_text(f"{names}: {problem.strip()}", screen, first="  ", indent=4)


def headline(table: Matrix) -> str:
    """Returns one sentence with the number of clusters by their result, the worst first."""
    counts = [f"{number} {result.counted}" for result in _WORST_FIRST if (number := table.number(result))]
    # The last count is that of clusters with nothing in the way.
    counts[-1:] = [f"{counts[-1]} ({table.accepting} with accepted risks)"] if table.accepting else counts[-1:]
    total = len(table.clusters)
    return f"Preflight of {count(total, 'cluster')}: {', '.join(counts)}"


def _risk_lines(rows: Sequence[RiskRow], table: Matrix, screen: Screen, width: int, *, whole: bool) -> Iterator[Drawn]:
    evaluated = table.evaluated
    names = max(cells(row.name) for row in rows)
    # Next to the names of the risks: indentation, the severity, and two blanks before each column.
    needed = _INDENT + names + 2 + len("SEVERITY") + sum(2 + max(cells(one_line(name)), 1) for name in evaluated)
    if needed <= width:
        columns = (
            Column(title="RISK"),
            Column(title="SEVERITY", styles=_SEVERITY_STYLES),
            *(Column(title=one_line(name)) for name in evaluated),
        )
        lines = [Row((row.name, row.severity, *(_MARKS[row.mark(name)] for name in evaluated))) for row in rows]
        yield join_parts(
            "\n", draw_table(Table(columns=columns, rows=lines, indent=_INDENT, gap=2), screen), f"  {_LEGEND}\n"
        )
        return
    for title, state in (("Risks that apply:", "applies"), ("Unknown:", "unknown")):
        shown_rows = [row for row in rows if getattr(row, state)]
        if shown_rows:
            yield join_parts(f"\n{title}\n")
        for row in shown_rows:
            clusters = getattr(row, state)
            severity = f" ({row.severity})" if row.severity and state == "applies" else ""
            refused = ", refuses the update" if row.refuses and state == "applies" else ""
            head = f"{len(clusters)} of {len(table.clusters)}: {row.name}{severity}{refused}: "
            if whole:
                yield wrap_text(f"{head}{', '.join(map(one_line, clusters))}", screen, first="  ", indent=6)
            else:
                yield join_parts(f"  {head}{shorten_names(clusters, width - _INDENT - cells(head))}\n")


def _known_lines(table: Matrix, screen: Screen, *, whole: bool) -> Iterator[Drawn]:
    """Yields what accepted risks cover by now, and which risks are accepted in which clusters, and why."""
    grown = [pair for row in table.rows for pair in row.grown]
    if grown:
        yield join_parts("\nGrown:\n")
    for cluster, text in grown if whole else grown[:_ROWS]:
        yield wrap_text(f"{one_line(cluster)}: {text}", screen, first="  ", indent=4)
    if not whole and len(grown) > _ROWS:
        yield join_parts(f"  and {len(grown) - _ROWS} more: -v\n")
    alike = group_alike([row for row in table.rows if row.accepted], lambda row: (row.accepted, row.because))
    if alike:
        yield join_parts("\nAccepted:\n")
    for (clusters, _), group in alike if whole else alike[:_ROWS]:
        names = shorten_names(clusters, (screen.width or _WIDTH) - _INDENT)
        risks = ", ".join(row.name for row in group)
        line = f"{len(clusters)} of {len(table.clusters)}: {names}: {risks}{reasons_text(group[0])}"
        yield wrap_text(line, screen, first="  ", indent=4)
    if not whole and len(alike) > _ROWS:
        yield join_parts(f"  and {len(alike) - _ROWS} more groups: -v\n")


def reasons_text(row: RiskRow) -> str:
    """Returns why a risk is accepted, in brackets; empty if that is not known."""
    return f" ({'; '.join(map(one_line, row.because))})" if row.because else ""


# As many objects as are named of a risk.
_OBJECTS = 3


def names_with_counts(pairs: Sequence[tuple[str, int]]) -> str:
    """Returns risks with the number of their clusters, where that is not 1."""
    return ", ".join(name if number == 1 else f"{name} ({number} clusters)" for name, number in pairs)


def new_risks_text(step: ReportStep) -> str:
    """Returns a text about the new risks of a report, or why they are unknown."""
    if not step.completed:
        return "could not be evaluated"
    return "first report" if step.first else _changes_text(step.came, "now also")


def gone_risks_text(step: ReportStep) -> str:
    """Returns a text about the risks that a report no longer has."""
    return _changes_text(step.went, "no longer")


def _changes_text(changes: Sequence[Change], verb: str) -> str:
    """Returns which risks came or went, and which objects they were about."""
    return "; ".join(
        f"{change.risk}{f' ({_objects_text(change)})' if change.objects or change.more else ''}"
        if change.whole
        else f"{change.risk}: {verb} {_objects_text(change)}"
        for change in changes
    )


def _objects_text(change: Change) -> str:
    omitted = max(len(change.objects) - _OBJECTS, 0) + change.more
    if not change.objects:
        return f"{omitted} {'object' if omitted == 1 else 'objects'}"
    return ", ".join(change.objects[:_OBJECTS]) + (f" and {omitted} more" if omitted else "")
