"""Draws charts as SVG in the page: columns of counts, and lanes on a time axis. Pure.

Positions are in percent of the width, so that text keeps its size on a phone, and colours are classes of the page's
style, so that they follow light, dark and paper. A chart is one image with a name; the page has its table next to it.
docs/decisions/0123 compares libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kubekit.lang.text import in_utc
from runup.cli.render.html.markup import Markup, el

# Distances between marks of the axis; the smallest that gives at most _MARKS intervals is used.
_STEPS = tuple(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200))
_MARKS = 6
# Pixels: the height of the columns of a chart.
_HEIGHT = 120


class Column(NamedTuple):
    """A column of a chart: its label, and a count for each series, from the bottom up; none where nothing is known."""

    label: str
    counts: tuple[int, ...] | None


def columns_chart(title: str, series: Sequence[tuple[str, str]], columns: Sequence[Column]) -> Markup:
    """Returns a chart of stacked columns; `series` are names with tones. Each column says its counts on hover."""
    most = max((sum(column.counts or ()) for column in columns), default=0)
    width = 100 / max(1, len(columns))
    drawn = []
    for place, column in enumerate(columns):
        left, wide = place * width + width * 0.1, width * 0.8
        if column.counts is None:
            whole = _rect(left, wide, "shade", y="0", height=str(_HEIGHT))
            drawn.append(el("g", el("title", f"{column.label}: unknown"), whole))
            continue
        counts_text = ", ".join(f"{count} {name}" for (name, _), count in zip(series, column.counts, strict=True))
        parts, top = [el("title", f"{column.label}: {counts_text}")], float(_HEIGHT)
        for (_, tone), count in zip(series, column.counts, strict=True):
            height = count * _HEIGHT / max(1, most)
            top -= height
            if count:
                parts.append(_rect(left, wide, tone, y=f"{top:.1f}", height=f"{height:.1f}"))
        drawn.append(el("g", *parts))
    ends = columns if len(columns) < 2 else (columns[0], columns[-1])
    label = f"{title}: {len(columns)} columns, at most {most}"
    return el(
        "figure",
        el("figcaption", title),
        el(
            "div",
            *(el("span", name, class_=tone) for name, tone in series),
            el("span", f"at most {most}", class_="sum"),
            class_="tally",
        ),
        el("svg", *drawn, class_="columns", width="100%", height=str(_HEIGHT), role="img", aria_label=label),
        el("div", *(el("span", column.label) for column in ends), class_="ends", aria_hidden="true"),
        class_="chart",
    )


class Mark(NamedTuple):
    """A part of a lane, in percent: a bar, or a dot where `width` is None; `tone` is its class."""

    start: float
    width: float | None
    tone: str


def lane(label: str, marks: Iterable[Mark], shades: Iterable[Mark] = ()) -> Markup:
    """Returns a lane of a time axis as one image named `label`; `shades` fill the whole height behind the marks."""
    drawn = [_rect(each.start, each.width or 0, each.tone, y="0", height="16") for each in shades]
    for each in marks:
        if each.width is None:
            drawn.append(el("circle", class_=f"fill-{each.tone}", cx=f"{each.start:.2f}%", cy="8", r="5"))
        else:
            drawn.append(_rect(each.start, each.width, each.tone, y="3", height="10", rx="3"))
    return el("svg", *drawn, class_="lane", width="100%", height="16", role="img", aria_label=label)


def _rect(start: float, width: float, tone: str, **attributes: str) -> Markup:
    return el("rect", class_=f"fill-{tone}", x=f"{start:.2f}%", width=f"{width:.2f}%", **attributes)


@dataclass(frozen=True, slots=True)
class Span:
    """The time range that is drawn."""

    start: datetime
    end: datetime

    def place(self, moment: datetime) -> float:
        """Returns the position of `moment` in percent of the span, limited to 0 to 100."""
        length_s = (self.end - self.start).total_seconds()
        return min(100.0, max(0.0, 100 * (moment - self.start).total_seconds() / length_s))

    def bar(self, start: datetime, end: datetime, tone: str) -> Mark:
        """Returns the part of a lane from `start` to `end`."""
        return Mark(self.place(start), self.place(end) - self.place(start), tone)

    def clock(self, moment: datetime) -> str:
        """Returns a time as the axis writes it, with its day if the span is long."""
        long = self.end - self.start > timedelta(hours=20)
        return f"{in_utc(moment):{'%d %b %H:%M' if long else '%H:%M'}}"


def axis(span: Span) -> Markup:
    """Returns the axis, with a mark for each round time that has room."""
    length = span.end - span.start
    step = next((step for step in _STEPS if length / step <= _MARKS), _STEPS[-1])
    times = [span.start]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    following = epoch + -(-(span.start - epoch) // step) * step
    while following < span.end:
        # A mark that would overlap its neighbours is left out.
        if min(following - span.start, span.end - following) > length / (2 * _MARKS):
            times.append(following)
        following += step
    marks = [
        el("text", span.clock(tick), x=f"{span.place(tick):.2f}%", y="14", text_anchor="middle" if place else "start")
        for place, tick in enumerate(times)
    ]
    marks.append(el("text", span.clock(span.end), x="100%", y="14", text_anchor="end"))
    return el("svg", *marks, class_="axis", width="100%", height="20", aria_hidden="true")
