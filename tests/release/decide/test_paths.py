"""Which fields differ, as paths, and how values are shown."""

from __future__ import annotations

from typing import Any

import pytest

from runup.release.decide.object_diff import ABSENT, changes, value_text

DIGEST = "registry.example/a@sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(ABSENT, "(none)", id="nothing"),
        pytest.param("", '""', id="an empty text"),
        pytest.param("a", "a", id="a text"),
        pytest.param("a" * 60, "a" * 60, id="as long as may be"),
        pytest.param("a" * 61, "text of 61 characters", id="one longer"),
        pytest.param("a\nb", "text of 3 characters", id="two lines"),
        pytest.param(DIGEST, "...@sha256:0123456789ab", id="by digest"),
        pytest.param(DIGEST + "0", "text of 91 characters", id="a digest that is too long"),
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="true"),
        pytest.param({"b": 1, "a": 2}, '{"a":2,"b":1}', id="a small object"),
        pytest.param({"b": "x" * 60, "a": 2}, "2 fields", id="a large object"),
        pytest.param(["x" * 60], "1 items", id="a large list"),
    ],
)
def test_how_a_value_is_shown(value: Any, text: str) -> None:
    """What is small as it is, what is not by its size."""
    assert value_text(value) == text


def test_nothing_says_that_it_is_nothing() -> None:
    """Also where it is only printed."""
    assert repr(ABSENT) == "absent"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="the same"),
        pytest.param({"a": 1}, {"a": True}, ["a: 1 -> true"], id="one and true"),
        pytest.param({"b": 1}, {"a": 1}, ["a: (none) -> 1", "b: 1 -> (none)"], id="come and gone"),
        pytest.param({"a": {"b.c": 1, "d/e": 1}}, {"a": {}}, ["a[b.c]: 1 -> (none)", "a[d/e]: 1 -> (none)"], id="keys"),
        pytest.param({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c: 1 -> 2"], id="deep"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, ["a: in another order"], id="another order"),
        pytest.param({"a": [1, 2]}, {"a": [2, 3]}, ["a: - 1 + 3"], id="one for another"),
        pytest.param({"a": [1]}, {"a": 1}, ["a: [1] -> 1"], id="a list no more"),
        pytest.param(
            {"a": [{"name": "x", "v": 1}, {"name": "y"}]},
            {"a": [{"name": "y"}, {"name": "x", "v": 2}]},
            ["a[x].v: 1 -> 2"],
            id="by name",
        ),
        pytest.param(
            {"a": [{"name": "x"}, {"name": "x"}]},
            {"a": [{"name": "x"}]},
            ['a[1]: {"name":"x"} -> (none)'],
            id="twice of one name",
        ),
        pytest.param(
            {"a": [{"v": 1}]},
            {"a": [{"v": 2}, {"v": 3}]},
            ["a[0].v: 1 -> 2", 'a[1]: (none) -> {"v":3}'],
            id="by position",
        ),
        pytest.param({"a": []}, {"a": [{"name": "x"}]}, ['a[0]: (none) -> {"name":"x"}'], id="the first of a list"),
        pytest.param(
            {"a": [{"containerPort": 1, "p": 1}]},
            {"a": [{"containerPort": 1, "p": 2}]},
            ["a[1].p: 1 -> 2"],
            id="by port",
        ),
        pytest.param({"status": 1}, {"status": 2}, [], id="status"),
        pytest.param(
            {"metadata": {"uid": 1, "resourceVersion": "1", "name": "a"}},
            {"metadata": {"uid": 2, "generation": 3, "name": "b"}},
            ["metadata.name: a -> b"],
            id="what the server writes",
        ),
        pytest.param({"metadata": 1}, {"metadata": 2}, ["metadata: 1 -> 2"], id="metadata that is not an object"),
        pytest.param(
            {"kind": "Secret", "data": {"a": "1", "b": "1"}, "type": "x"},
            {"kind": "Secret", "data": {"a": "2", "c": "2"}, "type": "y"},
            [
                "data.a: (withheld) -> (withheld)",
                "data.b: (withheld) -> (none)",
                "data.c: (none) -> (withheld)",
                "type: x -> y",
            ],
            id="a Secret",
        ),
        pytest.param(
            {"kind": "Secret", "stringData": {"a": "1"}},
            {"stringData": {"a": "2"}},
            ["kind: Secret -> (none)", "stringData.a: (withheld) -> (withheld)"],
            id="a Secret that says so no more",
        ),
        pytest.param(
            {"kind": "ConfigMap", "data": {"a": "1"}},
            {"kind": "ConfigMap", "data": {"a": "2"}},
            ["data.a: 1 -> 2"],
            id="a ConfigMap",
        ),
    ],
)
def test_what_differs(before: dict[str, Any], after: dict[str, Any], said: list[str]) -> None:
    """One line a field."""
    assert [str(change) for change in changes(before, after)] == said
