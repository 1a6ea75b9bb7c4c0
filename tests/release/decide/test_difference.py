"""What changes from one release to another, in rows: objects, variants, images, gates, and who may do what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runup.release.decide.difference import Difference, difference_of
from runup.release.decide.object_diff import changes
from runup.release.decide.payload import Payload, load_payload

P = {"include.release.openshift.io/self-managed-high-availability": "true"}
SET = "release.openshift.io/feature-set"


def config_map(name: str, annotations: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    """A manifest."""
    metadata = {"name": name, "namespace": "a", "annotations": {**P, **(annotations or {})}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def payload(*objects: dict[str, Any], images: dict[str, str] | None = None, version: str = "5.1.0") -> Payload:
    """A release of these objects, a file each."""
    tags = [{"name": name, "from": {"kind": "DockerImage", "name": spec}} for name, spec in (images or {}).items()]
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": version}}
    files = {
        "release-manifests/release-metadata": json.dumps({"kind": "cincinnati-metadata-v0", "version": version}),
        "release-manifests/image-references": json.dumps(stream | {"spec": {"tags": tags}}),
    }
    files |= {f"release-manifests/0000_50_a_{number:02}.yaml": json.dumps(o) for number, o in enumerate(objects)}
    return load_payload({name: text.encode() for name, text in files.items()}, source="test")


def of(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Difference:
    """The difference of two releases of these objects."""
    return difference_of(payload(*before), payload(*after))


def manifest_changes(found: Difference) -> list[tuple[str, str, list[str]]]:
    """Object, state, paths."""
    return [(each.object, each.state, [str(change) for change in each.changes]) for each in found.manifests]


DELETED = {"release.openshift.io/delete": "true"}


@pytest.mark.parametrize(
    ("before", "after", "expected", "same"),
    [
        pytest.param([config_map("x", a="1")], [config_map("x", a="1")], [], 1, id="nothing changes"),
        pytest.param([], [config_map("x")], [("ConfigMap a/x", "added", [])], 0, id="an object is new"),
        pytest.param([config_map("x")], [], [("ConfigMap a/x", "removed", [])], 0, id="an object is left behind"),
        pytest.param(
            [config_map("x")],
            [config_map("x", DELETED)],
            [("ConfigMap a/x", "deleted", [])],
            0,
            id="an object is deleted, which is not to be left behind",
        ),
        pytest.param([config_map("x", DELETED)], [config_map("x", DELETED)], [], 1, id="deleted before already"),
        pytest.param(
            [config_map("x", a="1", b="1")],
            [config_map("x", a="2", c="1")],
            [("ConfigMap a/x", "changed", ["data.a: 1 -> 2", "data.b: 1 -> (none)", "data.c: (none) -> 1"])],
            0,
            id="fields change, come and go",
        ),
        pytest.param(
            [config_map("x", {SET: "Default"}, a="1"), config_map("x", {SET: "TechPreviewNoUpgrade"}, a="2")],
            [config_map("x", {SET: "TechPreviewNoUpgrade"}, a="3"), config_map("x", {SET: "Default"}, a="1")],
            [("ConfigMap a/x", "changed", ["data.a: 2 -> 3"])],
            1,
            id="of two variants each is compared with its own, whatever their order",
        ),
        pytest.param(
            [config_map("x", {SET: "TechPreviewNoUpgrade"})],
            [config_map("x")],
            [
                (
                    "ConfigMap a/x",
                    "changed",
                    [f"metadata.annotations[{SET}]: TechPreviewNoUpgrade -> (none)"],
                )
            ],
            0,
            id="an object that becomes generally available changed, it did not come",
        ),
    ],
)
def test_what_becomes_of_manifests(
    before: list[dict[str, Any]], after: list[dict[str, Any]], expected: list[Any], same: int
) -> None:
    """By identity, and within it by the clusters that they are for."""
    found = of(before, after)
    assert manifest_changes(found) == expected
    assert found.same == same


def test_a_variant_is_named_where_there_are_several() -> None:
    """Else nobody could show which one changed."""
    default, preview = config_map("x", {SET: "Default"}), config_map("x", {SET: "TechPreviewNoUpgrade"})
    (one,) = of([default, preview], [default, {**preview, "data": {"a": "b"}}]).manifests
    assert one.variant == "feature-set=TechPreviewNoUpgrade profiles=self-managed-high-availability"


def test_images_come_go_and_change() -> None:
    """By their short names."""
    found = difference_of(payload(images={"a": "x@1", "b": "y"}), payload(images={"a": "x@2", "c": "z"}))
    assert [(image.name, image.state) for image in found.images] == [("a", "changed"), ("b", "removed"), ("c", "added")]


def gate(feature_set: str, *names: str) -> dict[str, Any]:
    """A FeatureGate of a release."""
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": {"name": "cluster", "annotations": {**P, SET: feature_set or "Default"}},
        "spec": {"featureSet": feature_set} if feature_set else {},
        "status": {"featureGates": [{"version": "", "enabled": [{"name": name} for name in names]}]},
    }


def test_a_gate_that_goes_from_preview_to_default() -> None:
    """Which sets have it on, and how many manifests ask for it."""
    user = config_map("x", {"release.openshift.io/feature-gate": "New"})
    found = of(
        [gate(""), gate("TechPreviewNoUpgrade", "New"), user], [gate("", "New"), gate("TechPreviewNoUpgrade", "New")]
    )
    assert [(change.name, change.before, change.after) for change in found.gates] == [
        ("New", "on in TechPreviewNoUpgrade; 1 manifest", "on in Default, TechPreviewNoUpgrade; 0 manifests")
    ]


def role(*rules: dict[str, Any]) -> dict[str, Any]:
    """A ClusterRole."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r", "annotations": P},
        "rules": list(rules),
    }


