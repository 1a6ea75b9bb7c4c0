"""Custom resources in a version in which they are not stored: the server asks the definition's webhook."""

from __future__ import annotations

import copy
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.api import CRDS, JSON, TABLE, Api
from tests.contract.converter import Converter, converter

SPEC: JSON = {"type": "object", "properties": {"size": {"type": "integer"}, "kept": {"type": "string"}}}
NEW_SPEC: JSON = {
    "type": "object",
    "properties": {
        "length": {"type": "integer"},
        "kept": {"type": "string"},
        "more": {"type": "string", "default": "d"},
    },
}


def _convert(obj: JSON, desired: str) -> JSON:
    """`size` is called `length` in v2."""
    old, new = ("size", "length") if desired.endswith("/v2") else ("length", "size")
    spec = {new if key == old else key: value for key, value in obj.get("spec", {}).items() if key != "more"}
    return {**obj, "apiVersion": desired, "spec": spec}


def answer(question: JSON) -> JSON:
    """As it should be."""
    request = question["request"]
    made = [_convert(each, request["desiredAPIVersion"]) for each in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": made}
    return {"apiVersion": question["apiVersion"], "kind": "ConversionReview", "response": response}


class Widgets:
    """A kind stored in v1 and served in v2, too."""

    def __init__(self, api: Api, hook: Converter, conversion: JSON | None = None) -> None:
        self.api, self.hook = api, hook
        self.group = f"g{uuid.uuid4().hex[:8]}.contract.example"
        versions = [
            {"name": name, "served": True, "storage": name == "v1", "subresources": {"status": {}}}
            | {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": OPEN}}}}
            | {"additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": f".spec.{column}"}]}
            for name, spec, column in (("v1", SPEC, "size"), ("v2", NEW_SPEC, "length"))
        ]
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        spec = {"group": self.group, "scope": "Cluster", "names": names, "versions": versions}
        spec["conversion"] = conversion or hook.config()
        api.post(CRDS, {"metadata": {"name": f"widgets.{self.group}"}, "spec": spec}).ok()
        deadline = time.monotonic() + 90
        while any(self.get("v1").code != 200 or api.get(self.path(v)).code == 404 for v in ("v1", "v2")):
            assert time.monotonic() < deadline, "the kind is not served"
            time.sleep(0.05)

    def path(self, version: str, name: str = "") -> str:
        """Of all, or of one."""
        return f"/apis/{self.group}/{version}/widgets{'/' if name else ''}{name}"

    def body(self, version: str, name: str, spec: JSON | None = None, **metadata: Any) -> JSON:
        """An object."""
        head = {"apiVersion": f"{self.group}/{version}", "kind": "Widget", "metadata": {"name": name, **metadata}}
        return {**head, "spec": spec or ({"size": 1} if version == "v1" else {"length": 1})}

    def create(self, version: str, name: str, spec: JSON | None = None, **metadata: Any) -> Any:
        """POST."""
        return self.api.post(self.path(version), self.body(version, name, spec, **metadata))

    def get(self, version: str, name: str = "", **query: Any) -> Any:
        """GET of all, or of one."""
        return self.api.get(self.path(version, name), **query)


OPEN: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Converter]:
    """A webhook that answers as it should."""
    with converter(tmp_path, answer) as made:
        yield made


@pytest.fixture
def widgets(api: Api, hook: Converter) -> Widgets:
    """A kind of the test's own."""
    return Widgets(api, hook)


