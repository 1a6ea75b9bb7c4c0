"""What becomes of stored objects, and of those who watch them, when their definition changes or goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.api import CRDS, JSON, TABLE, Api, managed
from tests.contract.conftest import define

SPEC = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
UNDECLARED = ".spec.more: field not declared in schema"
SCHEMA: JSON = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "mode": {"type": "string"}}}},
}


def _group(path: str) -> str:
    return path.split("/")[2]


def _create(api: Api, path: str, name: str, spec: JSON) -> JSON:
    body = {"apiVersion": f"{_group(path)}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    created: JSON = api.post(path, body).ok()
    return created


def _change(api: Api, path: str, *operations: JSON) -> None:
    api.json_patch(f"{CRDS}/widgets.{_group(path)}", *operations).ok()


def _eventually(met: Callable[[], bool], what: str) -> None:
    """A real server takes a moment to serve what a definition says."""
    deadline = time.monotonic() + 90
    while not met():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture
def defaulted(api: Api) -> str:
    """Two objects that were stored before their definition had a default: `old`, and `own` with a separate value."""
    columns = [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}]
    path = define(
        api, SCHEMA, additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.mode"}], status=True
    )
    _create(api, path, "old", {"size": 1})
    _create(api, path, "own", {"size": 1, "mode": "Slow"})
    default = {"op": "add", "path": f"{SPEC}/mode/default", "value": "Fast"}
    added = {"op": "add", "path": f"{SPEC}/more", "value": {"type": "object", "default": {"a": 1}}}
    added["value"]["properties"] = {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}  # type: ignore[index]
    _change(api, path, default, added)
    _eventually(lambda: "mode" in api.get(f"{path}/old").ok()["spec"], "the default is served")
    # Its storage is recreated, which a real server says by 429 for a moment.
    _eventually(lambda: api.get(path, fieldSelector="spec.mode=Fast").code == 200, "the kind is listed")
    return path


MORE = {"a": 1, "b": 2}


@pytest.mark.slow
def test_reads_have_the_defaults(api: Api, defaulted: str) -> None:
    """get, list, watch and table; what is stored has its own value, and its revision stays."""
    assert api.get(f"{defaulted}/old").ok()["spec"] == {"size": 1, "mode": "Fast", "more": MORE}
    assert [item["spec"]["mode"] for item in api.get(defaulted).ok()["items"]] == ["Fast", "Slow"]
    seen = api.events(defaulted, 2).ok()["events"]
    assert [event["object"]["spec"]["mode"] for event in seen] == ["Fast", "Slow"]
    rows = api.get(defaulted, accept=TABLE).ok()["rows"]
    assert [row["cells"] for row in rows] == [["old", "Fast"], ["own", "Slow"]]


@pytest.mark.parametrize(("selector", "names"), [("Fast", ["old"]), ("Slow", ["own"])])
def test_a_field_selector_has_the_defaults(api: Api, defaulted: str, selector: str, names: list[str]) -> None:
    """In lists and in watches."""
    chosen = {"fieldSelector": f"spec.mode={selector}"}
    assert [item["metadata"]["name"] for item in api.get(defaulted, **chosen).ok()["items"]] == names
    seen = api.events(defaulted, 1, **chosen).ok()["events"]
    assert [event["object"]["metadata"]["name"] for event in seen] == names


def test_a_write_keeps_the_defaults(api: Api, defaulted: str) -> None:
    """Nobody owns them, they count no generation, a patch may test them; and a patch of nothing writes them down."""
    before = api.get(f"{defaulted}/old").ok()
    api.json_patch(f"{defaulted}/old", {"op": "test", "path": "/spec/mode", "value": "Fast"}).ok()
    after = api.merge(f"{defaulted}/old", {"metadata": {"labels": {"a": "b"}}}).ok()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == 1
    assert [owned["f:spec"] for owned in managed(after).values() if "f:spec" in owned] == [{".": {}, "f:size": {}}]
    again = api.merge(f"{defaulted}/old", {}).ok()
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


def test_a_write_of_nothing_is_one_where_a_default_is_missing(api: Api, defaulted: str) -> None:
    """Changes how objects are stored."""
    before = api.get(f"{defaulted}/old").ok()
    after = api.merge(f"{defaulted}/old", {}).ok()
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert after["spec"] == before["spec"]


def test_the_status_and_the_end_have_the_defaults(api: Api, defaulted: str) -> None:
    """A write of the status, and what a watch reports a deletion."""
    status = api.merge(f"{defaulted}/old/status", {"status": {}}).ok()
    assert status["spec"]["mode"] == "Fast"
    with api.watch(defaulted, resourceVersion=status["metadata"]["resourceVersion"]) as events:
        api.delete(f"{defaulted}/own").ok()
        last = next(events)
    assert (last["type"], last["object"]["spec"]) == ("DELETED", {"size": 1, "mode": "Slow", "more": MORE})


# -- watches -----------------------------------------------------------------------------------------------------------


def _unserved(api: Api, path: str) -> None:
    second: Any = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    _change(
        api,
        path,
        {"op": "add", "path": "/spec/versions/-", "value": second},
        {"op": "replace", "path": "/spec/versions/0/served", "value": False},
    )


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param(
            lambda api, path: api.delete(f"{CRDS}/widgets.{_group(path)}").ok(), ["ADDED", "DELETED"], id="goes"
        ),
        pytest.param(_unserved, ["ADDED"], id="is not served in that version any more"),
        pytest.param(
            lambda api, path: _change(api, path, {"op": "add", "path": f"{SPEC}/new", "value": {"type": "string"}}),
            ["ADDED"],
            id="gets another schema",
        ),
    ],
)
def test_a_watch_ends_when_its_kind(api: Api, change: Callable[[Api, str], Any], shown: list[str]) -> None:
    """After what it has to tell, without an error, and long before its time: the client looks again."""
    path = define(api, SCHEMA)
    _create(api, path, "a", {})
    seen: list[str] = []
    first, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with api.watch(path, timeoutSeconds="200") as events:
            for event in events:
                seen.append(event["type"])
                first.set()
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    assert first.wait(90)
    change(api, path)
    assert ended.wait(90)
    assert seen == shown


def test_a_watch_of_a_kind_that_is_gone(api: Api) -> None:
    """The same as of any path that leads nowhere."""
    path = define(api, SCHEMA)
    api.delete(f"{CRDS}/widgets.{_group(path)}").ok()
    _eventually(lambda: api.get(path).code == 404, "the kind is gone")
    answer = api.get(path, watch="1")
    assert (answer.code, answer.body) == (404, "404 page not found\n")


# -- the version in which objects lie ----------------------------------------------------------------------------------


def test_a_write_of_nothing_moves_an_object_to_the_stored_version(api: Api) -> None:
    """How storage is migrated: once moved, such a write changes nothing any more; nor does it on the way back by v1."""
    path = define(api, SCHEMA)
    _create(api, path, "a", {"size": 1})
    before = api.merge(f"{path}/a", {}).ok()["metadata"]["resourceVersion"]
    assert before == api.get(f"{path}/a").ok()["metadata"]["resourceVersion"]
    newer = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    _change(
        api,
        path,
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "add", "path": "/spec/versions/-", "value": newer},
    )
    new_path = path.replace("/v1/", "/v2/")
    _eventually(lambda: api.get(f"{new_path}/a").code == 200, "the new version is served")

    def moved() -> bool:
        answer = api.merge(f"{path}/a", {})
        return answer.code == 200 and answer.ok()["metadata"]["resourceVersion"] != before

    _eventually(moved, "the object is written anew")
    for served in (path, new_path):
        then = api.get(f"{served}/a").ok()
        again = api.merge(f"{served}/a", {}).ok()
        assert again["metadata"] == then["metadata"]
        assert (again["apiVersion"], again["spec"]) == (f"{_group(path)}/{served.split('/')[3]}", {"size": 1})
    assert api.get(f"{CRDS}/widgets.{_group(path)}").ok()["status"]["storedVersions"] == ["v1", "v2"]


# -- server-side apply -------------------------------------------------------------------------------------------------

OPEN: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "owned"),
    [
        pytest.param(
            OPEN, {"f:other": {".": {}, "f:z": {}}, "f:spec": {".": {}, "f:n": {}, "f:x": {}}}, id="without properties"
        ),
        pytest.param(
            OPEN | {"properties": {"spec": {"type": "object"}}},
            {"f:other": {".": {}, "f:z": {}}, "f:spec": {"f:n": {}, "f:x": {}}},
            id="with one",
        ),
    ],
)
def test_an_apply_where_the_root_keeps_unknown_fields(api: Api, schema: JSON, owned: JSON) -> None:
    """Maps are owned by their members, lists as a whole; another applier meets a conflict."""
    path = define(api, schema)
    body: JSON = {"apiVersion": f"{_group(path)}/v1", "kind": "Widget", "metadata": {"name": "a"}}
    made = api.apply(f"{path}/a", {**body, "spec": {"x": [1, {"y": 2}], "n": "1"}, "other": {"z": 1}}, "one").ok()
    assert managed(made) == {"one Apply": owned}
    refused = api.apply(f"{path}/a", {**body, "spec": {"x": [2]}}, "two")
    assert refused.failure == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.x')
    left = api.apply(f"{path}/a", {**body, "other": {"z": 2}}, "one").ok()
    assert {key: value for key, value in left.items() if key not in {"apiVersion", "kind", "metadata"}} == {
        "other": {"z": 2}
    }


def test_a_manager_of_a_version_that_cannot_hold_the_object_refuses_an_apply(api: Api) -> None:
    """Its fields cannot be compared; a manager of a version that is not served owns nothing."""
    more = {**SCHEMA["properties"]["spec"]["properties"], "more": {"type": "string"}}
    newer = {"type": "object", "properties": {"spec": {"type": "object", "properties": more}}}
    path = define(api, newer)
    group, older_path = _group(path), path.replace("/v1/", "/v1beta1/")
    older = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    _change(api, path, {"op": "add", "path": "/spec/versions/-", "value": older})
    _eventually(lambda: api.get(older_path).code == 200, "the older version is served")

    def widget(version: str, **spec: str) -> JSON:
        return {"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}

    api.apply(f"{older_path}/a", widget("v1beta1", mode="Slow"), "one").ok()
    refused = api.apply(f"{path}/a", widget("v1", more="x"), "two")
    assert (refused.code, refused.message) == (500, f"failed to convert new object: {UNDECLARED}")
    gone = {"manager": "gone", "operation": "Apply", "apiVersion": f"{group}/v9", "fieldsType": "FieldsV1"}
    entries = [{**gone, "fieldsV1": {"f:spec": {"f:mode": {}}}}]
    api.merge(f"{path}/a", {"metadata": {"managedFields": entries}}).ok()
    conflict = api.apply(f"{path}/a", widget("v1", mode="Fast"), "two")
    assert (conflict.code, "before-first-apply" in conflict.message) == (409, True)
