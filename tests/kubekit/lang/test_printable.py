"""Other people's text is shown, never obeyed: which characters become escapes; programs still get the value."""

from __future__ import annotations

import json
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang.text import (
    cut,
    cut_position,
    escape_in_json,
    is_hazardous,
    join_within,
    last_words,
    one_line,
    printable,
    printable_value,
    stored_bytes,
)
from runup.cli.render.table import Column, Row, Table, plain_table
from runup.cli.render.text import machine

HAZARDS = [
    ("ESC starts a control sequence", "\x1b[2J", "\\x1b[2J"),
    ("an operating system command sets a title", "\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    ("C1 has a control sequence introducer of its own", "\x9b31m", "\\x9b31m"),
    ("BEL rings", "\a", "\\x07"),
    ("NUL ends a line for some", "a\0b", "a\\x00b"),
    ("CR writes over what stands there", "safe\rowned", "safe\\rowned"),
    ("backspace takes back", "ab\b", "ab\\x08"),
    ("DEL", "\x7f", "\\x7f"),
    ("an override turns the words around", "\u202egpj.exe\u202c", "\\u202egpj.exe\\u202c"),
    ("isolates do too", "\u2066x\u2069", "\\u2066x\\u2069"),
    ("marks of direction", "\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"),
    ("a line separator is a line end for some", "a\u2028b\u2029", "a\\u2028b\\u2029"),
    ("YAML refuses a byte order mark and non-characters", "\ufeff\uffff", "\\ufeff\\uffff"),
    ("half of a surrogate pair cannot be written at all", "\ud800", "\\ud800"),
    ("line ends and tabs stay", "a\n\tb", "a\n\tb"),
    ("words of any language stay", "Grüße, שלום, 更新, 👩‍🚀", "Grüße, שלום, 更新, 👩‍🚀"),
    ("a backslash stays", "C:\\x", "C:\\x"),
]


@pytest.mark.slow
def test_what_is_escaped_is_what_the_pattern_finds() -> None:
    """Text that Python calls printable is not searched; line ends and tabs are no reason to."""
    for char in map(chr, range(0x110000)):
        text = f"a\n{char}\t"
        assert (printable(text) != text) == is_hazardous(char), repr(char)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("panic:\n  nil map", "panic: nil map", id="that fits"),
        pytest.param("runtime error: index out of range", "...out of range", id="in the middle of a word"),
        pytest.param("x" * 9 + " error: nil map", "...error: nil map", id="at the end of a word"),
        pytest.param("x" * 40, "..." + "x" * 14, id="of a single word"),
    ],
)
def test_the_last_words_begin_with_a_word(text: str, shown: str) -> None:
    """A cut text begins with a whole word, if it has one."""
    assert last_words(text, 14) == shown


@pytest.mark.parametrize(("text", "shown"), [row[1:] for row in HAZARDS], ids=[row[0] for row in HAZARDS])
def test_what_is_shown(text: str, shown: str) -> None:
    """The escape stands where the character was."""
    assert printable(text) == shown


@given(st.text(alphabet=st.characters(), max_size=60))
def test_nothing_that_acts_is_left(text: str) -> None:
    """Whatever Unicode calls a control, a surrogate or an override of direction is gone; once more changes nothing."""
    shown = printable(text)
    left = {char for char in shown if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"}
    turning = {c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI")}
    assert (left, turning) == (set(), set())
    assert printable(shown) == shown
    assert "\n" not in one_line(text)
    shown.encode()


@pytest.mark.slow
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_read_the_value_itself(form: str, text: str) -> None:
    """JSON and YAML hold nothing that a terminal obeys, and the same value."""
    written = machine({"key": text, text: ["x", text]}, form)
    assert not is_hazardous(written)
    assert (json.loads if form == "json" else yaml.safe_load)(written) == {"key": text, text: ["x", text]}


def test_every_text_of_a_log_line() -> None:
    """Keys and values, at any depth; numbers stay numbers."""
    assert printable_value({"a\x1b": ["\x1b", 1, {"b": "\r"}], "c": None}) == {
        "a\\x1b": ["\\x1b", 1, {"b": "\\r"}],
        "c": None,
    }


def test_a_cell_stays_in_its_row_and_column() -> None:
    """Widths count what is shown, and a line end in a name makes no row."""
    table = Table(columns=(Column(title=""), Column(title="")), rows=[Row(("A\x1b", "B")), Row(("x\ny", "z"))])
    assert plain_table(table) == "A\\x1b   B\nx\\ny    z\n"


def test_json_text_that_means_the_same() -> None:
    """Characters between quotes may be written as escapes."""
    assert json.loads(escape_in_json('{"a": "\x7f\u202e"}')) == {"a": "\x7f\u202e"}


@pytest.mark.parametrize("end", range(1, 8))
def test_an_escape_is_never_halved(end: int) -> None:
    """A cut within `\\u202e` moves to its start."""
    text = printable("a\u202e")
    assert text == "a\\u202e"
    assert cut_position(text, end) == (7 if end >= 7 else 1)


@pytest.mark.slow
@given(st.text(alphabet=st.sampled_from('ab\\x1bu202e<>&"\n€👩\x1b'), max_size=400), st.integers(64, 300))
def test_a_cut_text_fits_and_says_what_is_missing(text: str, limit: int) -> None:
    """At most so many bytes as Go writes them; nothing is lost uncounted; what fits stays as it is."""
    text = printable(text)
    short = cut(text, limit)
    written = json.dumps(short, ensure_ascii=False).encode()
    go = written.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
    assert stored_bytes(short) == len(go) - 2 <= limit
    assert cut(short, limit) == short
    if short != text:
        head, _, count = short.rpartition(" ... and ")
        assert text.startswith(head)
        assert count == f"{len(text) - len(head)} more characters"


JOINED = [
    ("all fit", ["a" * 20, "b" * 20], 100, "a" * 20 + "; " + "b" * 20),
    ("some do", ["a" * 40, "b" * 40, "c" * 40], 120, "a" * 40 + "; ... and 2 more"),
    ("one too long is cut", ["a" * 200], 100, "a" * 60 + " ... and 140 more characters"),
    ("none", [], 100, ""),
]


@pytest.mark.parametrize(("parts", "limit", "expected"), [row[1:] for row in JOINED], ids=[row[0] for row in JOINED])
def test_joined_texts_fit(parts: list[str], limit: int, expected: str) -> None:
    """Whole ones as long as there is room, then how many more there are."""
    assert join_within(parts, "; ", limit) == expected


@pytest.mark.slow
@given(st.lists(st.text(max_size=80), max_size=40), st.integers(200, 600))
def test_joined_texts_never_exceed(parts: list[str], limit: int) -> None:
    """Whatever the parts."""
    assert stored_bytes(join_within(parts, "\n\n", limit)) <= limit
