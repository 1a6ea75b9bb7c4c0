"""An object whose `managedFields` were emptied stays without them, as long as nobody applies to it."""

from __future__ import annotations

from typing import Any

from tests.contract.api import APPLY, MERGE, Api
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
