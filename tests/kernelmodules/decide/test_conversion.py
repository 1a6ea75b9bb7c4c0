"""Validations in both versions: nothing is lost, no bad Module is reported as fine."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runup.kernelmodules.decide.conversion import NEW, OLD, Unconvertible, convert, review

JSON = dict[str, Any]
TIME = "2026-01-02T03:04:05Z"
TRUE = {"verificationStatus": "True", "verificationStage": "Done", "lastTransitionTime": TIME}
FALSE = {
    "verificationStatus": "False",
    "verificationStage": "Requeued",
    "lastTransitionTime": TIME,
    "statusReason": "no",
}
SUCCESS = {**TRUE, "verificationStatus": "Success"}
FAILURE = {**FALSE, "verificationStatus": "Failure", "verificationStage": "Done"}
KERNELS = [{"architecture": "amd64", "kernelVersion": "6.1.0"}]


def validation(version: str, status: Any = None, kind: str = "PreflightValidationOCP") -> JSON:
    """One that asks for a release."""
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "p", "uid": "u"}, "spec": {"releaseImage": "r"}}
    return obj if status is None else {**obj, "status": status}


@pytest.mark.parametrize(
    ("modules", "statuses"),
    [
        pytest.param(
            [{"namespace": "a", "name": "x", **SUCCESS}], {"a/x": TRUE, "x": TRUE}, id="a Module has two keys"
        ),
        pytest.param(
            [{"namespace": "a", "name": "x", **FAILURE}, {"namespace": "b", "name": "x", **SUCCESS}],
            {"a/x": FALSE, "b/x": TRUE, "x": FALSE},
            id="of one name in two namespaces the name alone says what is not verified",
        ),
        pytest.param(
            [{"namespace": "a", "name": "x", **SUCCESS}, {"namespace": "b", "name": "x", **FAILURE}],
            {"a/x": TRUE, "b/x": FALSE, "x": FALSE},
            id="whichever comes first",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["PreflightValidation", "PreflightValidationOCP"])
def test_a_list_becomes_a_map_and_a_list_again(kind: str, modules: list[JSON], statuses: JSON) -> None:
    """Next to it all stays: other fields of the status, metadata, spec."""
    new = validation(NEW, {"modules": modules, "kernels": KERNELS}, kind)
    before = copy.deepcopy(new)
    old = convert(new, OLD)
    assert old == validation(OLD, {"crStatuses": statuses, "kernels": KERNELS}, kind)
    assert convert(old, NEW) == new == before


@pytest.mark.parametrize(
    ("statuses", "modules"),
    [
        pytest.param({"a/x": TRUE, "x": None}, [{"namespace": "a", "name": "x", **SUCCESS}], id="a null beside it"),
        pytest.param({"a/x": None, "b/y": FALSE}, [{"namespace": "b", "name": "y", **FAILURE}], id="a null"),
        pytest.param(
            {"a/x": TRUE, "y": FALSE}, [{"namespace": "a", "name": "x", **SUCCESS}], id="a name of nobody knows where"
        ),
        pytest.param({"/x": TRUE, "a/": TRUE, "a/b/c": TRUE}, None, id="what is no key"),
        pytest.param({"x": TRUE}, None, id="names alone"),
        pytest.param({}, None, id="an empty map"),
        pytest.param(None, None, id="a null for a map"),
        pytest.param([], None, id="a list for a map"),
    ],
)
def test_a_map_that_others_wrote(statuses: Any, modules: list[JSON] | None) -> None:
    """One odd key leaves the others as they are; upstream it empties the list."""
    converted = convert(validation(OLD, {"crStatuses": statuses}), NEW)
    assert converted["status"] == ({} if modules is None else {"modules": modules})


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        pytest.param(("Success", "Done", None), ("True", "Done"), id="verified"),
        pytest.param(("Failure", "Done", None), ("False", "Requeued"), id="failed, and tried again"),
        pytest.param(("InProgress", "Image", None), ("False", "Image"), id="the image is looked at"),
        pytest.param(("InProgress", "Image", "Build"), ("False", "Build"), id="it is being built"),
        pytest.param(("InProgress", "Image", "Sign"), ("False", "Sign"), id="it is being signed"),
    ],
)
def test_each_version_has_its_words(newer: tuple[str, str, str | None], older: tuple[str, str]) -> None:
    """Those of KMM 2.4 in v1beta2, those of KMM 1.0 to 2.3 in v1beta1; the reason is the same in both."""
    status, stage, running = newer
    words = {"verificationStatus": status, "verificationStage": stage, "statusReason": "r"}
    words |= {"runningStage": running} if running else {}
    new = validation(NEW, {"modules": [{"namespace": "a", "name": "x", **words}]})
    entry = {"verificationStatus": older[0], "verificationStage": older[1], "statusReason": "r"}
    old = validation(OLD, {"crStatuses": {"a/x": entry, "x": entry}})
    assert (convert(new, OLD), convert(old, NEW)) == (old, new)


@pytest.mark.parametrize("key", ["verificationStatus", "verificationStage"])
@pytest.mark.parametrize("odd", [["x"], {"x": 1}, 1, "x"], ids=["a list", "a map", "a number", "another word"])
def test_words_that_others_sent_pass_through(key: str, odd: Any) -> None:
    """In both directions, next to a Module whose words are known."""
    new = {
        "modules": [{"namespace": "a", "name": "x", **SUCCESS, key: odd}, {"namespace": "b", "name": "y", **FAILURE}]
    }
    entry = {**SUCCESS, key: odd}
    old = {"crStatuses": {"a/x": entry, "x": entry, "b/y": FALSE, "y": FALSE}}
    assert convert(validation(NEW, new), OLD) == validation(OLD, old)
    assert convert(validation(OLD, old), NEW) == validation(NEW, new)


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("status", [None, {}, {"conditions": []}, []])
def test_a_status_without_modules_stays(version: str, status: Any) -> None:
    """As long as nothing was looked at."""
    other = OLD if version == NEW else NEW
    assert convert(validation(version, status), other) == validation(other, status)


@pytest.mark.parametrize(
    ("obj", "desired", "shown"),
    [
        pytest.param(
            validation(NEW), "kmm.sigs.x-k8s.io/v2", "there is no version kmm.sigs.x-k8s.io/v2", id="to a later"
        ),
        pytest.param(validation("v1"), NEW, "there is no version v1", id="from another"),
        pytest.param({**validation(OLD), "kind": "Module"}, NEW, "Module p: only", id="a Module"),
        pytest.param({}, NEW, "None None: only", id="nothing"),
    ],
)
def test_what_cannot_be_converted_is_named(obj: JSON, desired: str, shown: str) -> None:
    """Which object, and which versions there are."""
    with pytest.raises(Unconvertible) as caught:
        convert(obj, desired)
    assert shown in str(caught.value)


def test_the_servers_question_is_answered() -> None:
    """With its uid, in its version, every object in the order of the question."""
    question = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": OLD, "objects": [validation(NEW), validation(OLD)]},
    }
    answer = review(question)
    assert answer == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": "1",
            "convertedObjects": [validation(OLD), validation(OLD)],
            "result": {"status": "Success"},
        },
    }


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        pytest.param(
            {"uid": "1", "desiredAPIVersion": "x", "objects": [validation(NEW)]}, "no version x", id="no version"
        ),
        pytest.param({"uid": "1", "desiredAPIVersion": NEW, "objects": ["x"]}, "is not a JSON object", id="no object"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(request_: JSON, shown: str) -> None:
    """To whoever asked for the object: the server passes the message on."""
    response = review({"request": request_})["response"]
    assert (response["uid"], response["result"]["status"]) == ("1", "Failure")
    assert shown in response["result"]["message"]
    assert "convertedObjects" not in response


_name = st.text("abc", min_size=1, max_size=2)
_entry = st.sampled_from(
    [
        {"verificationStatus": "Success", "verificationStage": "Done"},
        {"verificationStatus": "Failure", "verificationStage": "Done"},
        {"verificationStatus": "InProgress", "verificationStage": "Image"},
        {"verificationStatus": "InProgress", "verificationStage": "Image", "runningStage": "Build"},
        {"verificationStatus": "InProgress", "verificationStage": "Image", "runningStage": "Sign"},
        # What an earlier version stored, and what no version knows.
        {"verificationStatus": "Success", "verificationStage": "Image"},
        {"verificationStatus": "Unsure", "verificationStage": "Done"},
    ]
)


@given(st.dictionaries(st.tuples(_name, _name), _entry, max_size=6))
def test_there_and_back_is_the_same(entries: dict[tuple[str, str], JSON]) -> None:
    """Whatever the Modules are called."""
    modules = [{"namespace": namespace, "name": name, **entry} for (namespace, name), entry in entries.items()]
    new = validation(NEW, {"modules": modules} if modules else {})
    assert convert(convert(new, OLD), NEW) == new
