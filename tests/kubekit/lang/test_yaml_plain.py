"""The quick reader of YAML: what it reads it reads as libyaml does, and it leaves everything else alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang import yaml_events, yaml_plain
from kubekit.lang.yaml_errors import YamlError
from kubekit.lang.yaml_scalars import NotPlain

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"

READ = [
    pytest.param("a: 1\nb:\n  c: x\n", id="mappings"),
    pytest.param("a:\n- b: 1\n  c: 2\n- d\n", id="items at the column of their key"),
    pytest.param("a:\n  - b: 1\n  - - x\n    - y\n", id="items to the right of it, and items of items"),
    pytest.param("a:\n-\n  b: 1\n-\n- c\n", id="a dash alone"),
    pytest.param("a:\nb: ~\nc: {}\nd: []\n", id="nothing, and what is empty"),
    pytest.param("---\n# first\na: 1\n\n  # not here\nb: 2\n", id="a start, comments and blank lines"),
    pytest.param('f:status:\n  .: {}\n  k:{"type":"Ready"}:\n    f:type: {}\n', id="keys of managed fields"),
    pytest.param("a: 1\n---\nb: 2\n", id="two documents"),
    pytest.param("# c\n\n---\na: |+\n  x\n\n---\n# d\nb: |-\n  y\n\n\n---\n- 1\n", id="starts, comments, block text"),
    pytest.param("---\na: 1\n  2\n---\n\n'b': 'x\n  y'\n", id="scalars that end where a document does"),
    pytest.param("a: 0x1F\nb: 1e3\nc: on\nd: 2026-11-20T12:00:00Z\n", id="scalars"),
    pytest.param("a: -1\nb: <none>\nc: → é\nd: x:y#z\n", id="scalars that begin with what could be more"),
    pytest.param("a: ''\nb: 'it''s'\nc: \"\"\nd: \"x \\\"y\\\" \\u00e9\\n\"\n", id="quotes"),
    pytest.param("a: one\n  two\n\n  three\nb: 1\n", id="a plain scalar of several lines"),
    pytest.param("a: 'one\n  two''s\n\n\n  three'\nb: 1\n", id="a quoted one"),
    pytest.param('a: "one\\n\n  two \\"x\\"\n\n  three"\nb: 1\n', id="one with escapes"),
    pytest.param("a: |\n  x\n    y\n\nb: |-\n  z\n\n", id="block text"),
    pytest.param("a: |+\n  x\n\nb: 1\n", id="block text with its blank lines"),
    pytest.param("- |\n  # no comment\n  - no item\n- x\n", id="block text in an item"),
    pytest.param("a: 1\na: 2\n", id="a key twice: the last one counts"),
    pytest.param("a:\n- b: x\n  c: y\n- b: x\n  c: y\n- b: x\n\n  c: y\n", id="lines that come again"),
    pytest.param('\'a\': 1\n"1.30": x\n"b c":\n- d\n', id="quoted keys"),
    pytest.param("a: [1, -2, x y, \"z, \\\" {\", 'it''s }', null, 1.5, on, http://x:80/, -x]\n", id="a flow sequence"),
    pytest.param("a: {b: 1, c-d: {e: [f, []]}, \"1.3\": {}, 'x': ''}\n", id="a flow mapping"),
    pytest.param("a:\n- {b: 1, c: x}\n- [1, 2]\n- d: [e]\n  f: {g: h}\n", id="items that are flow collections"),
    pytest.param("a:\n  {b: 1,\n  c:\n    2, d: [x,\n   y]}\ne: 1\n", id="a flow mapping of several lines"),
    pytest.param("a: x\nb:\n  a: x\n  c:\n  - a: x\n  - - a: x\n", id="a line that comes again in other columns"),
]
LEFT = [
    pytest.param("", id="nothing at all"),
    pytest.param("a: 1\n---\n", id="an empty document at the end"),
    pytest.param("---\n---\na: 1\n", id="an empty document at the beginning"),
    pytest.param("a: 1\n---\n# b\n---\nc: 1\n", id="an empty document between others"),
    pytest.param("a: 1\n--- # c\nb: 2\n", id="a comment behind a start"),
    pytest.param("a: 1\n--- {b: 2}\n", id="a document on the line of its start"),
    pytest.param("# c\n--- \na: 1\n", id="a blank behind a start"),
    pytest.param("a: |\n  x\n---\nb: |\n  no end of line", id="a second document whose last line does not end"),
    pytest.param("a: 1\n...\n", id="an end mark"),
    pytest.param("just text\n", id="a scalar"),
    pytest.param("a: {b: 1} # comment\n", id="a comment behind a flow collection"),
    pytest.param("a: [b,\n  # c\n  d]\n", id="a comment in a flow sequence"),
    pytest.param('"a: b": 1\n', id="a key with a colon"),
    pytest.param("a: [1, 2,]\n", id="a comma behind the last item"),
    pytest.param("a: [b: 1]\n", id="a pair in a flow sequence"),
    pytest.param("a: {b, c: 1}\n", id="a key without a value"),
    pytest.param("a: {b: }\n", id="a key with an empty value"),
    pytest.param('a: {"b":1}\n', id="JSON without blanks"),
    pytest.param("a: {b : 1}\n", id="a blank before a colon"),
    pytest.param("a: {1: b}\n", id="a key that is a number, in a flow mapping"),
    pytest.param("a: [x:, y]\n", id="a colon at the end of an item"),
    pytest.param("a: [x\n  y]\n", id="an item of two lines"),
    pytest.param('a: ["x\n  y"]\n', id="a quoted item of two lines"),
    pytest.param('a: ["["]\n', id="a bracket between quotes"),
    pytest.param("a: [&x b, *x]\n", id="anchors in a flow sequence"),
    pytest.param("a: [1,\n2]\n", id="a flow sequence that goes on at the margin, which is an error"),
    pytest.param("a: [1, 2\n", id="a flow sequence that does not end, which is an error"),
    pytest.param("a: [1}\n", id="brackets that do not match, which is an error"),
    pytest.param("a: [1] x\n", id="text behind a flow sequence, which is an error"),
    pytest.param("a: [1]\n  b: 2\n", id="a key below a flow sequence, which is an error"),
    pytest.param("a: [1] ]\n", id="a bracket too many, which is an error"),
    pytest.param("a: [.inf]\n", id="no number of JSON in a flow sequence, which is an error"),
    pytest.param(f"a: {'[' * 50}{']' * 50}\n", id="flow sequences deeper than any manifest's"),
    pytest.param('"": 1\n', id="an empty key"),
    pytest.param('"a" b: 1\n', id="text behind a quoted key, which is an error"),
    pytest.param('"a\\n": 1\n', id="a key with an escape"),
    pytest.param("[a, b]\n", id="a flow sequence that is all"),
    pytest.param("a: &x 1\nb: *x\n", id="anchors"),
    pytest.param("a: !!str 1\n", id="a tag"),
    pytest.param("a: >\n  folded\n", id="folded text"),
    pytest.param("a: |2\n    x\n", id="an indicator of indentation"),
    pytest.param("a: |\n  no end of line", id="block text whose last line does not end"),
    pytest.param("a: x # comment\n", id="a comment behind a value"),
    pytest.param("a:\tx\n", id="a tab"),
    pytest.param("a: x\r\n", id="ends of line of another system"),
    pytest.param("a: x\u2028y\n", id="a line separator"),
    pytest.param("1: a\n", id="a key that is a number"),
    pytest.param("on: a\n", id="a key that is a boolean"),
    pytest.param("<<: x\n", id="a merge key"),
    pytest.param("? a\n: b\n", id="a complex key"),
    pytest.param("a: b: c\n", id="two colons, which is an error"),
    pytest.param("a: 1\n---\n---\nb: 2\n", id="an empty document between two others"),
    pytest.param("a: 1\n---\n---\n---\nb: 2\n", id="two of them"),
    pytest.param("a: 1\n---\n---\n", id="an empty document at the end"),
    pytest.param("a: 1\n  b: 2\n", id="a key below a value, which is an error"),
    pytest.param("a:\n- b: x\n- b: x\n    y\n", id="a line that comes again and goes on"),
    pytest.param("a:\n    b: 1\n  c: 2\n", id="a column that nothing began, which is an error"),
    pytest.param("a: 'x' y\n", id="text behind a quote, which is an error"),
    pytest.param('a: "x\n', id="a quote that does not end, which is an error"),
    pytest.param("a: .inf\n", id="no number of JSON, which is an error"),
    pytest.param('a: "\\ud83d\\ude00"\n', id="half a character twice, which is an error"),
    pytest.param('a: "\\x41"\n', id="an escape that JSON lacks"),
    pytest.param("".join(f"{' ' * depth}a:\n" for depth in range(100)), id="deeper than any manifest"),
]


def _read(text: str, *, strict: bool = False) -> Any:
    return yaml_events.read_documents(text, "", strict=strict)


@pytest.mark.parametrize("text", READ)
def test_what_is_read_here(text: str) -> None:
    """These are read without libyaml, to the very same values."""
    assert repr(yaml_plain.read_plain_documents(text)) == repr(_read(text))


@pytest.mark.parametrize("text", LEFT)
def test_what_is_left_to_libyaml(text: str) -> None:
    """These are not: the other reader has the value, or the error."""
    with pytest.raises(NotPlain):
        yaml_plain.read_plain_documents(text)


def test_a_key_twice_is_an_error_where_that_is_asked_for() -> None:
    """`strict` leaves it to the reader that names the line."""
    with pytest.raises(NotPlain):
        yaml_plain.read_plain_documents("a: 1\na: 2\n", strict=True)


# What files are made of, and what breaks them.
_PIECES = st.sampled_from(
    [
        *("a", "b: ", "key:", "- ", "-", " ", "  ", "    ", '"', "'", "''", "x y", "#", " # c", "|", "|-", ">", "{}"),
        *("[", "&a ", "*a", "!", "?", ": ", ":", "\\", "\\n", '\\"', "~", "1", "0x1F", ".inf", "<<: ", "%", "@", ","),
        *("é", "\u2028", "\u00a0", "\x85", "😀", "\t", "\r", "---", "...", '"a"', "'b'", "f:x: {}", 'k:{"a":"b"}:'),
        *("http://x:80/", "a: 1", "- a: 1"),
    ]
)
_LINES = st.builds(
    lambda indent, pieces: " " * indent + "".join(pieces), st.integers(0, 6), st.lists(_PIECES, max_size=4)
)
_WORDS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text("ab: -#'\"\\\n {}|>", max_size=30)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@given(text=st.lists(_LINES, max_size=9).map("\n".join), end=st.sampled_from(["", "\n"]), strict=st.booleans())
def test_any_lines_are_read_alike_or_not_at_all(text: str, end: str, strict: bool) -> None:
    """No text is read to another value, and none that is wrong is read."""
    _check(text + end, strict)


@given(texts=st.lists(st.lists(_LINES, max_size=3).map("\n".join), max_size=4), end=st.sampled_from(["", "\n"]))
def test_any_documents_are_read_alike_or_not_at_all(texts: list[str], end: str) -> None:
    """The same for several in one text."""
    _check("\n---\n".join(texts) + end, strict=False)


@given(
    value=_VALUES,
    width=st.sampled_from([20, 80, 4096]),
    style=st.sampled_from([None, '"', "'", "|"]),
    flow=st.sampled_from([False, None, True]),
)
def test_any_document_is_read_alike_or_not_at_all(value: Any, width: int, style: str | None, flow: bool | None) -> None:
    """The same for what a program writes, folded and quoted in all ways."""
    value = {"a": value} if flow else value
    try:
        text = pyyaml.dump(
            value,
            Dumper=pyyaml.CSafeDumper,
            width=width,
            default_style=style,
            default_flow_style=flow,
            allow_unicode=True,
        )
    except pyyaml.YAMLError:
        return
    # As people write it: the outermost mapping as a block.
    _check(f"a: {text}" if flow else text, strict=False)


_FLOW = st.sampled_from(
    [
        *("[", "]", "{", "}", ", ", ",", ": ", ":", " ", "\n  ", "\n", "a", "b c", "1", "-1", "- ", "-", '"x"', "'y'"),
        *('"', "'", '"a\\n"', '"\\', "''", "#", " # ", "?", "? ", "&a ", "*a", "!", "~", "null", ".inf", "x:y", "x:"),
        *(":x", "|", ">", "%", "@", "`", "é", "\u00a0", "\u2028", "\t", "1e3", "0x1F", "http://x:80/", "<<: ", "..."),
        *("---", "a: 1", '"a": ', '"a":', "=", "<", "$", "^", ";", "\\", "(", "+", "a, b", "{a: 1}", "[a]"),
    ]
)


@pytest.mark.slow
@given(
    pieces=st.lists(_FLOW, max_size=8).map("".join),
    brackets=st.sampled_from(["[]", "{}", "[}"]),
    before=st.sampled_from(["a: ", "- ", "a:\n  ", "- a: "]),
    strict=st.booleans(),
)
def test_any_flow_collection_is_read_alike_or_not_at_all(pieces: str, brackets: str, before: str, strict: bool) -> None:
    """The same for what stands between brackets."""
    _check(f"{before}{brackets[0]}{pieces}{brackets[1]}\n", strict)


def _check(text: str, strict: bool) -> None:
    try:
        read = yaml_plain.read_plain_documents(text, strict=strict)
    except NotPlain:
        return
    try:
        meant = _read(text, strict=strict)
    except YamlError as error:
        pytest.fail(f"{text!r} is read as {read!r}, and is wrong: {error}")
    assert repr(read) == repr(meant)


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs the corpus beside the checkout")
def test_files_of_clusters_are_read_here() -> None:
    """Of the files that `oc` wrote all but one are of this layout, which is what the reader is for."""
    files = sorted(CORPUS.glob("oc-*/*.yaml"))
    left = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        try:
            assert yaml_plain.read_plain_documents(text) == _read(text), file.name
        except NotPlain:
            left.append(file.name)
    assert files
    assert left == ["4.12.16-longest-not-recommended-cv.yaml"]