def test_an_object_is_read_in_every_version(widgets: Widgets) -> None:
    """get, list, table; stored in one version whoever wrote it, a default of another version is not filled in."""
    made = widgets.create("v2", "a", {"length": 2}).ok()
    assert (made["apiVersion"], made["spec"]) == (f"{widgets.group}/v2", {"length": 2})
    widgets.create("v1", "b", {"size": 3}).ok()
    assert widgets.get("v1", "a").ok()["spec"] == {"size": 2}
    assert widgets.get("v2", "b").ok()["spec"] == {"length": 3}
    found = widgets.get("v2").ok()
    assert found["apiVersion"] == f"{widgets.group}/v2"
    assert [(each["apiVersion"], each["spec"]["length"]) for each in found["items"]] == [
        (f"{widgets.group}/v2", 2),
        (f"{widgets.group}/v2", 3),
    ]
    assert [each["spec"]["size"] for each in widgets.get("v1").ok()["items"]] == [2, 3]
    assert [row["cells"] for row in widgets.get("v2", accept=TABLE).ok()["rows"]] == [["a", 2], ["b", 3]]


def test_what_the_webhook_is_asked(widgets: Widgets, hook: Converter) -> None:
    """Whole objects, and which version is wanted; never for the version in which they are stored."""
    widgets.create("v1", "a").ok()
    widgets.get("v1", "a").ok()
    widgets.get("v2", "a").ok()
    (question,) = {each["desiredAPIVersion"]: each for each in hook.questions}.values()
    assert question["desiredAPIVersion"] == f"{widgets.group}/v2"
    (sent,) = question["objects"]
    assert (sent["apiVersion"], sent["kind"], sent["spec"]) == (f"{widgets.group}/v1", "Widget", {"size": 1})
    assert sent["metadata"]["name"] == "a"


def test_an_object_is_written_in_every_version(widgets: Widgets) -> None:
    """PUT, the patches, apply, the status: the answer is in the version that was asked for, the rest stays."""
    made = widgets.create("v1", "a", {"size": 1, "kept": "k"}).ok()
    put = widgets.body("v2", "a", {"length": 2, "kept": "k"}, resourceVersion=made["metadata"]["resourceVersion"])
    assert widgets.api.put(widgets.path("v2", "a"), put).ok()["spec"] == {"length": 2, "kept": "k"}
    assert widgets.get("v1", "a").ok()["spec"] == {"size": 2, "kept": "k"}
    merged = widgets.api.merge(widgets.path("v2", "a"), {"spec": {"length": 3}}).ok()
    assert merged["spec"] == {"length": 3, "kept": "k"}
    changed = widgets.api.json_patch(
        widgets.path("v2", "a"), {"op": "replace", "path": "/spec/length", "value": 4}
    ).ok()
    assert changed["spec"]["length"] == 4
    applied = widgets.api.apply(
        widgets.path("v2", "a"), widgets.body("v2", "a", {"length": 5}), "me", force="true"
    ).ok()
    assert (applied["apiVersion"], applied["spec"]["length"]) == (f"{widgets.group}/v2", 5)
    status = widgets.api.merge(widgets.path("v2", "a") + "/status", {"status": {"n": 1}}).ok()
    assert (status["status"], status["spec"]["length"]) == ({"n": 1}, 5)
    old = widgets.get("v1", "a").ok()
    assert (old["spec"], old["status"]) == ({"size": 5, "kept": "k"}, {"n": 1})
    assert old["metadata"]["uid"] == made["metadata"]["uid"]
    assert widgets.create("v2", "new", {"length": 1}, generateName="x").ok()["spec"]["length"] == 1
    assert widgets.api.delete(widgets.path("v2", "a")).ok()["status"] == "Success"
    assert widgets.get("v1", "a").code == 404


def test_an_attempt_is_answered_in_its_version(widgets: Widgets) -> None:
    """Nothing is stored, all else is the same."""
    made = widgets.api.post(widgets.path("v2"), widgets.body("v2", "a"), dryRun="All").ok()
    assert (made["apiVersion"], made["spec"]["length"]) == (f"{widgets.group}/v2", 1)
    assert widgets.get("v1", "a").code == 404
    widgets.create("v1", "a").ok()
    tried = widgets.api.merge(widgets.path("v2", "a"), {"spec": {"length": 7}}, dryRun="All").ok()
    assert (tried["apiVersion"], tried["spec"]["length"]) == (f"{widgets.group}/v2", 7)
    assert widgets.get("v1", "a").ok()["spec"] == {"size": 1}


