"""Which kinds a server says that it serves, whatever else it says."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.kube.calls import group_version, list_group_versions, list_kinds, list_versions

DEPLOYMENTS = {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get"]}
FOUND = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([DEPLOYMENTS], (FOUND,), id="a kind in namespaces"),
        pytest.param(
            [{"name": "nodes", "kind": "Node"}],
            (Resource(group="apps", version="v1", kind="Node", plural="nodes", namespaced=False),),
            id="one in none",
        ),
        pytest.param([DEPLOYMENTS | {"name": "deployments/status"}], (), id="a subresource"),
        pytest.param(
            [{"name": "deployments"}, {"kind": "Deployment"}, {}, None, "x", DEPLOYMENTS], (FOUND,), id="odd ones"
        ),
        pytest.param([], (), id="no kind"),
        pytest.param(None, (), id="null"),
        pytest.param({"a": 1}, (), id="no list"),
    ],
)
def test_the_kinds_of_a_version(resources: Any, expected: tuple[Resource, ...]) -> None:
    """Subresources are no kinds; what cannot be read is passed over."""
    assert list_kinds("apps/v1").decode(orjson.dumps({"kind": "APIResourceList", "resources": resources})) == expected


def test_an_answer_without_resources() -> None:
    """Serves none."""
    assert list_kinds("apps/v1").decode(b"{}") == ()


@pytest.mark.parametrize(
    ("api_version", "group", "version", "path"),
    [("v1", "", "v1", "/api/v1"), ("apps/v1", "apps", "v1", "/apis/apps/v1")],
)
def test_where_it_is_asked(api_version: str, group: str, version: str, path: str) -> None:
    """The core group has a separate path."""
    assert group_version(api_version) == (group, version)
    assert list_kinds(api_version).request.path == path


def test_the_versions_of_a_group() -> None:
    """In the server's order, with their group."""
    call = list_versions("apps")
    versions = [{"groupVersion": f"apps/{name}", "version": name} for name in ("v1", "v1beta1")]
    assert call.request.path == "/apis/apps"
    assert call.decode(orjson.dumps({"kind": "APIGroup", "versions": versions})) == ("apps/v1", "apps/v1beta1")


@pytest.mark.parametrize("versions", [None, "v1", ["v1"], [{"version": "v1"}], [{"groupVersion": None}]])
def test_an_answer_that_lists_no_versions_is_not_one_without_any(versions: Any) -> None:
    """Whoever asks would take the kind for absent."""
    with pytest.raises(DecodeError):
        list_versions("apps").decode(orjson.dumps({"versions": versions}))


def test_the_versions_of_all_groups() -> None:
    """Without the core group, which has a separate list."""
    call = list_group_versions()
    versions = [{"groupVersion": f"apps/{name}", "version": name} for name in ("v1", "v1beta1")]
    groups = [{"name": "apps", "versions": versions}, {"name": "batch", "versions": [{"groupVersion": "batch/v1"}]}]
    assert call.request.path == "/apis"
    assert call.decode(orjson.dumps({"kind": "APIGroupList", "groups": groups})) == {
        "apps/v1",
        "apps/v1beta1",
        "batch/v1",
    }


@pytest.mark.parametrize("answer", [{}, {"groups": [{"name": "apps"}]}, {"groups": None}])
def test_no_list_of_groups_is_not_a_list_of_none(answer: Any) -> None:
    """Otherwise nothing would be served."""
    with pytest.raises(DecodeError):
        list_group_versions().decode(orjson.dumps(answer))
