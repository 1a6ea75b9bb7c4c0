"""Tables that fit: on a terminal wrapped at words to its width, in a pipe one line a row, for grep. Pure.

Three layouts, the first that fits is taken: all columns beside each other; what flows (messages) below its row; and the
columns that still have no room below it too, by their titles. Nothing is cut off. Widths are those of cells, so that
wide and combining characters keep columns straight. rich draws, and is imported only where something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kubekit.lang.printable import one_line, printable
from runup.cli.render.screen import PIPE, Drawn, Screen

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

# Less room than this makes a sentence a pole: then it stands below its row.
_FLOW = 36
_KEY = 16
_GAP = 2
_PLAIN_GAP = 3
_BELOW = 2


class Column(msgspec.Struct, frozen=True):
    """One column. `flows`: sentences, wrapped at words. `folds`: names, folded rather than put below their row.

    `least`: its narrowest. `styles`: colours of whole cells.
    """

    title: str
    flows: bool = False
    folds: bool = False
    least: int = 0
    styles: Mapping[str, str] = msgspec.field(default_factory=dict)


class Row(msgspec.Struct, frozen=True):
    """Cells by column; `notes` are lines that belong below the first flowing one."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True):
    """Rows below columns, `indent` blanks from the left; without any title there is no head.

    `gap`: blanks between columns in a pipe. `blank` stands where a cell is empty, so that programs can count fields.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    indent: int = 0
    gap: int = _PLAIN_GAP
    blank: str = "-"

    @property
    def head(self) -> bool:
        """Whether there is a line of titles."""
        return any(column.title for column in self.columns)

    @property
    def flow(self) -> int:
        """The place of the first flowing column, below which notes stand; -1 where there is none."""
        return next((place for place, column in enumerate(self.columns) if column.flows), -1)

    def cell(self, row: Row, place: int) -> str:
        """What stands there, safe to be shown; only a flowing cell has several lines."""
        text = row.cells[place]
        return (printable(text.strip()) if self.columns[place].flows else one_line(text)) or self.blank


def drawn(table: Table, screen: Screen = PIPE) -> Drawn:
    """`table` on `screen`; each line ends in a newline and in no blank."""
    return Drawn(plain(table)) if screen.width is None else _Layout(table, screen.width).drawn(screen)


def cells(text: str) -> int:
    """How many cells a terminal uses for `text`."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def plain(table: Table) -> str:
    """One line a row, columns aligned, whole sentences: the form for pipes."""
    places, flow = range(len(table.columns)), max(table.flow, 0)
    lines = [[column.title for column in table.columns]] if table.head else []
    for row in table.rows:
        lines.append([" ".join(table.cell(row, place).split("\n")) for place in places])
        lines += [[""] * flow + [one_line(note)] for note in row.notes]
    return aligned(lines, least=[column.least for column in table.columns], indent=table.indent, gap=table.gap)


def aligned(
    lines: Sequence[Sequence[str]], *, least: Sequence[int] = (), indent: int = 0, gap: int = _PLAIN_GAP
) -> str:
    """Lines of cells, each column as wide as its widest cell that is followed by another; no blanks at a line's end."""
    widths = list(least) + [0] * max((len(line) - len(least) for line in lines), default=0)
    for line in lines:
        for place, cell in enumerate(line[:-1]):
            widths[place] = max(widths[place], cells(cell))
    between = " " * gap
    shown = (between.join(_padded(cell, width) for cell, width in zip(line, widths, strict=False)) for line in lines)
    return "".join(f"{' ' * indent}{line}".rstrip() + "\n" for line in shown)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def wrapped(text: str, screen: Screen, *, first: str = "", indent: int = 0) -> Drawn:
    """`text` after `first`, further lines `indent` blanks from the left; on a terminal wrapped at words.

    An address or a command that is longer than a line stays whole: a terminal folds it, and it can be copied.
    """
    text = printable(text)
    lines = (
        text.split("\n") if screen.width is None else _folded(text, max(screen.width - max(indent, cells(first)), 1))
    )
    return Drawn("\n".join(f"{' ' * indent if n else first}{line}".rstrip(" ") for n, line in enumerate(lines)) + "\n")


