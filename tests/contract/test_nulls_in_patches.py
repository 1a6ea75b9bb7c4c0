"""Which nulls of a patch reach the object: a merge patch loses all of them, a JSON patch none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.api import Api
from tests.contract.conftest import define

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NULLABLE = {"type": "string", "nullable": True}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": OPEN,
        "entries": {"type": "array", "items": {"type": "object", "required": ["end"], "properties": {"end": NULLABLE}}},
    },
}


@pytest.fixture(scope="module")
def widgets(api: Api) -> str:
    """Where widgets with an open spec are served."""
    return define(api, SCHEMA)


def _widget(path: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": path.split("/", 3)[2] + "/v1", "kind": "Widget", "metadata": {"name": name}, **fields}


@pytest.mark.parametrize(
    ("name", "before", "patch", "after"),
    [
        pytest.param("new", {}, {"list": [{"a": None, "b": 1}]}, {"list": [{"b": 1}]}, id="in a new list"),
        pytest.param(
            "other", {"list": [1]}, {"list": [{"a": None, "b": 1}, None]}, {"list": [{"b": 1}, None]}, id="in a list"
        ),
        pytest.param("map", {}, {"map": {"a": None, "b": {"c": None}}}, {"map": {"b": {}}}, id="in a new map"),
        pytest.param("text", {"x": "text"}, {"x": {"a": None}}, {"x": {}}, id="in a map in a text's place"),
    ],
)
def test_a_merge_patch_loses_nulls(
    api: Api, widgets: str, name: str, before: dict[str, Any], patch: dict[str, Any], after: dict[str, Any]
) -> None:
    """An item of a list that is null itself stays; a field of it does not."""
    api.post(widgets, _widget(widgets, name, spec=before)).ok()
    patched = api.merge(f"{widgets}/{name}", {"spec": patch}).ok()
    assert patched["spec"] == after


def test_a_required_null_needs_a_json_patch(api: Api, widgets: str) -> None:
    """`completionTime: null` in ClusterVersion's history is such a field."""
    path = f"{widgets}/required"
    api.post(widgets, _widget(widgets, "required")).ok()
    refused = api.merge(path, {"entries": [{"end": None}]})
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert "entries[0].end: Required value" in refused.body["message"]
    added = api.json_patch(path, {"op": "add", "path": "/entries", "value": [{"end": None}]}).ok()
    assert added["entries"] == [{"end": None}]
