"""Renders tables that fit: wrapped at words to a terminal's width, or one line a row in a pipe, for grep. Pure.

The first of three layouts that fits is used: all columns side by side; flowing columns (messages) below their row; and
further columns that do not fit below it, too, with their titles. Nothing is cut off. Widths are counted in cells, so
that wide and combining characters keep columns straight. rich does the drawing, and is imported only if something is
drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kubekit.lang.text import one_line, printable
from runup.cli.render.screen import PIPE, Drawn, Screen

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

# The least width of a flowing column, in cells; in less room its text is printed below its row.
_LEAST_FLOW = 36
# The least width to which a column that folds is folded, in cells.
_LEAST_FOLD = 16
# Blanks between columns on a terminal and in a pipe, and before what is printed below its row.
_GAP = 2
_PLAIN_GAP = 3
_INDENT_BELOW = 2


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column. `flows`: sentences, wrapped at words. `folds`: names, folded rather than moved below their row.

    `least`: the minimum width in cells. `styles`: colours of whole cells.
    """

    title: str
    flows: bool = False
    folds: bool = False
    least: int = 0
    styles: Mapping[str, str] = msgspec.field(default_factory=dict)


class Row(msgspec.Struct, frozen=True):
    """Cells by column; `notes` are lines below the first flowing column."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and columns, indented by `indent` blanks; the head is omitted if no column has a title.

    `gap`: blanks between columns in a pipe. `blank` fills empty cells, so that programs can count fields.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    indent: int = 0
    gap: int = _PLAIN_GAP
    blank: str = "-"

    @property
    def head(self) -> bool:
        """Returns whether there is a line of titles."""
        return any(column.title for column in self.columns)

    @property
    def flow_index(self) -> int:
        """The index of the first flowing column, below which notes are printed; -1 if it does not exist."""
        return next((place for place, column in enumerate(self.columns) if column.flows), -1)

    def cell(self, row: Row, place: int) -> str:
        """Returns the cell's printable text; only a flowing cell has several lines."""
        text = row.cells[place]
        return (printable(text.strip()) if self.columns[place].flows else one_line(text)) or self.blank


def draw_table(table: Table, screen: Screen = PIPE) -> Drawn:
    """Returns `table` drawn on `screen`; each line ends in a newline and without trailing blanks."""
    return Drawn(plain_table(table)) if screen.width is None else _Layout(table, screen.width).drawn(screen)


