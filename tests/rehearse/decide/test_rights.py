"""Which rights a role gains and loses, and who is named by a binding before and after."""

from __future__ import annotations

from typing import Any

import pytest

from runup.rehearse.decide import served_versions as rights_changes
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
ROLE = Identity(rights_changes.GROUP, "ClusterRole", "", "viewer")
BINDING = Identity(rights_changes.GROUP, "ClusterRoleBinding", "", "viewers")
ANN, BOB = ({"kind": "User", "name": name} for name in ("ann", "bob"))


def rule(verbs: str, resources: str = "pods", groups: str = "", **more: Any) -> JSON:
    """A rule; words are parted by commas."""
    return {"verbs": verbs.split(","), "resources": resources.split(","), "apiGroups": groups.split(","), **more}


def role(*rules: JSON, **more: Any) -> JSON:
    """A role of these rules."""
    return {"rules": list(rules), **more}


def binding(*subjects: JSON, name: str = "viewer") -> JSON:
    """A binding of a ClusterRole."""
    ref = {"apiGroup": rights_changes.GROUP, "kind": "ClusterRole", "name": name}
    return {"metadata": {"name": "viewers"}, "roleRef": ref, "subjects": list(subjects)}


@pytest.mark.parametrize(
    ("before", "after", "lost", "gained"),
    [
        pytest.param(role(rule("get,list")), role(rule("get")), ("list pods",), (), id="a verb less"),
        pytest.param(role(rule("get")), role(rule("*")), (), ("* pods",), id="all verbs cover one"),
        pytest.param(role(rule("get", "*", "*")), role(rule("get")), ("get *.*",), (), id="one for all"),
        pytest.param(
            role(rule("get", resourceNames=["a"])), role(rule("get")), (), ("get pods",), id="one object, then all"
        ),
        pytest.param(
            role(rule("get")),
            role(rule("get", resourceNames=["a"])),
            ("get pods",),
            (),
            id="all objects, then one, which is covered",
        ),
        pytest.param(
            role(rule("update", "*/scale", "apps")),
            role(rule("update", "deployments/scale", "apps")),
            ("update */scale.apps",),
            (),
            id="a subresource of all",
        ),
        pytest.param(
            role({"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}),
            role({"verbs": ["get"], "nonResourceURLs": ["/metrics/a"]}),
            ("get /metrics/*",),
            (),
            id="a path",
        ),
        pytest.param(
            role({"verbs": ["get"], "nonResourceURLs": ["*"]}),
            role(rule("*", "*", "*")),
            ("get *",),
            ("* *.*",),
            id="paths are no resources",
        ),
    ],
)
def test_what_a_role_loses_and_gains(before: JSON, after: JSON, lost: tuple[str, ...], gained: tuple[str, ...]) -> None:
    """Rights that others cover are not lost."""
    found = rights_changes.change_of_role(ROLE, before, after, [binding(ANN), binding(BOB, name="other")])
    assert found is not None
    assert (found.lost, found.gained, found.subjects) == (lost, gained, ("User ann",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(role(rule("get,list")), role(rule("list"), rule("get")), id="in two rules"),
        pytest.param(role(rule("*")), role(rule("*"), rule("get")), id="one that is covered"),
        pytest.param(role(rule("get"), aggregationRule={}), role(aggregationRule={}), id="aggregated"),
    ],
)
def test_a_role_that_stays(before: JSON, after: JSON) -> None:
    """The same rights in other words are no change; an aggregated role's rules are its controller's."""
    assert rights_changes.change_of_role(ROLE, before, after, []) is None


def test_whom_a_binding_no_longer_names() -> None:
    """Who leaves a binding loses what its role grants; who comes gains it."""
    (lost, gained) = rights_changes.change_of_binding(
        BINDING, binding(ANN), binding(BOB), {ROLE: role(rule("get"), rule("list", "nodes"))}
    )
    assert (lost.lost, lost.subjects) == (("get pods", "list nodes"), ("User ann",))
    assert (gained.gained, gained.subjects) == (("get pods", "list nodes"), ("User bob",))


def test_a_binding_of_a_role_that_is_not_there() -> None:
    """What nobody can look up is named by its role."""
    (lost,) = rights_changes.change_of_binding(BINDING, binding(ANN), None, {})
    assert lost.lost == ("what ClusterRole viewer grants",)
