"""Paths, queries, content types and bodies, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.api.codec import DecodeError, Undecodable
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of, resources_by_type
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls, reviews
from kubekit.kube.api_errors import Gone
from kubekit.kube.list_pages import UndecodedEvent
from kubekit.kube.request import Request, path_segment
from runup.api.config_v1 import ClusterVersion
from runup.api.owned_v1 import Configuration, Owned, OwnedWorkload

NODES, PODS, MAPS = resource_of(Node), resource_of(Pod), resource_of(ConfigMap)
VERSIONS, DEPLOYMENTS = resource_of(ClusterVersion), resource_of(Deployment)
MAP = {"metadata": {"name": "a", "namespace": "ns"}, "data": {"k": "v"}}
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(calls.get(Node, "n1"), "GET /api/v1/nodes/n1", id="a cluster-scoped core object"),
        pytest.param(calls.get(Pod, "p", "ns"), "GET /api/v1/namespaces/ns/pods/p", id="a namespaced core object"),
        pytest.param(calls.get(ClusterVersion, "version"), f"GET {VERSION}", id="an object of a group"),
        pytest.param(calls.get(Node, "a:b@c"), "GET /api/v1/nodes/a:b@c", id="a colon in a name stays readable"),
        pytest.param(calls.get(Node, "a?b c"), "GET /api/v1/nodes/a%3Fb%20c", id="what ends a path is encoded"),
        pytest.param(
            calls.get_raw(DEPLOYMENTS, "d", "ns", subresource="scale"),
            "GET /apis/apps/v1/namespaces/ns/deployments/d/scale",
            id="a subresource",
        ),
        pytest.param(calls.get_path("/version"), "GET /version", id="any path"),
        pytest.param(calls.list_page(Pod), "GET /api/v1/pods?limit=500", id="a list over all namespaces"),
        pytest.param(
            calls.list_page(Pod, "ns", label_selector="a=b,c", field_selector="spec.nodeName=n", limit=2),
            "GET /api/v1/namespaces/ns/pods?labelSelector=a%3Db%2Cc&fieldSelector=spec.nodeName%3Dn&limit=2",
            id="a list with selectors",
        ),
        pytest.param(
            calls.list_page(Pod, limit=0, resource_version="7"),
            "GET /api/v1/pods?resourceVersion=7",
            id="a list in one piece, no older than a version",
        ),
        pytest.param(
            calls.list_raw(NODES, continue_="t=", resource_version="7"),
            "GET /api/v1/nodes?limit=500&continue=t%3D",
            id="a continue token goes without a version",
        ),
        pytest.param(
            calls.watch(Pod, "ns", resource_version="7", label_selector="a=b", timeout_seconds=60),
            "GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=60"
            "&labelSelector=a%3Db",
            id="a watch",
        ),
        pytest.param(calls.create(MAPS, MAP), "POST /api/v1/namespaces/ns/configmaps", id="create"),
        pytest.param(calls.replace(MAPS, MAP), "PUT /api/v1/namespaces/ns/configmaps/a", id="replace"),
        pytest.param(
            calls.apply(MAPS, MAP, field_manager="m", force=True, dry_run=True, field_validation="Strict"),
            "PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=m&force=true&dryRun=All&fieldValidation=Strict",
            id="apply by force, strictly, as a trial",
        ),
        pytest.param(
            calls.merge_patch(VERSIONS, "version", {}, subresource="status"),
            f"PATCH {VERSION}/status",
            id="a merge patch of the status",
        ),
        pytest.param(
            calls.merge_patch(VERSIONS, "version", {}, dry_run=True, field_validation="Strict", field_manager="m"),
            f"PATCH {VERSION}?dryRun=All&fieldValidation=Strict&fieldManager=m",
            id="a strict trial of a merge patch",
        ),
        pytest.param(calls.delete(NODES, "n"), "DELETE /api/v1/nodes/n", id="delete"),
        pytest.param(calls.get_path("/apis", (("a", "b c"),)), "GET /apis?a=b+c", id="any path, with a query"),
        pytest.param(
            calls.get_raw(PODS, "p", "ns"), "GET /api/v1/namespaces/ns/pods/p", id="an object, all that it has"
        ),
        pytest.param(calls.list_raw(PODS, "ns", limit=0), "GET /api/v1/namespaces/ns/pods", id="objects, all in one"),
        pytest.param(
            calls.list_raw(PODS, label_selector="a", field_selector="b", limit=1, resource_version="7", continue_=""),
            "GET /api/v1/pods?labelSelector=a&fieldSelector=b&limit=1&resourceVersion=7",
            id="a page of objects with selectors",
        ),
        pytest.param(
            calls.watch(Object, resource=NODES, resource_version="", field_selector="a"),
            "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=&timeoutSeconds=300&fieldSelector=a",
            id="a watch of another resource, for five minutes unless it is said",
        ),
        pytest.param(calls.list_page(Pod, resource=NODES), "GET /api/v1/nodes?limit=500", id="a list of another"),
        pytest.param(
            calls.create(MAPS, MAP, dry_run=True, field_validation="Warn", field_manager="m"),
            "POST /api/v1/namespaces/ns/configmaps?dryRun=All&fieldValidation=Warn&fieldManager=m",
            id="a trial of a create",
        ),
        pytest.param(calls.create(NODES, {}), "POST /api/v1/nodes", id="create what the server names"),
        pytest.param(
            calls.replace(MAPS, MAP, subresource="status", dry_run=True, field_validation="Warn", field_manager="m"),
            "PUT /api/v1/namespaces/ns/configmaps/a/status?dryRun=All&fieldValidation=Warn&fieldManager=m",
            id="a trial of replacing the status",
        ),
        pytest.param(
            calls.apply(MAPS, MAP, field_manager="m", subresource="status"),
            "PATCH /api/v1/namespaces/ns/configmaps/a/status?fieldManager=m",
            id="apply of the status, not by force",
        ),
        *(
            pytest.param(
                patch(
                    MAPS,
                    "a",
                    given,
                    "ns",
                    subresource="status",
                    dry_run=True,
                    field_validation="Warn",
                    field_manager="m",
                ),
                "PATCH /api/v1/namespaces/ns/configmaps/a/status?dryRun=All&fieldValidation=Warn&fieldManager=m",
                id=f"a trial of a {name}",
            )
            for name, patch, given in (("JSON patch", calls.json_patch, []),)
        ),
        *(
            pytest.param(patch(MAPS, "a", given, "ns"), "PATCH /api/v1/namespaces/ns/configmaps/a", id=f"a {name}")
            for name, patch, given in (
                ("JSON patch", calls.json_patch, []),
                ("merge patch", calls.merge_patch, {}),
            )
        ),
        pytest.param(reviews.who_is("t"), "POST /apis/authentication.k8s.io/v1/tokenreviews", id="whose a token is"),
        pytest.param(
            reviews.may_reach_path(reviews.User("u"), "get", "/metrics"),
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
            id="what another may",
        ),
        pytest.param(
            reviews.may_i("list", PODS),
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            id="an access review",
        ),
        pytest.param(
            reviews.token_request("sa", "ns"),
            "POST /api/v1/namespaces/ns/serviceaccounts/sa/token",
            id="a token request",
        ),
    ],
)
def test_request_line(request_: calls.Call[Any], expected: str) -> None:
    """Every call has the method, path and query that the API documents."""
    assert str(request_.request) == expected


@pytest.mark.parametrize(
    ("call", "content_type", "body"),
    [
        pytest.param(calls.create(MAPS, MAP), "application/json", MAP, id="create"),
        pytest.param(
            calls.apply(MAPS, MAP, field_manager="m"),
            "application/apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", **MAP},
            id="apply names its kind",
        ),
        pytest.param(
            calls.merge_patch(MAPS, "a", {"data": {"k": None}}, "ns"),
            "application/merge-patch+json",
            {"data": {"k": None}},
            id="a merge patch keeps its nulls",
        ),
        pytest.param(
            calls.json_patch(MAPS, "a", [{"op": "remove", "path": "/data"}], "ns"),
            "application/json-patch+json",
            [{"op": "remove", "path": "/data"}],
            id="json patch",
        ),
        pytest.param(
            calls.delete(NODES, "n", uid="u", resource_version="3", propagation="Foreground", grace_period_s=0),
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": "u", "resourceVersion": "3"},
                "gracePeriodSeconds": 0,
            },
            id="delete with preconditions",
        ),
        pytest.param(
            calls.delete(NODES, "n"),
            "application/json",
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"},
            id="delete, and what it owns later",
        ),
        pytest.param(
            calls.delete(NODES, "n", uid="u", dry_run=True),
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u"},
                "dryRun": ["All"],
            },
            id="a trial of deleting that very one",
        ),
        pytest.param(calls.replace(MAPS, MAP), "application/json", MAP, id="replace"),
        # Groups of a service account: Kubernetes documentation, Managing Service Accounts and Using RBAC Authorization.
        *(
            pytest.param(
                reviews.may_they(user, "list", PODS),
                "application/json",
                {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": {
                        "user": user,
                        "groups": groups,
                        "resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods"},
                    },
                },
                id=f"what {user} may",
            )
            for user, groups in {
                "ann": [],
                "system:serviceaccount:ns:sa": [
                    "system:serviceaccounts",
                    "system:serviceaccounts:ns",
                    "system:authenticated",
                ],
            }.items()
        ),
        pytest.param(
            calls.apply(MAPS, {**MAP, "kind": "Own"}, field_manager="m"),
            "application/apply-patch+yaml",
            {"apiVersion": "v1", **MAP, "kind": "Own"},
            id="apply of what names its kind",
        ),
        pytest.param(
            reviews.may_i("list", PODS),
            "application/json",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods"}},
            },
            id="an access review names no more than there is",
        ),
        pytest.param(
            reviews.who_is("t"),
            "application/json",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}},
            id="whose a token is",
        ),
        pytest.param(
            reviews.may_reach_path(reviews.User("u", "1", ("g",), {"k": ("v",)}), "get", "/metrics"),
            "application/json",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": "u",
                    "uid": "1",
                    "groups": ["g"],
                    "extra": {"k": ["v"]},
                    "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
                },
            },
            id="what another may",
        ),
        pytest.param(
            reviews.token_request("sa", "ns", audiences=["a"]),
            "application/json",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "metadata": {"namespace": "ns"},
                "spec": {"audiences": ["a"], "expirationSeconds": 3600},
            },
            id="a token for an hour",
        ),
        pytest.param(
            reviews.may_i("get", DEPLOYMENTS, "ns", name="d", subresource="status"),
            "application/json",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "verb": "get",
                        "group": "apps",
                        "version": "v1",
                        "resource": "deployments",
                        "namespace": "ns",
                        "name": "d",
                        "subresource": "status",
                    }
                },
            },
            id="an access review names group, resource and subresource",
        ),
    ],
)
def test_body(call: calls.Call[Any], content_type: str, body: Any) -> None:
    """The body is JSON, and its content type says which kind of change it is."""
    assert dict(call.request.headers)["Content-Type"] == content_type
    assert json.loads(call.request.body or b"") == body


def test_only_metadata_is_asked_for_when_only_identity_is_read() -> None:
    """Following an arbitrary resource as `Object` asks for PartialObjectMetadata, and takes the whole if need be."""
    accept = dict(calls.list_page(Object, resource=NODES).request.headers)["Accept"]
    assert accept.split(",") == [
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json",
    ]
    assert dict(calls.list_page(Owned, resource=NODES).request.headers)["Accept"].split(",") == accept.split(",")
    assert dict(calls.list_page(Node).request.headers)["Accept"] == "application/json"


def test_an_answer_is_asked_for_by_what_is_read_of_it() -> None:
    """Whatever other headers a call has, they stay; how it asked before does not."""
    headers = (("A", "z"), ("Accept", "text/plain"), ("Content-Type", "application/json"), ("X", "y"))
    assert calls.with_accept_for(Node, headers) == (
        ("Accept", "application/json"),
        ("A", "z"),
        ("Content-Type", "application/json"),
        ("X", "y"),
    )
    narrow = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    assert (
        calls.with_accept_for(Object, ()) == calls.with_accept_for(Owned, (("Accept", "x"),)) == (("Accept", narrow),)
    )


def test_every_call_asks_for_json() -> None:
    """Objects, pages, paths, and the answers to writes."""
    for call in (
        calls.get(Node, "n"),
        calls.get_raw(NODES, "n"),
        calls.get_path("/version"),
        calls.list_raw(NODES),
        calls.create(MAPS, MAP),
        calls.merge_patch(NODES, "n", {}),
        calls.delete(NODES, "n"),
    ):
        assert dict(call.request.headers)["Accept"] == "application/json"


@pytest.mark.parametrize(
    ("call", "answer", "read"),
    [
        pytest.param(calls.get_path("/version"), b"x", b"x", id="bytes"),
        pytest.param(calls.get_raw(NODES, "n"), b'{"a":1}', {"a": 1}, id="an object"),
        pytest.param(
            reviews.may_i("get", NODES),
            b'{"status":{"allowed":true,"denied":false,"reason":"r","evaluationError":"e"}}',
            reviews.Access(True, False, "r", "e"),
            id="what one may",
        ),
        pytest.param(reviews.may_i("get", NODES), b"{}", reviews.Access(), id="what one may, unsaid"),
        pytest.param(
            reviews.who_is("t"),
            b'{"status":{"authenticated":true,"user":{"username":"u"}}}',
            reviews.Identity(True, reviews.User("u")),
            id="who one is",
        ),
        pytest.param(
            reviews.may_reach_path(reviews.User("u"), "get", "/"),
            b'{"status":{"allowed":true}}',
            reviews.Access(True),
            id="another",
        ),
        pytest.param(reviews.token_request("a", "b"), b'{"status":{"token":"t"}}', reviews.Token("t"), id="a token"),
    ],
)
def test_what_an_answer_is_read_as(call: calls.Call[Any], answer: bytes, read: Any) -> None:
    """As much of it as is of interest."""
    assert call.decode(answer) == read


def test_a_kind_with_more_to_read_is_asked_for_as_a_whole() -> None:
    """A kind may inherit from one whose metadata is enough; its own fields would stay empty for ever."""
    own = {"api_version", "kind", "metadata", "owned"}
    kinds = [kind for kind in (OwnedWorkload, Configuration, *resources_by_type()) if {*kind.__struct_fields__} - own]
    assert Pod in kinds
    for kind in kinds:
        for call in (calls.list_page(kind, resource=NODES), calls.watch(kind, resource=NODES, resource_version="1")):
            assert dict(call.request.headers)["Accept"] == "application/json", kind


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_that_is_another_path_is_refused(name: str) -> None:
    """A name can neither leave its collection nor be the collection."""
    with pytest.raises(ValueError, match="cannot be the name"):
        path_segment(name)
    with pytest.raises(ValueError, match="cannot be the name"):
        calls.delete(NODES, name)


def test_names_and_queries_are_encoded() -> None:
    """A name keeps the characters that a path segment may have, so that audit logs stay readable."""
    assert path_segment("system:node:a b") == "system:node:a%20b"
    assert Request(method="GET", path="/p", query=(("a", "b c"), ("d", "é"))).target == "/p?a=b+c&d=%C3%A9"


def test_one_namespaced_object_needs_its_namespace() -> None:
    """Without it the path would be a cluster-scoped one, which does not exist."""
    with pytest.raises(ValueError, match="pods p: a namespace is needed to name one object"):
        calls.get(Pod, "p")
    # Where a kind has none, one that is given counts for nothing.
    assert calls.path_of(NODES, "ns", "n", "status") == "/api/v1/nodes/n/status"
    assert calls.path_of(DEPLOYMENTS, "", "") == "/apis/apps/v1/deployments"
    assert calls.path_of(PODS, "a b") == "/api/v1/namespaces/a%20b/pods"


def test_a_page_has_its_items_version_and_token() -> None:
    """Nulls where lists may be are empty."""
    page = calls.list_page(Node).decode(
        b'{"metadata":{"resourceVersion":"5","continue":"t"},"items":[{"metadata":{"name":"a","labels":null}}]}'
    )
    assert ([node.metadata.name for node in page.items], page.resource_version, page.continue_) == (["a"], "5", "t")
    assert calls.list_page(Node).decode(b'{"metadata":{"resourceVersion":"5"},"items":null}').items == ()


def test_raw_items_get_the_identity_that_a_list_leaves_out() -> None:
    """Items of a list carry no apiVersion and kind of their own."""
    widgets = Resource(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
    page = calls.list_raw(widgets).decode(b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}}]}')
    assert page.items == ({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}},)


def test_a_watch_line_is_an_event() -> None:
    """Type and object; an ERROR line is the error it describes, an unknown type is not guessed at."""
    decode = calls.watch(Node, resource_version="1").decode
    event = decode(b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}')
    assert (event.type, event.object.metadata.name) == ("ADDED", "a")
    with pytest.raises(Gone, match="too old"):
        decode(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}')
    for odd in ("NEWS", "", "added", "DELETED "):
        with pytest.raises(DecodeError, match=f"an event of the unknown type '{odd}' in a watch"):
            decode(b'{"type":"%s","object":{}}' % odd.encode())
    for known in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        assert decode(b'{"type":"%s","object":{}}' % known.encode()).type == known


ODD = b'{"metadata":{"name":"a","resourceVersion":"2"},"status":{"conditions":[{"type":"Ready","status":"true"}]}}'
WORDS = "Invalid enum value 'true' - at `$.status.conditions[0].status`"


def test_one_object_that_does_not_fit_is_an_event_and_the_watch_goes_on() -> None:
    """It is named with the decoder's words."""
    event = calls.watch(Node, resource_version="1").decode(b'{"type":"MODIFIED","object":%s}' % ODD)
    assert isinstance(event, UndecodedEvent)
    assert (event.type, event.object) == ("MODIFIED", Undecodable("", "a", WORDS, "2"))