def _folded(text: str, room: int) -> list[str]:
    if text.isascii():
        import textwrap

        kept = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
        return [part for line in text.split("\n") for part in kept.wrap(line) or [""]]
    from rich.text import Text

    # Writing without blanks between words has to be folded somewhere.
    return [line.plain for line in Text(text).wrap(_console(PIPE, room), room, overflow="fold")]


class _Layout:
    """How wide each column is, and which stand below their row."""

    def __init__(self, table: Table, width: int) -> None:
        self._table = table
        self._width = max(width - table.indent, 1)
        self._natural = [self._wide(place) for place in range(len(table.columns))]
        flows = [place for place, column in enumerate(table.columns) if column.flows]
        fixed = [place for place, column in enumerate(table.columns) if not column.flows]
        self._beside = self._fitting(fixed)
        left = self._width - sum(self._natural[place] + _GAP for place in fixed)
        share = (left - _GAP * (len(flows) - 1)) // len(flows) if flows else 0
        needed = max((min(_FLOW, self._natural[place]) for place in flows), default=0)
        if flows and self._beside == fixed and share >= needed:
            self._beside = list(range(len(table.columns)))
            self._share(flows, share)
        self._below = [place for place in range(len(table.columns)) if place not in self._beside]

    def _wide(self, place: int) -> int:
        table, column = self._table, self._table.columns[place]
        texts = [line for row in table.rows for line in table.cell(row, place).split("\n")]
        texts += [note for row in table.rows for note in row.notes] if place == table.flow else []
        return max(column.least, cells(column.title), *map(cells, map(printable, texts)), 1)

    def _fitting(self, fixed: list[int]) -> list[int]:
        """As many of the columns from the left as there is room for; the last of them may be folded."""
        taken: list[int] = []
        left = self._width
        for place in fixed:
            if self._natural[place] > left:
                folds = left >= _KEY and self._table.columns[place].folds
                if taken and not folds:
                    break
                self._natural[place] = left
            taken.append(place)
            left -= self._natural[place] + _GAP
        return taken

    def _share(self, flows: list[int], share: int) -> None:
        """Each flowing column what it needs or its share; what one leaves over goes to the last."""
        for place in flows[:-1]:
            self._natural[place] = min(self._natural[place], share)
        others = sum(self._natural[place] + _GAP for place in self._beside if place != flows[-1])
        self._natural[flows[-1]] = min(self._natural[flows[-1]], max(self._width - others, 1))

    def drawn(self, screen: Screen) -> Drawn:
        """The table as text."""
        console = _console(screen, self._width)
        with console.capture() as capture:
            if self._table.head:
                titles = [self._text(self._table.columns[place].title, "bold") for place in self._beside]
                console.print(self._line(titles))
            for row in self._table.rows:
                for part in self._parts(row):
                    console.print(part)
        lines = (f"{' ' * self._table.indent}{line}".rstrip(" ") for line in capture.get().split("\n")[:-1])
        return Drawn("".join(f"{line}\n" for line in lines))

    def _parts(self, row: Row) -> Iterable[RenderableType]:
        from rich.padding import Padding

        table = self._table
        yield self._line([self._cell(row, place) for place in self._beside])
        for place in self._below:
            title = "" if place == table.flow else table.columns[place].title.capitalize()
            if row.cells[place]:
                text = table.cell(row, place)
                yield Padding(self._text(f"{title}: {text}" if title else text), (0, 0, 0, _BELOW))
            if place == table.flow:
                yield from (Padding(self._text(note), (0, 0, 0, _BELOW)) for note in row.notes)

    def _cell(self, row: Row, place: int) -> Text:
        text = self._table.cell(row, place)
        style = self._table.columns[place].styles.get(text, "")
        notes = row.notes if place == self._table.flow else ()
        return self._text("\n".join([text, *notes]), style)

    def _text(self, text: str, style: str = "") -> Text:
        from rich.text import Text

        return Text(printable(text), style=style, overflow="fold")

    def _line(self, cells_: list[Text]) -> RenderableType:
        from rich.table import Table as Grid

        grid = Grid.grid(padding=(0, _GAP, 0, 0))
        for place in self._beside:
            grid.add_column(width=self._natural[place], overflow="fold")
        grid.add_row(*cells_)
        return grid


def _console(screen: Screen, width: int) -> Console:
    import io

    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width,
        height=screen.height or 24,
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
        no_color=not screen.colour,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
