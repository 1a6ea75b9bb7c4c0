"""An object whose `managedFields` were emptied stays without them, as long as nobody applies to it."""

from __future__ import annotations

from typing import Any

from tests.contract.api import APPLY, MERGE, Api, managed
from tests.contract.conftest import define

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object"},
        "status": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}


def fields_of(api: Api, path: str) -> list[Any]:
    """The managers of the object."""
    managers: list[Any] = api.get(path).ok()["metadata"].get("managedFields", [])
    return managers


def test_writes_of_the_status_do_not_bring_them_back(api: Api) -> None:
    """What the update status controller relies on to keep a large object small."""
    widgets = define(api, SCHEMA, status=True)
    path, api_version = f"{widgets}/one", "/".join(widgets.split("/")[2:4])
    body = {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "one"}, "spec": {}}
    api.post(widgets, body).ok()
    assert fields_of(api, path)
    api.send("PATCH", path, {"metadata": {"managedFields": [{}]}}, type_=MERGE).ok()
    assert fields_of(api, path) == []
    for text in ("first", "second"):
        current = api.get(path).ok()
        api.send("PUT", f"{path}/status", {**current, "status": {"text": text}}).ok()
    assert fields_of(api, path) == []
    assert api.get(path).ok()["status"] == {"text": "second"}
    labelled = {**body, "metadata": {"name": "one", "labels": {"a": "b"}}}
    api.send("PATCH", path, labelled, type_=APPLY, fieldManager="x").ok()
    assert fields_of(api, path)


def test_an_apply_to_an_untracked_status_owns_its_own_items_alone(api: Api) -> None:
    """Untracked fields get an owner, through the status as through the object, so that nobody takes them silently."""
    items = {"type": "object", "required": ["name"]}
    items["properties"] = {"name": {"type": "string"}, "value": {"type": "integer"}}  # type: ignore[assignment]
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    status = {"type": "object", "properties": {"items": {"type": "array", "items": items, **keyed}}}
    widgets = define(api, {"type": "object", "properties": {"status": status}}, status=True)
    path, api_version = f"{widgets}/one", "/".join(widgets.split("/")[2:4])
    body: dict[str, Any] = {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "one"}}
    api.post(widgets, body).ok()
    api.merge(path, {"metadata": {"managedFields": [{}]}}).ok()
    api.put(f"{path}/status", {**api.get(path).ok(), "status": {"items": [{"name": "x", "value": 1}]}}).ok()
    taken = api.apply(f"{path}/status", {**body, "status": {"items": [{"name": "x", "value": 2}]}}, "two")
    assert taken.failure == (
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "before-first-apply" with subresource "status" using '
        f'{api_version}: .status.items[name="x"].value',
    )
    added = api.apply(f"{path}/status", {**body, "status": {"items": [{"name": "y", "value": 2}]}}, "two").ok()
    assert [item["name"] for item in added["status"]["items"]] == ["x", "y"]
    owned = {".": {}, "f:name": {}, "f:value": {}}
    assert managed(added) == {
        "two Apply status": {"f:status": {"f:items": {'k:{"name":"y"}': owned}}},
        "before-first-apply Update status": {
            "f:status": {".": {}, "f:items": {".": {}, 'k:{"name":"x"}': owned}},
        },
    }
