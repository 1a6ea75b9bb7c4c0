"""JSON texts with a member twice: the quick look answers what the reading of all members does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesandbox.apiserver.http.body import has_duplicate_members, read_members

_KEYS = st.sampled_from(["a", "b", "metadata", 'quo"te'])


def _as_text(value: Any) -> str:
    """Returns JSON in which a list of pairs, marked by its type, is an object that may have a member twice."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{json.dumps(key)}: {_as_text(below)}" for key, below in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_text, value)) + "]"
    return json.dumps(value)


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.lists(st.tuples(_KEYS, below), max_size=3).map(tuple),
    max_leaves=8,
)


@given(st.lists(st.tuples(_KEYS, _VALUES), max_size=4).map(tuple))
def test_both_see_the_same_duplicates(value: tuple[Any, ...]) -> None:
    """In any object, however deep."""
    text = _as_text(value).encode()
    assert has_duplicate_members(text) == bool(read_members(text).again)


@pytest.mark.parametrize(
    "text",
    [b'{"a": 1, "a": 2}', b'{"a": [{"b": 1, "b": 1}]}', b'{"a":', b'{"a": "\xff"}', b"[" * 100_000],
    ids=["twice", "twice in a list", "cut off", "no UTF-8", "too deep"],
)
def test_what_is_not_known_is_read_as_a_whole(text: bytes) -> None:
    """A duplicate, and a text that cannot be parsed: the reading of all members says more."""
    assert has_duplicate_members(text)
