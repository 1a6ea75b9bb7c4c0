"""The primitives of `oc`'s texts: indenting, tables, durations. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kubekit.lang.text import as_json, escape_in_json, is_hazardous, is_to_come, one_line

# Rendered text has the form of messages.
from runup.process.messages import Output as Output
from runup.process.messages import err as err
from runup.process.messages import indent_lines as indent_lines
from runup.process.messages import out as out
from runup.process.messages import reason_and_message as reason_and_message


def columns(rows: Iterable[Sequence[str]], *, minwidth: int = 0, padding: int = 3) -> str:
    """Aligns `rows` as Go's tabwriter does; a row's last cell is never padded, and each row ends in a newline.

    Widths hold for a run of consecutive rows that all have the column, so a row with fewer cells starts afresh.
    """
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths: list[list[int]] = [[] for _ in lines]
    _measure_column(lines, widths, start=0, end=len(lines), column=0, minwidth=minwidth, padding=padding)
    text = []
    for line, line_widths in zip(lines, widths, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(line, line_widths, strict=False)]
        text.append("".join([*cells, *line[len(line_widths) :]]) + "\n")
    return "".join(text)


def align_columns(rows: Iterable[Sequence[str]]) -> str:
    """Aligns `rows` with three blanks between columns and none at a line's end, in a terminal and in a pipe alike."""
    return "".join(line.rstrip() + "\n" for line in columns(rows).splitlines())


def _measure_column(
    lines: list[list[str]], widths: list[list[int]], start: int, end: int, column: int, minwidth: int, padding: int
) -> None:
    """Computes the widths of `column` in the lines from `start` to `end`, and of all columns to its right."""
    row = start
    while row < end:
        if len(lines[row]) - 1 <= column:
            row += 1
            continue
        block = row
        while row < end and len(lines[row]) - 1 > column:
            row += 1
        width = max(minwidth, *(len(lines[i][column]) + padding for i in range(block, row)))
        for i in range(block, row):
            widths[i].append(width)
        # Go's text/tabwriter: a column is a block of consecutive lines with a cell there, aligned by itself.
        _measure_column(lines, widths, start=block, end=row, column=column + 1, minwidth=minwidth, padding=padding)


def shorten(text: str, limit: int) -> str:
    """Returns the first line of `text`, cut to `limit` characters, at a word if possible."""
    line = text.strip().partition("\n")[0]
    if len(line) <= limit:
        return line
    cut = line[: limit - 1].rstrip()
    word = cut.rpartition(" ")[0]
    return (word if len(word) > limit // 2 else cut).rstrip(",;:. ") + "…"


def age(moment: datetime | None, now: datetime) -> str:
    """Returns how long ago `moment` was, in its largest unit: `42 s ago`, `5 min ago`, `3 h ago`, `12 days ago`."""
    if moment is None:
        return "at an unknown time"
    if is_to_come(moment, now):
        return "at a time that is still to come"
    seconds = max(int((now - moment).total_seconds()), 0)
    for unit, length, from_ in (("days", 86400, 2 * 86400), ("h", 3600, 2 * 3600), ("min", 60, 120)):
        if seconds >= from_:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def machine(value: Any, form: str) -> str:
    """Returns `value` (dicts, lists, text, numbers) as JSON or YAML (`form`) for programs."""
    if form == "json":
        return as_json(value) + "\n"
    import yaml

    class Dumper(yaml.SafeDumper):
        """A YAML dumper that double-quotes strings that need escapes, since YAML has escapes only there."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = '"' if is_hazardous(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": False, "width": 110}
    return escape_in_json(str(yaml.dump(value, Dumper=Dumper, **options)))


def machine_parts(head: Mapping[str, Any], key: str, items: Iterable[Any], form: str) -> Iterator[str]:
    """Yields what `machine({**head, key: list(items)}, form)` returns, a part for each item."""
    if form == "json":
        yield from fill_last_list(as_json({**head, key: []}) + "\n", map(as_json, items))
        return
    yield machine(head, form)
    number = -1
    for number, item in enumerate(items):
        text = machine({key: [item]}, form)
        yield text.partition("\n")[2] if number else text
    if number < 0:
        yield machine({key: []}, form)


def fill_last_list(document: str, items: Iterable[str]) -> Iterator[str]:
    """Yields an indented JSON document with `items` in the empty list at its end, a part for each item."""
    opening, _, closing = document.rpartition("[]")
    line = opening.rpartition("\n")[2]
    indent = "\n" + " " * (len(line) - len(line.lstrip()))
    yield f"{opening}["
    number = -1
    for number, item in enumerate(items):
        deeper = f"{indent}  "
        yield f"{',' if number else ''}{deeper}{item.replace(chr(10), deeper)}"
    yield f"{indent if number >= 0 else ''}]{closing}"


# A number sign makes a heading only at the beginning of a line.
_MARKUP = re.compile(r"^#|[\\*_\[\]<>|`]")
# In a code span no character has a meaning. Renderers make links of URLs as they are.
_LITERAL = re.compile(r"(?<!`)(`[^`]+`(?!`)|https?://[^\s<>`|\[\]*\\]+)")


def plain(text: str) -> str:
    """Returns untrusted text on one line with its Markdown characters escaped; code spans and URLs stay as they are."""
    line = " ".join(text.split())
    parts = _LITERAL.split(line)
    return "".join(part if index % 2 else _MARKUP.sub(r"\\\g<0>", part) for index, part in enumerate(parts))