@pytest.mark.parametrize("null", [b"", b',"remainingItemCount":null'], ids=["exact", "with a null"])
def test_one_object_that_does_not_fit_is_named_beside_the_page(null: bytes) -> None:
    """The others are there, those with nulls among them."""
    good = b'{"metadata":{"name":"b","labels":null}}'
    body = b'{"metadata":{"resourceVersion":"5","continue":"t"%s},"items":[%s,%s]}' % (null, ODD, good)
    page = calls.list_page(Node).decode(body)
    assert [item.metadata.name for item in page.items] == ["b"]
    assert page.undecoded == (Undecodable("", "a", WORDS, "2"),)
    assert (page.resource_version, page.continue_) == ("5", "t")


def test_an_object_that_is_asked_for_by_name_and_does_not_fit_is_named() -> None:
    """The command's error says which object, and which field to correct."""
    with pytest.raises(DecodeError) as caught:
        calls.get(Node, "a").decode(ODD)
    assert str(caught.value) == f"Node a cannot be read: {WORDS}"


@pytest.mark.parametrize(
    ("request_", "repeatable"),
    [
        pytest.param(calls.get(Node, "n").request, True, id="get"),
        pytest.param(calls.replace(NODES, MAP).request, True, id="replace"),
        pytest.param(calls.delete(NODES, "n").request, True, id="delete"),
        pytest.param(calls.apply(NODES, MAP, field_manager="m").request, True, id="apply"),
        pytest.param(calls.merge_patch(NODES, "n", {}).request, True, id="merge patch"),
        pytest.param(calls.create(NODES, MAP).request, False, id="create"),
        pytest.param(Request(method="HEAD", path="/"), True, id="head"),
        pytest.param(Request(method="PATCH", path="/"), False, id="a patch of no kind"),
        pytest.param(
            Request(method="POST", path="/", headers=(("Content-Type", calls.APPLY),)), False, id="a post of a patch"
        ),
        pytest.param(calls.json_patch(NODES, "n", []).request, False, id="json patch"),
    ],
)
def test_only_what_has_one_effect_when_sent_twice_is_repeatable(request_: Request, repeatable: bool) -> None:
    """A create, or a patch that appends, must not be sent again when it is unknown whether it arrived."""
    assert request_.repeatable is repeatable
