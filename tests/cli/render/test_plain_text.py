"""The primitives of texts: ages, cut lines, tabulated rows, machine forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from runup.cli.render.text import (
    age,
    align_columns,
    columns,
    machine,
    machine_parts,
    plain,
    reason_and_message,
    shorten,
)

NOW = datetime(2026, 1, 14, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(-9, "0 s ago", id="a clock that runs ahead"),
        pytest.param(0.9, "0 s ago", id="less than a second"),
        pytest.param(119, "119 s ago", id="nearly two minutes"),
        pytest.param(120, "2 min ago", id="two minutes"),
        pytest.param(179, "2 min ago", id="nearly three"),
        pytest.param(7199, "119 min ago", id="nearly two hours"),
        pytest.param(7200, "2 h ago", id="two hours"),
        pytest.param(172799, "47 h ago", id="nearly two days"),
        pytest.param(172800, "2 days ago", id="two days"),
    ],
)
def test_how_long_ago(seconds: float, said: str) -> None:
    """In the largest unit of which there are two."""
    assert age(NOW - timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        pytest.param("*a* [b](c) <d> e_f", r"\*a\* \[b\](c) \<d\> e\_f", id="markup"),
        pytest.param("# no heading, C# neither", r"\# no heading, C# neither", id="a number sign at the beginning"),
        pytest.param("Try `oc get *_x | less` <now>", r"Try `oc get *_x | less` \<now\>", id="a code span"),
        pytest.param("a ` b", r"a \` b", id="a single backtick"),
        pytest.param("``a` b`", r"\`\`a` b`", id="backticks that close nothing"),
        pytest.param("\\`a`", r"\\`a`", id="a code span behind a backslash"),
        pytest.param("see https://x.io/a_b/#c_d (e_f)", r"see https://x.io/a_b/#c_d (e\_f)", id="a URL"),
        pytest.param("https://x.io/[a](b)", r"https://x.io/\[a\](b)", id="a URL with a link in it"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, escaped: str) -> None:
    """Untrusted text has no markup, but a command in backticks is code (CommonMark 0.31, 6.1)."""
    assert plain(text) == escaped


def test_a_time_that_nobody_told() -> None:
    """Is not now."""
    assert age(None, NOW) == "at an unknown time"
    assert age(NOW + timedelta(days=1), NOW) == "at a time that is still to come"


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("abcde fghijk", 8, "abcde…"),
        ("abcd efghijk", 8, "abcd ef…"),
        ("abcdefghijkl", 8, "abcdefg…"),
        ("one two, three", 12, "one two…"),
        ("abcd. efghij", 6, "abcd…"),
        ("  one\ntwo", 12, "one"),
    ],
    ids=[
        "as long as the limit",
        "a character longer",
        "the word is more than half of it",
        "the word is half of it",
        "one word",
        "punctuation before the dots goes",
        "and of what is cut within a word",
        "the first line, without blanks",
    ],
)
def test_a_line_is_cut_to_its_limit(text: str, limit: int, shown: str) -> None:
    """At a word where more than half is left, the dots included."""
    assert shorten(text, limit) == shown
    assert len(shown) <= limit


def test_widths_hold_for_rows_that_have_the_column() -> None:
    """As Go's tabwriter: a row with fewer cells begins a block again, and the last cell of a row is not padded."""
    rows = [("a", "bb", "c"), ("aaa", "b", "c"), ("d", "e"), ("f",), ("g", "h", "i")]
    assert columns(rows, padding=1) == "a   bb c\naaa b  c\nd   e\nf\ng h i\n"
    assert columns([("a", "b")], minwidth=4, padding=1) == "a   b\n"
    assert columns([("abcd", "b")], minwidth=4, padding=1) == "abcd b\n"
    assert columns([]) == ""


def test_aligned_rows_end_in_no_blank() -> None:
    """Three blanks between columns."""
    assert align_columns([("a", ""), ("bb", "c")]) == "a\nbb   c\n"


def test_a_reason_and_its_message() -> None:
    """Further lines of the message are as far in as the first."""
    assert reason_and_message("Slow", "a\n\nb") == "  Reason: Slow\n  Message: a\n  \n  b"


FOUND = {"z": "Grüße", "a": ["x", {"b": None}], "evil": "a\x1b[2J", "word": "yes"}


def test_the_machine_forms() -> None:
    """Text is kept in order; control characters become escapes that programs can decode."""
    assert machine({"z": 1, "a": [2]}, "json") == '{\n  "z": 1,\n  "a": [\n    2\n  ]\n}\n'
    assert json.loads(machine(FOUND, "json")) == FOUND
    text = machine(FOUND, "yaml")
    assert yaml.safe_load(text) == FOUND
    assert text == "z: Grüße\na:\n- x\n- b: null\nevil: \"a\\e[2J\"\nword: 'yes'\n"


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("number", [0, 1, 3])
def test_parts_make_the_same_document(form: str, number: int) -> None:
    """However many items the list has, and whatever is in their texts."""
    items = [{"name": "a\u2028\n[]", "empty": [], "list": [{"x": None}]}] * number
    parts = list(machine_parts({"code": 2, "none": []}, "items", iter(items), form))
    text = "".join(parts)
    assert (json.loads(text) if form == "json" else yaml.safe_load(text)) == {"code": 2, "none": [], "items": items}
    if form == "json":
        assert text == machine({"code": 2, "none": [], "items": items}, form)
    assert len(parts) > number
