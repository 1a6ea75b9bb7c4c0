"""Strategic merge patches of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.apiserver.patch.strategic import strategic_merge
from kubesandbox.apiserver.schema.builtin import builtin_schema
from kubesandbox.apiserver.status_errors import ApiError

JSON = dict[str, Any]
A, B = {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}
SCHEMA = builtin_schema("", "v1", "Pod")
assert SCHEMA is not None
TREE = SCHEMA.root


def containers(*items: JSON) -> JSON:
    """A pod of these containers."""
    return {"spec": {"containers": list(items)}}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param(
            containers({"name": "a", "image": "a:2"}), containers({"name": "a", "image": "a:2"}, B), id="by name"
        ),
        pytest.param(containers({"name": "a", "$patch": "delete"}), containers(B), id="an entry is deleted"),
        pytest.param(containers({"$patch": "replace"}, B), containers(B), id="the list is replaced"),
        pytest.param({"spec": {"containers": None}}, {"spec": {}}, id="null removes"),
        pytest.param(
            {"spec": {"$patch": "replace", "nodeName": "n"}}, {"spec": {"nodeName": "n"}}, id="a map replaced"
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}, containers(B, A), id="the order"
        ),
        pytest.param(
            containers({"name": "a", "args": ["x"]}), containers({**A, "args": ["x"]}, B), id="an atomic list is set"
        ),
    ],
)
def test_lists_merge_by_their_keys(patch: JSON, result: JSON) -> None:
    """Containers a and b, patched."""
    assert strategic_merge(TREE, containers(A, B), patch) == result


def test_new_entries_are_added() -> None:
    """An entry that was not there."""
    merged = strategic_merge(TREE, containers(A), containers(B))
    assert sorted(item["name"] for item in merged["spec"]["containers"]) == ["a", "b"]


def test_values_are_deleted_from_a_set() -> None:
    """`$deleteFromPrimitiveList`."""
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}
    assert strategic_merge(TREE, {"metadata": {"finalizers": ["x", "y"]}}, patch)["metadata"]["finalizers"] == ["y"]


def test_retained_keys() -> None:
    """`$retainKeys` drops what it does not name."""
    live = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}
    merged = strategic_merge(TREE, live, patch)
    assert merged["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_an_entry_without_its_key_is_refused() -> None:
    """The error names the key."""
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic_merge(TREE, containers(A), containers({"image": "x"}))


def test_an_unknown_directive_is_refused() -> None:
    """The error names the directive."""
    with pytest.raises(ApiError, match="unknown patch type: explode in map: map"):
        strategic_merge(TREE, {}, {"spec": {"$patch": "explode"}})
