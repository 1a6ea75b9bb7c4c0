"""The few primitives that the texts of `oc` are made of: indenting, tables, durations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from kubekit.lang.printable import as_json, encoded, is_hazardous, one_line

Stream = Literal["out", "err"]
# What a command prints, in order: which stream, and the bytes as they are.
Output = tuple[Stream, str]


def out(text: str) -> Output:
    """`text` for stdout."""
    return ("out", text)


def err(text: str) -> Output:
    """`text` for stderr."""
    return ("err", text)


def indented(message: str) -> str:
    """`message` with two blanks after every newline, empty lines included."""
    return message.replace("\n", "\n  ")


def reason_and_message(reason: str, message: str) -> str:
    """The two lines that follow a condition's name everywhere, without a newline at the end."""
    return f"  Reason: {reason}\n  Message: {indented(message)}"


def columns(rows: Iterable[Sequence[str]], *, minwidth: int = 0, padding: int = 3) -> str:
    """`rows` as Go's tabwriter aligns them; a row's last cell is never padded, and each row ends in a newline.

    Widths hold for a run of consecutive rows that all have the column, so a row with fewer cells starts afresh.
    """
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths: list[list[int]] = [[] for _ in lines]
    _measure(lines, widths, 0, len(lines), 0, minwidth, padding)
    text = []
    for line, own in zip(lines, widths, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(line, own, strict=False)]
        text.append("".join([*cells, *line[len(own) :]]) + "\n")
    return "".join(text)


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """`rows` with three blanks between columns and none at a line's end, the same in a terminal and in a pipe."""
    return "".join(line.rstrip() + "\n" for line in columns(rows).splitlines())


def _measure(
    lines: list[list[str]], widths: list[list[int]], start: int, end: int, column: int, minwidth: int, padding: int
) -> None:
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
        _measure(lines, widths, block, row, column + 1, minwidth, padding)


def shortened(text: str, limit: int) -> str:
    """The first line of `text`, cut to `limit` characters at a word where that is possible."""
    line = text.strip().partition("\n")[0]
    if len(line) <= limit:
        return line
    cut = line[: limit - 1].rstrip()
    word = cut.rpartition(" ")[0]
    return (word if len(word) > limit // 2 else cut).rstrip(",;:. ") + "…"


def timestamp(moment: datetime | None) -> str:
    """A time as Kubernetes writes it, in UTC, or nothing."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago `moment` was, in its largest unit: `42 s ago`, `5 min ago`, `3 h ago`, `12 days ago`."""
    if moment is None:
        return "at a time that was not told"
    seconds = max(int((now - moment).total_seconds()), 0)
    for unit, length, from_ in (("days", 86400, 2 * 86400), ("h", 3600, 2 * 3600), ("min", 60, 120)):
        if seconds >= from_:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def machine(value: Any, form: str) -> str:
    """`value` (dicts, lists, text, numbers) as JSON or YAML (`form`), ready to be read by a program."""
    if form == "json":
        return as_json(value) + "\n"
    import yaml

    class Dumper(yaml.SafeDumper):
        """Double quotes around what has to be escaped: there alone YAML knows escapes."""

    def text(dumper: yaml.SafeDumper, found: str) -> yaml.ScalarNode:
        style = '"' if is_hazardous(found) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", found, style=style)

    Dumper.add_representer(str, text)
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": False, "width": 110}
    return encoded(str(yaml.dump(value, Dumper=Dumper, **options)))
