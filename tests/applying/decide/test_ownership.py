"""managedFields read: whether everything that a manifest says is still ours, and what earlier writers leave to us."""

from __future__ import annotations

from typing import Any

import pytest

from runup.applying.decide.merging import MANAGER, adopted_entries, owns_all_of

OBJECT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "n", "labels": {"a": "1"}, "ownerReferences": [{"uid": "u", "name": "v"}]},
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {
                "containers": [{"name": "c", "image": "i", "args": ["x"], "ports": [{"containerPort": 80}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }
        },
    },
}
# As a real kube-apiserver writes it for that object.
FIELDS: dict[str, Any] = {
    "f:metadata": {
        "f:labels": {"f:a": {}},
        "f:ownerReferences": {'k:{"uid":"u"}': {".": {}, "f:name": {}, "f:uid": {}}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:args": {},
                        "f:image": {},
                        "f:name": {},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                    }
                },
                "f:volumes": {'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            }
        },
    },
}


def without(fields: dict[str, Any], *path: str) -> dict[str, Any]:
    """`fields` without what is at that path; a server leaves no empty member behind."""
    first, *rest = path
    if not rest:
        return {key: value for key, value in fields.items() if key != first}
    return {**fields, first: without(fields[first], *rest)}


POD = ("f:spec", "f:template", "f:spec")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(FIELDS, True, id="all of it"),
        pytest.param({**FIELDS, "f:status": {}}, True, id="and more"),
        pytest.param({}, False, id="nothing is ours"),
        pytest.param(without(FIELDS, "f:spec", "f:replicas"), False, id="somebody took a number"),
        pytest.param(without(FIELDS, "f:metadata", "f:labels"), False, id="somebody changed the label"),
        pytest.param(without(FIELDS, *POD, "f:containers"), False, id="the container is gone"),
        pytest.param(
            without(FIELDS, *POD, "f:containers", 'k:{"name":"c"}', "f:image"), False, id="somebody changed an image"
        ),
        pytest.param(
            without(FIELDS, *POD, "f:containers", 'k:{"name":"c"}', "f:args"), False, id="somebody changed a whole list"
        ),
        pytest.param(without(FIELDS, *POD, "f:volumes"), False, id="the volumes are somebody's"),
    ],
)
def test_whether_all_of_it_is_ours(fields: dict[str, Any], expected: bool) -> None:
    """A field that somebody else changed is missing from our entry."""
    assert owns_all_of(fields, OBJECT) is expected


@pytest.mark.parametrize(
    ("fields", "obj", "expected"),
    [
        pytest.param({"f:finalizers": {'v:"a"': {}}}, {"finalizers": ["a"]}, True, id="a set has the value"),
        pytest.param({"f:finalizers": {'v:"b"': {}}}, {"finalizers": ["a"]}, False, id="a set has another value"),
        pytest.param({"f:rules": {}}, {"rules": [{"verbs": ["get"]}]}, True, id="a list is owned as a whole"),
        pytest.param({"f:data": {"f:a": {}}}, {"data": {"a": "1", "b": "2"}}, False, id="one key of two"),
        pytest.param({"f:data": {".": {}}}, {"data": {}}, True, id="an empty map"),
        pytest.param(
            {"f:ports": {'k:{"name":"a"}': {".": {}}}},
            {"ports": [{"name": "a", "port": 1}]},
            True,
            id="an item of which no field is named",
        ),
        pytest.param(
            {"f:ports": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
            {"ports": [{"name": "a", "port": 1}]},
            False,
            id="an item of which another field is named",
        ),
        pytest.param({"f:ports": {'k:{"name":"b"}': {".": {}}}}, {"ports": [{"name": "a"}]}, False, id="another item"),
        pytest.param(
            {"f:ports": {'k:{"name":"0"}': {".": {}}}}, {"ports": [{"name": "a"}]}, False, id="an earlier item"
        ),
        pytest.param(
            {"f:ports": {'k:{"name":"a"}': {".": {}}}}, {"ports": ["a"]}, False, id="an item that has no name"
        ),
        pytest.param({"f:set": {'v:"a"': {}, 'v:"c"': {}}}, {"set": ["a", "b"]}, False, id="a set lacks one of two"),
        pytest.param({"f:set": {"v:2": {}}}, {"set": [1]}, False, id="a set has a greater value"),
        pytest.param({"f:set": {"v:1": {}}}, {"set": [2]}, False, id="a set has a smaller value"),
        pytest.param({"f:a": {"f:b": {}}}, {"a": None}, True, id="nothing where there was something"),
        pytest.param({"f:a": {"f:b": {}}}, {"a": 1}, True, id="a value where there was something"),
        pytest.param({"f:metadata": {}}, {"metadata": {"name": "n", "namespace": "m"}}, True, id="only what finds it"),
        pytest.param({}, {"spec": {"name": "n"}}, False, id="a name that finds nothing"),
        pytest.param({}, {"data": {"namespace": "n"}}, False, id="a namespace that finds nothing"),
        pytest.param({}, {"metadata": "n"}, False, id="metadata that is a text"),
        pytest.param(
            {}, {"metadata": {"name": "n"}, "kind": "X", "apiVersion": "v1"}, True, id="nothing but what it is"
        ),
    ],
)
def test_lists_and_maps(fields: dict[str, Any], obj: dict[str, Any], expected: bool) -> None:
    """As their schema has them: sets, maps and wholes."""
    assert owns_all_of(fields, obj) is expected


def entry(manager: str, operation: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    """An entry of managedFields."""
    more = {"subresource": subresource} if subresource else {}
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def test_what_earlier_writers_set_becomes_ours() -> None:
    """All of it, in our one entry; what others set or apply and any status stays theirs."""
    applier = entry("argocd-controller", "Apply", {"f:data": {"f:d": {}}})
    ours = entry(MANAGER, "Apply", {"f:data": {"f:a": {}}})
    go = entry(MANAGER, "Update", {"f:data": {"f:b": {}}})
    installer = entry("cluster-bootstrap", "Update", {"f:metadata": {"f:labels": {"f:x": {}}}})
    status = entry(MANAGER, "Update", {"f:status": {}}, "status")
    person = entry("kubectl-edit", "Update", {"f:data": {"f:c": {}}})
    assert adopted_entries([applier, ours, go, installer, status, person]) == [
        {**ours, "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}},
        applier,
        status,
        person,
    ]


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(entry(MANAGER, "Update", {"f:data": {}}, "status"), id="of a subresource"),
        pytest.param(entry("kubectl", "Update", {"f:data": {}}), id="of somebody else"),
        pytest.param(entry("cluster-bootstrap", "Apply", {"f:data": {}}), id="applied, by the installer"),
    ],
)
def test_what_nobody_of_ours_set_is_not_adopted(theirs: dict[str, Any]) -> None:
    """The entries stay as they are."""
    entries = [entry(MANAGER, "Apply", {"f:data": {"f:a": {}}}), theirs]
    assert adopted_entries(entries) == entries


def test_an_entry_of_a_subresource_is_not_ours() -> None:
    """Nothing is put into it."""
    entries = [entry(MANAGER, "Apply", {"f:status": {}}, "status"), entry(MANAGER, "Update", {"f:data": {}})]
    assert adopted_entries(entries) == entries


def test_without_an_entry_of_ours_nothing_is_adopted() -> None:
    """There is nothing to put it into."""
    entries = [entry(MANAGER, "Update", {"f:data": {}})]
    assert adopted_entries(entries) == entries