def test_a_watch_is_in_its_version(widgets: Widgets) -> None:
    """Lists the objects, then watches additions, changes and deletions."""
    widgets.create("v1", "a").ok()
    seen: list[JSON] = []
    done = threading.Event()
    first = threading.Event()

    def follow() -> None:
        with widgets.api.watch(widgets.path("v2"), timeoutSeconds="60") as events:
            for event in events:
                seen.append(event)
                first.set()
                if event["type"] == "DELETED":
                    break
        done.set()

    threading.Thread(target=follow, daemon=True).start()
    assert first.wait(90)
    widgets.api.merge(widgets.path("v1", "a"), {"spec": {"size": 9}}).ok()
    widgets.api.delete(widgets.path("v1", "a")).ok()
    assert done.wait(90)
    shown = [(each["type"], each["object"]["apiVersion"], each["object"]["spec"]["length"]) for each in seen]
    version = f"{widgets.group}/v2"
    assert shown == [("ADDED", version, 1), ("MODIFIED", version, 9), ("DELETED", version, 9)]


def test_a_webhook_changes_labels_and_annotations_alone(widgets: Widgets, hook: Converter) -> None:
    """Whatever else it says about the metadata is put right."""

    def other(question: JSON) -> JSON:
        made = copy.deepcopy(answer(question))
        for each in made["response"]["convertedObjects"]:
            metadata = each["metadata"]
            metadata["labels"] = {"a": "new"}
            metadata.pop("annotations", None)
            metadata["resourceVersion"], metadata["generation"] = "1", 77
            metadata["finalizers"] = ["x.example/y"]
        return made

    made = widgets.create("v1", "a", labels={"a": "old"}, annotations={"b": "c"}).ok()["metadata"]
    hook.answer = other
    found = widgets.get("v2", "a").ok()["metadata"]
    assert found["labels"] == {"a": "new"}
    assert "annotations" not in found
    assert "finalizers" not in found
    assert {key: found[key] for key in ("resourceVersion", "generation", "uid")} == {
        key: made[key] for key in ("resourceVersion", "generation", "uid")
    }


def _changed(**changes: Any) -> Callable[[JSON], JSON]:
    def wrong(question: JSON) -> JSON:
        made = answer(question)
        for each in made["response"]["convertedObjects"]:
            each.update({key: value for key, value in changes.items() if key != "metadata"})
            each["metadata"] = {**each["metadata"], **changes.get("metadata", {})}
        return made

    return wrong


def _response(**changes: Any) -> Callable[[JSON], JSON]:
    def wrong(question: JSON) -> JSON:
        made = answer(question)
        made["response"] = {**made["response"], **changes}
        return made

    return wrong


def _without_metadata(question: JSON) -> JSON:
    made = answer(question)
    for each in made["response"]["convertedObjects"]:
        del each["metadata"]
    return made


