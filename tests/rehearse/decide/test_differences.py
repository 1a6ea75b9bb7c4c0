"""Which fields of an object differ, how grave each is, and who owned what is lost."""

from __future__ import annotations

from typing import Any

import pytest

from runup.rehearse.decide import differences as field_owners
from runup.rehearse.decide.differences import HIDDEN, changes
from runup.rehearse.decide.rehearsal_findings import value_change
from runup.rehearse.decide.rehearsal_outcome import FieldChange, Weight
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
DEPLOYMENT = Identity("apps", "Deployment", "shop", "web")


def deployment_of(*containers: JSON, **spec: Any) -> JSON:
    """A Deployment of these containers."""
    return {"spec": {"template": {"spec": {"containers": list(containers)}}, **spec}}


@pytest.mark.parametrize(
    ("identity", "before", "after", "expected"),
    [
        pytest.param(
            DEPLOYMENT,
            deployment_of({"name": "a", "image": "x:1"}),
            deployment_of({"name": "a", "image": "x:2"}),
            [("spec.template.spec.containers[name=a].image", "x:1", "x:2", Weight.IMAGE)],
            id="an image",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_of({"name": "a"}, {"name": "b"}),
            deployment_of({"name": "b"}, {"name": "a"}),
            [],
            id="containers in another order",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_of({"name": "a"}, {"name": "b"}),
            deployment_of({"name": "a"}),
            [("spec.template.spec.containers[name=b]", {"name": "b"}, None, Weight.OTHER)],
            id="a container that goes",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_of({"name": "a", "resources": {"limits": {"cpu": "1"}}}),
            deployment_of({"name": "a", "resources": {"limits": {"cpu": "2"}}}),
            [("spec.template.spec.containers[name=a].resources.limits.cpu", "1", "2", Weight.RESOURCES)],
            id="a limit",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_of(replicas=2, selector={"matchLabels": {"app": "a"}}),
            deployment_of(replicas=3, selector={"matchLabels": {"app": "b"}}),
            [
                ("spec.selector.matchLabels.app", "a", "b", Weight.FIXED),
                ("spec.replicas", 2, 3, Weight.REPLICAS),
            ],
            id="the gravest comes first",
        ),
        pytest.param(
            Identity("", "Service", "shop", "web"),
            {"spec": {"selector": {"app": "a"}}},
            {"spec": {"selector": {"app": "b"}}},
            [("spec.selector.app", "a", "b", Weight.SELECTOR)],
            id="a Service's selector may change",
        ),
        pytest.param(
            Identity("rbac.authorization.k8s.io", "RoleBinding", "shop", "r"),
            {"roleRef": {"name": "a"}},
            {"roleRef": {"name": "b"}},
            [("roleRef.name", "a", "b", Weight.FIXED)],
            id="a binding's role",
        ),
        pytest.param(
            Identity("", "ConfigMap", "shop", "c"),
            {"data": {"ca.crt": "1"}},
            {"data": {"ca.crt": "2"}},
            [("data[ca.crt]", "1", "2", Weight.OTHER)],
            id="a key with a dot",
        ),
        pytest.param(
            Identity("", "Secret", "shop", "s"),
            {"metadata": {"labels": {}}},
            {"data": {"key": "c2VzYW1l"}},
            [("data", None, HIDDEN, Weight.OTHER)],
            id="a Secret's values are not shown",
        ),
        pytest.param(
            DEPLOYMENT,
            {"metadata": {"resourceVersion": "1", "uid": "u"}, "status": {"replicas": 1}},
            {"metadata": {"labels": {"release.openshift.io/manifest": "abc"}, "resourceVersion": "2"}},
            [],
            id="what the server and the operator write for themselves",
        ),
    ],
)
def test_changes(identity: Identity, before: JSON, after: JSON, expected: list[Any]) -> None:
    """The fields that differ, with their values and their weight, the gravest first."""
    found = [(each.path, each.before, each.after, each.weight) for each in changes(identity, before, after)]
    assert found == expected


def owned(manager: str, fields: JSON, **entry: str) -> JSON:
    """An entry of managedFields."""
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields, **entry}


IMAGE = {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}
PORT = {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:targetPort": {}}}}}
TOO_DEEP: JSON = {"f:spec": {"f:containers": {"k:" + "[" * 100_000: {"f:image": {}}}}}
TO_IMAGE = ("f:spec", "f:containers", field_owners.item("name", "a"), "f:image")


@pytest.mark.parametrize(
    ("entries", "path", "expected"),
    [
        pytest.param([owned("ann", IMAGE)], TO_IMAGE, ("ann",), id="a user's field"),
        pytest.param([owned("ann", IMAGE)], (*TO_IMAGE[:3], "f:args"), (), id="a field beside it"),
        pytest.param([owned("ann", {"f:spec": {"f:containers": {}}})], TO_IMAGE, ("ann",), id="a list as a whole"),
        pytest.param([owned("ann", IMAGE), owned("bob", IMAGE)], TO_IMAGE, ("ann", "bob"), id="two users"),
        pytest.param(
            [owned("ann", IMAGE), owned("cluster-version-operator", IMAGE, operation="Apply")],
            TO_IMAGE,
            (),
            id="shared with the release",
        ),
        pytest.param([owned("ann", IMAGE, subresource="status")], TO_IMAGE, (), id="by way of the status"),
        pytest.param(
            [owned("ann", PORT)],
            ("f:spec", "f:ports", field_owners.item("port", 80), "f:targetPort"),
            ("ann",),
            id="an item known by two fields",
        ),
        pytest.param([owned("ann", TOO_DEEP)], TO_IMAGE, (), id="an item whose key is JSON too deep to read"),
        pytest.param([], TO_IMAGE, (), id="nobody"),
    ],
)
def test_who_owned_a_field(entries: list[JSON], path: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """The managers that owned a field, none where a writer of releases is among them."""
    owners = field_owners.owners_of({"metadata": {"managedFields": entries}})
    assert field_owners.others(owners, path) == expected


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        pytest.param("a", "b", "f: a -> b", id="short texts"),
        pytest.param(None, 3, "f: (none) -> 3", id="a new field"),
        pytest.param(
            "registry.example/release/payload@sha256:1",
            "registry.example/release/payload@sha256:2",
            "f: ...load@sha256:1 -> ...load@sha256:2",
            id="the end of long texts",
        ),
        pytest.param(["-v", "--at=1"], ["-v", "--at=2"], "f: --at=1 -> --at=2", id="one argument of several"),
        pytest.param(["a"], ["a", "b", "c"], "f: (none) -> ['b', 'c']", id="more arguments"),
        pytest.param(["a", "b"], ["b", "a"], "f: in another order, or as often", id="another order"),
    ],
)
def test_how_a_change_is_told(before: Any, after: Any, shown: str) -> None:
    """The part in which two values differ is what is shown of them."""
    assert value_change(FieldChange(path="f", before=before, after=after, weight=Weight.OTHER)) == shown
