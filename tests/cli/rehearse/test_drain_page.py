"""The page of simulated drains and of a forecast: each node with its reasons, windows, and tables with the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time

import pytest
from tests.cli.rehearse.test_drain_command import DUMP, a_result
from tests.cli.render.reading import read

from runup.cli.main import main
from runup.cli.rehearse.drain_page import page
from runup.rehearse.decide.drains.drained_cluster import Window

EVENING = datetime(2026, 11, 30, 20, tzinfo=UTC)


def test_draws_each_node_with_what_holds_it_up() -> None:
    """A reason is in the lane's name, below it on hover, focus or tap, and in the table."""
    result = a_result()
    html = page("Simulated drains", ["They take an hour."], result, ())
    lanes = re.findall(r'class="lane"[^>]*aria-label="([^"]*)"', html)
    assert [label.partition(":")[0] for label in lanes] == [each.node for each in result.nodes]
    held = next(label for label in lanes if label.startswith("a:"))
    assert "pod shop/db-0 until it is deleted: maxUnavailable 0" in held
    assert len(re.findall(r'class="reason" tabindex="0" role="group"', html)) == sum(
        bool(each.blocked) for each in result.nodes
    )
    tags = [tag for tag, _ in read(html).tags]
    assert tags.count("table") == tags.count("caption") >= 2
    assert {"script", "link", "img"}.isdisjoint(tags)


@pytest.mark.parametrize(
    ("window", "hours", "opened"),
    [
        pytest.param(Window(time(22), time(6)), 4, ["30 22:00"], id="opens later"),
        pytest.param(Window(time(18), time(6)), 4, ["30 18:00"], id="is open"),
        pytest.param(Window(time(19), time(20)), 4, [], id="has just closed"),
        pytest.param(Window(time(22), time(6)), 48, ["30 22:00", "01 22:00"], id="each day"),
        pytest.param(Window(time(19), time(21)), 24, ["30 19:00", "01 19:00"], id="within a day"),
    ],
)
def test_lists_the_windows_of_a_span(window: Window, hours: int, opened: list[str]) -> None:
    """Those that are not over at its start, and begin before its end."""
    end = EVENING.replace(day=30) + (datetime(2026, 1, 3, tzinfo=UTC) - datetime(2026, 1, 1, tzinfo=UTC)) * hours / 48
    assert [f"{opens:%d %H:%M}" for opens, _ in window.spans(EVENING, end)] == opened


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["rehearse", "drain", "--window", "22:00-06:00"], "the window is open", id="drains"),
        pytest.param(["upgrade", "forecast", "--between", "22:00-06:00"], "An update", id="a forecast"),
    ],
)
def test_commands_write_the_page(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the exit code that the text has."""
    codes = {main([*words, "--dump", str(DUMP), *form]) for form in ((), ("-o", "html"))}
    out = capsys.readouterr().out
    html = out[out.index("<!DOCTYPE html>") :]
    assert len(codes) == 1
    assert says in read(html).text
    assert 'class="lane"' in html
