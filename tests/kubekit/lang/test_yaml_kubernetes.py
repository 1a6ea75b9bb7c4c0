"""YAML as Kubernetes reads it: scalars, keys, merges, aliases, and what is refused."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang import yaml as kyaml

# Results of the Go library behind sigs.k8s.io/yaml (resolve.go of go-yaml v2), followed by the JSON it becomes.
SCALARS: list[tuple[str, Any]] = [
    ("y", True),
    ("Y", True),
    ("yes", True),
    ("YES", True),
    ("yEs", "yEs"),
    ("on", True),
    ("n", False),
    ("No", False),
    ("off", False),
    ("oFF", "oFF"),
    ("true", True),
    ("False", False),
    ("tRue", "tRue"),
    ("~", None),
    ("", None),
    ("null", None),
    ("Null", None),
    ("nil", "nil"),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("0644", 420),
    ("-0644", -420),
    ("0o644", 420),
    ("0O17", 15),
    ("08", 8),
    ("09.5", 9.5),
    ("0x1F", 31),
    ("-0x1f", -31),
    ("0b101", 5),
    ("1_000", 1000),
    ("_1", "_1"),
    ("1e3", 1000),
    ("1E3", 1000),
    ("1e-3", 0.001),
    ("1.0", 1),
    ("1.5", 1.5),
    ("5.", 5),
    (".5", 0.5),
    ("._5", "._5"),
    (".", "."),
    ("..", ".."),
    ("1.2.3", "1.2.3"),
    ("5ac7b4ae0bca76358e4d40f546306775a8e0ea2c", "5ac7b4ae0bca76358e4d40f546306775a8e0ea2c"),
    ("5e6e7", "5e6e7"),
    ("1a", "1a"),
    ("+1a", "+1a"),
    ("1x1F", "1x1F"),
    ("1_0e2", 1000),
    ("4.10", 4.1),
    ("5.2.0-rc.1", "5.2.0-rc.1"),
    ("1e400", "1e400"),
    ("0x", "0x"),
    ("0x1p-2", "0x1p-2"),
    ("12:30:45", "12:30:45"),
    ("1:30", "1:30"),
    ("2001-01-01", "2001-01-01"),
    ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"),
    ("=", "="),
    ("9223372036854775807", 9223372036854775807),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("1e21", 1e21),
    ("١٢", "١٢"),
    ("sha256:abc", "sha256:abc"),
    ("'y'", "y"),
    ('"0644"', "0644"),
    ("!!str 12", "12"),
    ('!!int "12"', 12),
    ("!!float 3", 3),
    ("!mine 12", "12"),
    ("! 12", "12"),
    ("!!binary aGVsbG8=", "hello"),
    ("!!timestamp 2001-01-01", "2001-01-01"),
]


@pytest.mark.parametrize(("written", "meant"), [pytest.param(*row, id=repr(row[0])) for row in SCALARS])
def test_scalar_means_what_kubernetes_says(written: str, meant: Any) -> None:
    """An unquoted or tagged value has the value and the type that the API server would see."""
    value = kyaml.load(f"a: {written}\n")["a"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("1: a\ntrue: b\n1.5: c\non: d\n", {"1": "a", "true": "d", "1.5": "c"}, id="keys become strings"),
        pytest.param("a: 1\na: 2\n", {"a": 2}, id="the last of two equal keys wins"),
        pytest.param(
            "x: &x {a: 1, b: 2}\nv: {<<: *x, b: 3}\n",
            {"x": {"a": 1, "b": 2}, "v": {"a": 1, "b": 3}},
            id="a merge key fills in what is missing",
        ),
        pytest.param(
            "x: &x {b: 2}\nv: {b: 3, <<: *x}\n",
            {"x": {"b": 2}, "v": {"b": 2}},
            id="a merge key behind a member replaces it, as Go does",
        ),
        pytest.param(
            "x: &x {a: 1}\nv: &y {a: 2, b: 2}\nz: {<<: [*x, *y]}\n",
            {"x": {"a": 1}, "v": {"a": 2, "b": 2}, "z": {"a": 1, "b": 2}},
            id="of merged mappings the first counts",
        ),
        pytest.param("'<<': 1\n", {"<<": 1}, id="a quoted merge key is a key"),
        pytest.param("a: &a [1, 2]\nb: *a\n", {"a": [1, 2], "b": [1, 2]}, id="an alias stands for its anchor"),
        pytest.param('{"a":\t1,\n\t"b": [true, null]}', {"a": 1, "b": [True, None]}, id="JSON with tabs is read"),
        pytest.param("{a: 1}", {"a": 1}, id="a flow mapping is not JSON and is read all the same"),
        pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="block text keeps its lines"),
        pytest.param("# only a comment\n", None, id="nothing is null"),
        pytest.param("\ufeffa: 1\n", {"a": 1}, id="a byte order mark is skipped"),
    ],
)
def test_documents(text: str, meant: Any) -> None:
    """Collections, keys, merges and aliases give what Kubernetes gives."""
    assert kyaml.load(text) == meant
    assert kyaml.load(text.encode()) == meant


def test_load_all_keeps_order_and_empty_documents() -> None:
    """Documents come in order; an empty one is None, and the caller decides what that means."""
    assert kyaml.load_all("a: 1\n---\n---\nb: 2\n---\n# end\n") == [{"a": 1}, None, {"b": 2}, None]
    assert kyaml.load_all("") == []


def test_an_alias_is_a_copy() -> None:
    """Changing one place of a document never changes another one."""
    value = kyaml.load("a: &a {x: 1}\nb: *a\n")
    value["a"]["x"] = 2
    assert value["b"] == {"x": 1}


BILLION_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(
            "a: 1\nb: [1, 2\nc: 3\n", r"m\.yaml, line 3, column \d+: .*expected ',' or '\]'", id="broken flow"
        ),
        pytest.param("a:\n\tb: 1\n", r"m\.yaml, line 2, column 1: .*cannot start any token", id="tab as indentation"),
        pytest.param("a: *x\n", r"m\.yaml, line 1, column 4: alias 'x' has no anchor before it", id="unknown alias"),
        pytest.param("a: &a [*a]\n", r"line 1, column 8: anchor 'a' contains itself", id="anchor inside itself"),
        pytest.param(BILLION_LAUGHS, r"aliases expand to more than 100000 values", id="alias bomb"),
        pytest.param("[" * 100_000, r"nested more than 200 levels", id="a hundred thousand brackets"),
        pytest.param('{"a":' * 100_000, r"nested more than 200 levels", id="a hundred thousand braces"),
        pytest.param("? [a]\n: 1\n", r"only text, numbers and booleans can be keys", id="a sequence as key"),
        pytest.param("~: 1\n", r"only text, numbers and booleans can be keys", id="null as key"),
        pytest.param("<<: 3\n", r"`<<` wants a mapping", id="merge of a number"),
        pytest.param(
            "a: .nan\n", r"line 1, column 4: '\.nan' is not a number that JSON can represent", id="not a number"
        ),
        pytest.param("a: !!int x\n", r"cannot read 'x' as !!int", id="a tag that does not fit"),
        pytest.param("a: 1\n---\nb: 2\n", r"m\.yaml: holds 2 documents where one is expected", id="two documents"),
        pytest.param("a: \x00\n", r"m\.yaml.*control characters are not allowed", id="a NUL"),
        pytest.param(b"a: 1\nb: \xff\n", r"m\.yaml, line 2: is not UTF-8 text \(byte 0xff\)", id="not UTF-8"),
        pytest.param('{"a": 1', r"m\.yaml, line 2, column 1: .*expected .,. or", id="truncated JSON"),
    ],
)
def test_refused(text: str | bytes, error: str) -> None:
    """Invalid YAML is one error with file and line, found quickly, and the process survives."""
    began = time.process_time()
    with pytest.raises(kyaml.YamlError, match=error):
        kyaml.load(text, name="m.yaml")
    assert time.process_time() - began < 5


def test_strict_refuses_a_duplicate_key() -> None:
    """Strict loading names the key and its line; a merged key may be replaced."""
    with pytest.raises(kyaml.YamlError, match=r"line 2, column 1: key 'a' is there twice"):
        kyaml.load("a: 1\na: 2\n", strict=True)
    with pytest.raises(kyaml.YamlError, match="key 'a' is there twice"):
        kyaml.load('{"a": 1, "a": 2}', strict=True)
    assert kyaml.load("x: &x {a: 1}\nv: {<<: *x, a: 2}\n", strict=True)["v"] == {"a": 2}


@pytest.mark.parametrize(
    "text", ["y", "no", "on", "null", "~", "", "0644", "0o644", "1e3", "1_0", "1:30", "2001-01-01", "=", "<<"]
)
def test_dump_quotes_what_a_reader_could_mistake(text: str) -> None:
    """Text that looks like something else survives Kubernetes' reader, and PyYAML's YAML 1.1 reader too."""
    written = kyaml.dump({"a": text})
    assert kyaml.load(written) == {"a": text}
    assert pyyaml.safe_load(written) == {"a": text}


def test_dump_looks_like_kubectl() -> None:
    """Keys keep their order, sequences are not indented, text with line breaks is a block, nothing is anchored."""
    shared = {"x": 1}
    assert kyaml.dump({"kind": "A", "apiVersion": "v1", "items": [shared, shared], "text": "a\nb\n", "on": True}) == (
        'kind: A\napiVersion: v1\nitems:\n- x: 1\n- x: 1\ntext: |\n  a\n  b\n"on": true\n'
    )


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Co", "Cn"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abyn01.~-<", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(JSON_VALUES)
def test_dump_then_load_gives_the_same(value: Any) -> None:
    """Any JSON value survives being written and read."""
    assert kyaml.load_all(kyaml.dump(value)) == [value]


def _calls_for(items: int) -> int:
    """How many calls it takes to load so many plain mappings of eleven nodes: work, on whatever machine."""
    text = "items:\n" + "- name: some-name\n  value: 12\n  enabled: true\n  list: [a, b, c]\n" * items
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        loaded = kyaml.load(text)
    finally:
        sys.setprofile(before)
    assert len(loaded["items"]) == items
    return calls


def test_work_grows_with_the_text_and_no_faster() -> None:
    """The builder keeps pace with payloads of megabytes: four times the text are four times the calls."""
    small, large = _calls_for(500), _calls_for(2000)
    assert 3.5 * small < large < 4.1 * small