FAILED = "conversion webhook for {group}/v1, Kind=Widget failed: "
RETURNED = "conversion webhook for {group}/v1, Kind=Widget returned "


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        pytest.param(
            _response(result={"status": "Failure", "message": "no, thanks"}), FAILED + "no, thanks", id="it refuses"
        ),
        pytest.param(
            _response(result={"status": "Failure"}),
            FAILED + "response.result.status was 'Failure', not 'Success'",
            id="without a word",
        ),
        pytest.param(
            _response(result={}), FAILED + "response.result.status was '', not 'Success'", id="it says nothing"
        ),
        pytest.param(
            _response(uid="x"), FAILED + 'expected response.uid="{uid}", got "x"', id="another question's answer"
        ),
        pytest.param(
            lambda question: {**answer(question), "response": None}, FAILED + "no response provided", id="no response"
        ),
        pytest.param(lambda question: {**answer(question), "kind": "Other"}, None, id="another kind of answer"),
        pytest.param(_response(convertedObjects=[]), RETURNED + "0 objects, expected 1", id="an object is missing"),
        pytest.param(
            _changed(apiVersion="x/v2"),
            RETURNED + "invalid object at index 0: invalid groupVersion (expected {group}/v2, received x/v2)",
            id="another version",
        ),
        pytest.param(
            _changed(kind="Other"),
            RETURNED + "invalid object at index 0: invalid kind (expected Widget, received Other)",
            id="another kind",
        ),
        pytest.param(
            _changed(metadata={"name": "b"}),
            RETURNED + "invalid object: must have the same name: a != b",
            id="another name",
        ),
        pytest.param(
            _changed(metadata={"namespace": "b"}),
            RETURNED + "invalid object: must have the same namespace:  != b",
            id="another namespace",
        ),
        pytest.param(
            _changed(metadata={"uid": "b"}),
            RETURNED + "invalid object: must have the same UID: {object} != b",
            id="another uid",
        ),
        pytest.param(_without_metadata, RETURNED + "invalid object: must have the same name: a != ", id="no metadata"),
        pytest.param(
            _changed(metadata={"labels": {"a": 1}}),
            RETURNED + "invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            id="a label that is no text",
        ),
        pytest.param(lambda _: (500, "broken"), None, id="it breaks"),
        pytest.param(lambda _: (200, "no JSON"), None, id="no JSON"),
    ],
)
def test_a_webhook_that_answers_wrongly(
    widgets: Widgets, hook: Converter, wrong: Callable[[JSON], Any], words: str | None
) -> None:
    """The read fails, and says whose fault it is; in the version in which it is stored the object is there."""
    made = widgets.create("v1", "a").ok()
    hook.answer = wrong
    hook.questions.clear()
    refused = widgets.get("v2", "a")
    assert refused.code == 500, refused.body
    # A real server keeps a separate list in that version, for which it asks, too.
    named = [{"group": widgets.group, "uid": q["uid"], "object": made["metadata"]["uid"]} for q in hook.questions]
    assert words is None or refused.message in {words.format(**each) for each in named}
    assert refused.message.startswith("conversion webhook for {group}/v1, Kind=Widget ".format(**named[0]))
    assert widgets.get("v1", "a").ok()["spec"] == {"size": 1}
    assert widgets.create("v2", "c").code == 500
    hook.answer = answer
    assert widgets.get("v1", "c").code == 404


def test_a_webhook_may_vouch_for_itself(api: Api, hook: Converter) -> None:
    """The caBundle is the webhook's own certificate, as controller-runtime's envtest writes it."""
    widgets = Widgets(api, hook, hook.config(caBundle=hook.certificate))
    widgets.create("v1", "a").ok()
    assert widgets.get("v2", "a").code == 200
    assert widgets.api.delete(f"{CRDS}/widgets.{widgets.group}").code == 200


@pytest.mark.parametrize(
    ("conversion", "words"),
    [
        pytest.param({"url": "https://127.0.0.1:1/convert"}, "connect: connection refused", id="nobody listens"),
        pytest.param({"caBundle": None}, "x509: certificate signed by unknown authority", id="nobody vouches for it"),
    ],
)
def test_a_webhook_that_cannot_be_asked(api: Api, hook: Converter, conversion: JSON, words: str) -> None:
    """Which, and why; the version in which objects are stored needs nobody."""
    config = hook.config(**conversion)
    config["webhook"]["clientConfig"] = {k: v for k, v in config["webhook"]["clientConfig"].items() if v is not None}
    widgets = Widgets(api, hook, config)
    widgets.create("v1", "a").ok()
    refused = widgets.get("v2", "a")
    assert refused.code == 500
    assert refused.message.startswith(FAILED.format(group=widgets.group))
    assert words in refused.message
    assert widgets.get("v2").code == 500
    assert widgets.api.delete(widgets.path("v1", "a")).code == 200
    assert widgets.api.delete(f"{CRDS}/widgets.{widgets.group}").code == 200