def rule(groups: str, resources: str, verbs: str, **more: Any) -> dict[str, Any]:
    """A rule of words."""
    return {"apiGroups": [groups], "resources": resources.split(), "verbs": verbs.split(), **more}


@pytest.mark.parametrize(
    ("before", "after", "granted", "taken"),
    [
        pytest.param(
            [rule("", "pods", "get"), rule("", "nodes", "list get")],
            [rule("", "nodes pods", "get"), rule("", "nodes", "list")],
            None,
            None,
            id="rules that are only cut otherwise grant the same",
        ),
        pytest.param(
            [rule("apps", "deployments", "get")],
            [rule("apps", "deployments", "get delete")],
            ("delete: deployments.apps",),
            (),
            id="one more verb",
        ),
        pytest.param(
            [rule("", "secrets", "get")],
            [rule("", "secrets", "get", resourceNames=["one"])],
            ("get: secrets 'one'",),
            ("get: secrets",),
            id="narrowed to a name",
        ),
        pytest.param(
            [],
            [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            ("get: /metrics",),
            (),
            id="a path that is no resource",
        ),
    ],
)
def test_what_a_role_grants(before: list[Any], after: list[Any], granted: Any, taken: Any) -> None:
    """Taken apart verb by verb."""
    found = of([role(*before)], [role(*after)]).access
    assert [(change.granted, change.taken) for change in found] == ([] if granted is None else [(granted, taken)])


def test_a_role_that_gathers_others() -> None:
    """By the labels of those that it gathers, in order; a selector of none gathers by nothing."""
    selectors = [{"matchLabels": {"b": "2", "a": "1"}}, {"matchExpressions": []}]
    gathers = role() | {"kind": "ClusterRole", "aggregationRule": {"clusterRoleSelectors": selectors}}
    (found,) = of([], [gathers]).access
    assert found.granted == (
        "all: whatever ClusterRoles labelled  grant",
        "all: whatever ClusterRoles labelled a=1, b=2 grant",
    )


def test_a_new_binding_names_whom_and_what() -> None:
    """A binding grants a role to somebody."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b", "annotations": P},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "ns", "name": "sa"}],
    }
    (found,) = of([], [binding]).access
    assert found.granted == ("ServiceAccount ns/sa: ClusterRole cluster-admin",)


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    """A Deployment of these containers."""
    return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": list(items)}}}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"}),
            containers({"name": "b", "image": "3"}, {"name": "a", "image": "1"}),
            ["spec.template.spec.containers[b].image: 2 -> 3"],
            id="items with names are compared by them",
        ),
        pytest.param({"spec": {"n": True}}, {"spec": {"n": 1}}, ["spec.n: true -> 1"], id="true is not 1"),
        pytest.param({"args": ["a", "b"]}, {"args": ["b", "c"]}, ["args: - a + c"], id="words of a list come and go"),
        pytest.param({"args": ["a", "b"]}, {"args": ["b", "a"]}, ["args: in another order"], id="words change places"),
        pytest.param(
            {"image": "host/x@sha256:" + "1" * 64},
            {"image": "host/x@sha256:" + "2" * 64},
            ["image: ...@sha256:111111111111 -> ...@sha256:222222222222"],
            id="an image by digest",
        ),
        pytest.param(
            {"metadata": {"uid": "1", "resourceVersion": "2", "managedFields": [], "labels": {"a": "b"}}},
            {"metadata": {"uid": "2"}},
            ['metadata.labels: {"a":"b"} -> (none)'],
            id="what the server writes is no change",
        ),
        pytest.param({"status": {"a": 1}}, {"status": {"a": 2}}, [], id="nor is a status"),
        pytest.param(
            {"kind": "Secret", "data": {"key": "c2VjcmV0"}},
            {"kind": "Secret", "data": {"key": "b3RoZXI="}},
            ["data.key: (withheld) -> (withheld)"],
            id="a Secret's values are never shown",
        ),
        pytest.param(
            {"kind": "Secret"},
            {"kind": "Secret", "data": {"key": "c2VjcmV0"}},
            ["data: (none) -> (withheld)"],
            id="nor a Secret's first value",
        ),
        pytest.param(
            {"a": "x" * 60}, {"a": "y" * 61}, [f"a: {'x' * 60} -> text of 61 characters"], id="as long as is shown"
        ),
        pytest.param(
            {"a": "b"}, {"a": "x\ny"}, ["a: b -> text of 3 characters"], id="two lines are told by their size"
        ),
        pytest.param(
            {"a": {"x": "y" * 60}},
            {"a": 1},
            ["a: 1 fields -> 1"],
            id="a large object is told by how many fields it has",
        ),
        pytest.param(
            {"a": "x" * 100}, {"a": ""}, ['a: text of 100 characters -> ""'], id="a long text is told by its size"
        ),
    ],
)
def test_paths_of_changes(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    """In words that name the field."""
    assert [str(change) for change in changes(before, after)] == expected