def cells(text: str) -> int:
    """Returns the number of cells that a terminal uses for `text`."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def plain_table(table: Table) -> str:
    """Returns the table for pipes: one line for each row and each note, columns aligned, nothing wrapped or cut off.

    A note is in the first flowing column, or in the first column if none flows.
    """
    places, note_place = range(len(table.columns)), max(table.flow_index, 0)
    lines = [[column.title for column in table.columns]] if table.head else []
    for row in table.rows:
        lines.append([" ".join(table.cell(row, place).split("\n")) for place in places])
        lines += [[""] * note_place + [one_line(note)] for note in row.notes]
    return align_lines(lines, least=[column.least for column in table.columns], indent=table.indent, gap=table.gap)


def align_lines(
    lines: Sequence[Sequence[str]], *, least: Sequence[int] = (), indent: int = 0, gap: int = _PLAIN_GAP
) -> str:
    """Returns lines of cells as text, columns aligned, without trailing blanks.

    `least` are minimum widths by column, in cells. A line's last cell does not widen its column.
    """
    widths = list(least) + [0] * max((len(line) - len(least) for line in lines), default=0)
    for line in lines:
        for place, cell in enumerate(line[:-1]):
            widths[place] = max(widths[place], cells(cell))
    between = " " * gap
    padded_lines = (
        between.join((cell + " " * (width - cells(cell))) for cell, width in zip(line, widths, strict=False))
        for line in lines
    )
    return "".join(f"{' ' * indent}{line}".rstrip() + "\n" for line in padded_lines)


def wrap_text(text: str, screen: Screen, *, first: str = "", indent: int = 0) -> Drawn:
    """Returns `text` after `first`, further lines indented by `indent` blanks; on a terminal wrapped at words.

    A URL or command that is longer than a line stays whole: a terminal folds it, and it can be copied.
    """
    text = printable(text)
    lines = text.split("\n") if screen.width is None else _fold_text(text, screen.width, cells(first), indent)
    return Drawn("\n".join(f"{' ' * indent if n else first}{line}".rstrip(" ") for n, line in enumerate(lines)) + "\n")


def _fold_text(text: str, width: int, first: int, indent: int) -> list[str]:
    """Returns the lines of a text that has `first` cells before its first line, and `indent` before the others."""
    if text.isascii():
        import textwrap

        room = max(width - indent, 1)
        wrapper = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
        # What precedes the first line takes its room as a word of that length would.
        wrapper.initial_indent = " " * max(first - indent, 0)
        begun = [part for line in text.split("\n")[:1] for part in wrapper.wrap(line) or [""]]
        begun[0] = begun[0][max(first - indent, 0) :]
        wrapper.initial_indent = ""
        return [*begun, *(part for line in text.split("\n")[1:] for part in wrapper.wrap(line) or [""])]
    room = max(width - max(indent, first), 1)
    from rich.text import Text

    # Scripts without blanks between words have to be folded within a word.
    return [line.plain for line in Text(text).wrap(_console(PIPE, room), room, overflow="fold")]


class _Layout:
    """The width of each column, and the columns that are printed below their row."""

    def __init__(self, table: Table, width: int) -> None:
        self._table = table
        self._width = max(width - table.indent, 1)
        self._natural = [self._natural_width(place) for place in range(len(table.columns))]
        flows = [place for place, column in enumerate(table.columns) if column.flows]
        fixed = [place for place, column in enumerate(table.columns) if not column.flows]
        self._beside = self._columns_that_fit(fixed)
        remaining = self._width - sum(self._natural[place] + _GAP for place in fixed)
        share = (remaining - _GAP * (len(flows) - 1)) // len(flows) if flows else 0
        needed = max((min(_LEAST_FLOW, self._natural[place]) for place in flows), default=0)
        # Sentences stand next to the other columns only if all of them have room for readable lines.
        if flows and self._beside == fixed and share >= needed:
            self._beside = list(range(len(table.columns)))
            self._share_width(flows, share)
        self._below = [place for place in range(len(table.columns)) if place not in self._beside]

    def _natural_width(self, place: int) -> int:
        """Returns the width of a column, in cells, at which none of its lines is wrapped."""
        table, column = self._table, self._table.columns[place]
        texts = [line for row in table.rows for line in table.cell(row, place).split("\n")]
        texts += [note for row in table.rows for note in row.notes] if place == table.flow_index else []
        return max(column.least, cells(column.title), *map(cells, map(printable, texts)), 1)

    def _columns_that_fit(self, fixed: list[int]) -> list[int]:
        """Returns the columns from the left that there is room for; the last of them may be folded."""
        chosen_columns: list[int] = []
        remaining = self._width
        for place in fixed:
            if self._natural[place] > remaining:
                folds = remaining >= _LEAST_FOLD and self._table.columns[place].folds
                if chosen_columns and not folds:
                    break
                self._natural[place] = remaining
            chosen_columns.append(place)
            remaining -= self._natural[place] + _GAP
        return chosen_columns

    def _share_width(self, flows: list[int], share: int) -> None:
        """Gives each flowing column the width it needs, up to its share; the last one gets what the others leave."""
        for place in flows[:-1]:
            self._natural[place] = min(self._natural[place], share)
        other_width = sum(self._natural[place] + _GAP for place in self._beside if place != flows[-1])
        self._natural[flows[-1]] = min(self._natural[flows[-1]], max(self._width - other_width, 1))

    def drawn(self, screen: Screen) -> Drawn:
        """Returns the table as text."""
        console = _console(screen, self._width)
        with console.capture() as capture:
            if self._table.head:
                titles = [self._as_text(self._table.columns[place].title, "bold") for place in self._beside]
                console.print(self._beside_line(titles))
            for row in self._table.rows:
                for part in self._row_parts(row):
                    console.print(part)
        lines = (f"{' ' * self._table.indent}{line}".rstrip(" ") for line in capture.get().split("\n")[:-1])
        return Drawn("".join(f"{line}\n" for line in lines))

    def _row_parts(self, row: Row) -> Iterable[RenderableType]:
        """Yields one row: the columns next to each other, then those that did not fit, each on a line below."""
        from rich.padding import Padding

        table = self._table
        yield self._beside_line([self._cell_text(row, place) for place in self._beside])
        for place in self._below:
            title = "" if place == table.flow_index else table.columns[place].title.capitalize()
            if row.cells[place]:
                text = table.cell(row, place)
                yield Padding(self._as_text(f"{title}: {text}" if title else text), (0, 0, 0, _INDENT_BELOW))
            if place == table.flow_index:
                yield from (Padding(self._as_text(note), (0, 0, 0, _INDENT_BELOW)) for note in row.notes)

    def _cell_text(self, row: Row, place: int) -> Text:
        text = self._table.cell(row, place)
        style = self._table.columns[place].styles.get(text, "")
        notes = row.notes if place == self._table.flow_index else ()
        return self._as_text("\n".join([text, *notes]), style)

    def _as_text(self, text: str, style: str = "") -> Text:
        from rich.text import Text

        return Text(printable(text), style=style, overflow="fold")

    def _beside_line(self, cells_: list[Text]) -> RenderableType:
        """Returns one line of cells that stand next to each other, each in its column's width."""
        from rich.table import Table as Grid

        grid = Grid.grid(padding=(0, _GAP, 0, 0))
        for place in self._beside:
            grid.add_column(width=self._natural[place], overflow="fold")
        grid.add_row(*cells_)
        return grid


def _console(screen: Screen, width: int) -> Console:
    """Returns a console of rich that records its output instead of printing it."""
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
