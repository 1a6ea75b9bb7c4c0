"""Renders the preflights of a fleet as data for programs, and as Markdown for a pull request. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runup.cli.fleet.render import fleet_page
from runup.cli.fleet.render.fleet_text import headline, reasons_text, shorten_names
from runup.cli.preflight.outputs import Shown
from runup.cli.preflight.render import output_formats as forms
from runup.cli.preflight.render import report_changes
from runup.cli.render.text import machine_parts, plain
from runup.fleet.decide.matrix import Matrix
from runup.preflight.decide.findings import RESULTS

# Characters of a line of Markdown in which clusters are named.
_ROOM = 100


def summary(table: Matrix, code: int) -> dict[str, Any]:
    """Returns the fleet as data: the summary, each risk with its clusters, and groups."""
    return {
        "exitCode": code,
        "counts": {result.key: table.number(result) for result in RESULTS},
        "risks": [
            {
                "name": row.name,
                "severity": row.severity or None,
                "applies": list(row.applies),
                "unknown": list(row.unknown),
                "accepted": list(row.accepted),
                "informs": list(row.informs),
                "refuses": list(row.refuses),
                "because": list(row.because),
                "message": row.message,
                "remediation": row.fix,
            }
            for row in table.rows
        ],
        "groups": [
            {"clusters": list(each.clusters), "applies": list(each.applies), "unknown": list(each.unknown)}
            for each in table.groups
        ],
        "notJudged": [{"cluster": name, "why": problem} for name, problem in table.failed],
    }


def markdown(table: Matrix) -> str:
    """Returns the fleet as Markdown: one list of risks with their clusters, short enough for a comment."""
    lines = [f"# {headline(table)}\n"]
    total = len(table.clusters)
    for row in table.rows:
        if row.applies:
            clusters = _names_and_share(row.applies, total)
            refused = f"; refuses the update of {_names_and_share(row.refuses, total)}" if row.refuses else ""
            lines.append(f"- [ ] **{row.name}** ({row.severity or 'unknown severity'}): {clusters}{refused}")
            lines += [f"  {plain(f'{cluster}: {text}')}" for cluster, text in row.grown]
            if row.fix:
                lines.append(f"  Fix: {plain(row.fix)}")
    lines += [
        f"- [ ] {row.name} is unknown: {_names_and_share(row.unknown, total)}" for row in table.rows if row.unknown
    ]
    lines += [
        f"- [x] {row.name} is accepted: {_names_and_share(row.accepted, total)}{plain(reasons_text(row))}"
        for row in table.rows
        if row.accepted
    ]
    if table.failed:
        lines.append("\n## Could not be evaluated\n")
        lines += [f"- **{plain(name)}**: {plain(problem)}" for name, problem in table.failed]
    shared_groups = [group for group in table.groups if len(group.clusters) > 1]
    if shared_groups and len(table.groups) > 1:
        lines.append("\n## Clusters with the same result\n")
        for group in shared_groups:
            risks = ", ".join((*group.applies, *group.unknown)) or group.result.text
            lines.append(f"- {len(group.clusters)}: {plain(shorten_names(group.clusters, _ROOM))}: {risks}")
    return "\n".join(lines) + "\n"


def _names_and_share(clusters: Sequence[str], total: int) -> str:
    return f"{len(clusters)} of {total}: {plain(shorten_names(clusters, _ROOM))}"


# The renderers of `runup.cli.preflight.outputs.FORMS`.


def as_json(shown: Shown, form: str = "json") -> Iterator[str]:
    """Yields the fleet as JSON: its summary, and every cluster."""
    clusters = ({**forms.data(each), "labels": dict(shown.labels.get(each.name, {}))} for each in shown.results)
    return machine_parts(summary(_matrix(shown), shown.code), "clusters", clusters, form)


def as_yaml(shown: Shown) -> Iterator[str]:
    """Yields the fleet as YAML."""
    return as_json(shown, "yaml")


def as_markdown(shown: Shown) -> str:
    """Returns the fleet as Markdown, or the changes since a baseline."""
    return report_changes.markdown(shown.results, shown.baseline.name) if shown.baseline else markdown(_matrix(shown))


def as_html(shown: Shown) -> str:
    """Returns the fleet as a web page."""
    return fleet_page.page(_matrix(shown), shown.results, shown.results[0].tried, shown.labels)


def _matrix(shown: Shown) -> Matrix:
    assert shown.matrix is not None
    return shown.matrix
