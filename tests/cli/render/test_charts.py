"""Charts: what each column and lane says, where it is, and that nobody's text is markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.cli.render.reading import read

from runup.cli.render.html.charts import Column, Mark, Span, axis, columns_chart, lane

SERIES = (("apply", "bad"), ("unknown", "warn"))
START = datetime(2026, 11, 30, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("columns", "rects"),
    [
        pytest.param([], [], id="no column"),
        pytest.param([Column("a", (0, 0))], [], id="nothing is not drawn"),
        pytest.param([Column("a", (2, 0))], [("bad", "10.00%", "80.00%", "0.0", "120.0")], id="the highest is whole"),
        pytest.param(
            [Column("a", (1, 1)), Column("b", (0, 1))],
            [
                ("bad", "5.00%", "40.00%", "60.0", "60.0"),
                ("warn", "5.00%", "40.00%", "0.0", "60.0"),
                ("warn", "55.00%", "40.00%", "60.0", "60.0"),
            ],
            id="series are stacked",
        ),
    ],
)
def test_draws_columns(columns: list[Column], rects: list[tuple[str, ...]]) -> None:
    """Widths are percentages, and heights are pixels."""
    chart = columns_chart("Risks", SERIES, columns)
    drawn = r'<rect class="fill-(\w+)" x="([\d.]+%)" width="([\d.]+%)" y="([\d.]+)" height="([\d.]+)">'
    assert re.findall(drawn, chart) == rects
    assert len(re.findall("<title>", chart)) == len(columns)


def test_names_charts_and_escapes_labels() -> None:
    """A label is somebody's text; the chart loads nothing and has no style that the console's policy forbids."""
    evil = "<script>alert(1)</script>\u202e"
    chart = columns_chart(f"Risks {evil}", SERIES, [Column(evil, (1, 2))]) + lane(evil, [Mark(0, None, "bad")])
    tags = read(chart).tags
    assert {tag for tag, _ in tags} <= {"figure", "figcaption", "div", "span", "svg", "g", "title", "rect", "circle"}
    assert [attributes.get("role") for tag, attributes in tags if tag == "svg"] == ["img", "img"]
    assert all("style" not in attributes for _, attributes in tags)
    assert "1 apply, 2 unknown" in chart
    assert "\\u202e" in chart
    assert "\u202e" not in chart


def test_draws_shades_behind_marks() -> None:
    """A bar, and a dot at a moment outside of the span, which is moved to its end."""
    span = Span(START, START + timedelta(hours=10))
    bar = span.bar(START + timedelta(hours=1), START + timedelta(hours=3), "busy")
    shade = Mark(50, 20, "shade")
    drawn = lane("n", [bar, Mark(span.place(START + timedelta(days=9)), None, "bad")], [shade])
    assert re.findall(r'<(\w+) class="([\w-]+)" c?x="([\d.]+)%"', drawn) == [
        ("rect", "fill-shade", "50.00"),
        ("rect", "fill-busy", "10.00"),
        ("circle", "fill-bad", "100.00"),
    ]


@pytest.mark.parametrize(
    ("length", "words"),
    [
        pytest.param(timedelta(hours=2), ["22:00", "22:30", "23:00", "23:30", "00:00"], id="round times"),
        pytest.param(timedelta(hours=48), ["30 Nov 22:00", "01 Dec 12:00", "02 Dec 00:00"], id="with days"),
    ],
)
def test_marks_round_times(length: timedelta, words: list[str]) -> None:
    """At most six, none on another."""
    found = re.findall(r">([^<]+)</text>", axis(Span(START, START + length)))
    assert set(words) <= set(found)
    assert len(found) <= 7
