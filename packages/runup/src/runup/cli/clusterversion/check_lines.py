"""Renders the rows of `runup check` as lines: the result first, the way out below. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runup.cli.render import table
from runup.cli.render.screen import PIPE, Drawn, Screen
from runup.clusterversion.decide.prerequisite_facts import PrerequisiteRow, Result

_STYLES = {Result.OK.value: "green", Result.PROBLEM.value: "bold red", Result.UNKNOWN.value: "yellow"}
_WIDEST = max(len(result.value) for result in Result)


def text(rows: Sequence[PrerequisiteRow], screen: Screen = PIPE) -> Drawn:
    """Returns one line a row, with `ok`, `problem` or `unknown` first."""
    columns = (table.Column("", least=_WIDEST, styles=_STYLES), table.Column("", flows=True))
    lines = [
        table.Row((row.result.value, f"{row.name}: {row.says}"), (row.way_out,) if row.way_out else ()) for row in rows
    ]
    return table.draw_table(table.Table(columns, lines, gap=2), screen)
