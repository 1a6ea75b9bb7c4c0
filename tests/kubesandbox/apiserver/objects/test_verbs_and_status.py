"""The verbs over HTTP, and every refusal to the word."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest

from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.io/v1/namespaces/default/widgets"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Api:
    """Requests of one user; the answer is its status code and its JSON."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **query: str
    ) -> tuple[int, Any]:
        """Send it."""
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        extra = {"Content-Type": "application/json"} if data is not None else {}
        merged = {**self._headers, **extra, **(headers or {})}
        async with self._session.request(method, path, data=data, headers=merged, params=query) as response:
            self.headers = response.headers
            raw = await response.read()
            return response.status, orjson.loads(raw) if "json" in response.content_type else raw.decode()


@pytest.fixture
async def session(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A session without an identity."""
    context = ssl.create_default_context(cadata=(server.data / "pki" / "ca.crt").read_text())
    async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(ssl=context)) as made:
        yield made


@pytest.fixture
async def api(server: ApiServer, session: aiohttp.ClientSession) -> Api:
    """An administrator."""
    server.authn.add_token("admin", User("admin", groups=("system:masters",)))
    return Api(session, "admin")


def config_map(name: str, **more: Any) -> JSON:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def widget_crd(**schema: Any) -> JSON:
    """A CustomResourceDefinition with a status subresource."""
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}},
    }
    properties = {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties, **schema}},
    }
    names = {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(**spec: Any) -> JSON:
    """A Widget."""
    return {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "query", "expected"),
    [
        pytest.param(
            "GET", f"{MAPS}/nope", None, {}, {},
            (404, "NotFound", 'configmaps "nope" not found', {"name": "nope", "kind": "configmaps"}),
            id="an object that is not there",
        ),
        pytest.param(
            "GET", f"{DEPLOYMENTS}/nope", None, {}, {},
            (404, "NotFound", 'deployments.apps "nope" not found',
             {"name": "nope", "group": "apps", "kind": "deployments"}),
            id="with its group",
        ),
        pytest.param(
            "POST", MAPS, config_map("there"), {}, {},
            (409, "AlreadyExists", 'configmaps "there" already exists', {"name": "there", "kind": "configmaps"}),
            id="an object that is there already",
        ),
        pytest.param(
            "PUT", f"{MAPS}/there",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there", "resourceVersion": "1"}}, {}, {},
            (409, "Conflict", 'Operation cannot be fulfilled on configmaps "there": the object has been modified; '
             "please apply your changes to the latest version and try again", {"name": "there", "kind": "configmaps"}),
            id="an update of an old version",
        ),
        pytest.param(
            "DELETE", f"{MAPS}/there", {"preconditions": {"uid": "other"}}, {}, {},
            (409, "Conflict", None, {"name": "there", "kind": "ConfigMap"}),
            id="a delete of another object of that name",
        ),
        pytest.param(
            "POST", "/api/v1/namespaces/other/configmaps", config_map("x"), {}, {},
            (404, "NotFound", 'namespaces "other" not found', {"name": "other", "kind": "namespaces"}),
            id="a namespace that is not there",
        ),
        pytest.param(
            "PATCH", f"{MAPS}/there", {"data": {"a": "1"}}, {"Content-Type": "text/plain"}, {},
            (415, "UnsupportedMediaType", "415: Unsupported Media Type", None),
            id="a patch of no known kind",
        ),
        pytest.param(
            "PATCH", f"{MAPS}/there", [{"op": "replace", "path": "/data/none", "value": "1"}],
            {"Content-Type": "application/json-patch+json"}, {},
            (422, "Invalid", "the server rejected our request due to an error in our request", {}),
            id="a json patch that does not fit",
        ),
        pytest.param(
            "POST", MAPS, config_map("x", dta={}), {}, {"fieldValidation": "Strict"},
            (400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
             'unknown field "dta"', None),
            id="an unknown field when strict",
        ),
        pytest.param(
            "GET", MAPS, None, {}, {"fieldSelector": "spec.x=1"},
            (400, "BadRequest",
             '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"', None),
            id="a field that cannot be selected on",
        ),
        pytest.param(
            "GET", MAPS, None, {}, {"limit": "1", "continue": "%%%"},
            (400, "BadRequest", None, None), id="a continue token that is none",
        ),
        pytest.param(
            "GET", MAPS, None, {}, {"resourceVersion": "99999"},
            (504, "Timeout", None, None), id="a revision of the future",
        ),
        pytest.param(
            "POST", MAPS, config_map("x"), {}, {"dryRun": "Some"},
            (422, "Invalid", 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported '
             'values: "All"', None),
            id="an unknown dryRun",
        ),
        pytest.param(
            "PATCH", f"{MAPS}/there", b"{}", {"Content-Type": "application/apply-patch+yaml"}, {},
            (422, "Invalid", 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
             "apply patch", None),
            id="an apply by nobody",
        ),
        pytest.param(
            "DELETE", "/api/v1/namespaces", None, {}, {},
            (405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
             {}),
            id="a verb that the resource does not have",
        ),
        pytest.param(
            "GET", f"{MAPS}/there", None, {"Accept": "application/xml"}, {},
            (406, "NotAcceptable", None, None), id="a form that there is not",
        ),
    ],
)  # fmt: skip
async def test_refusals_are_worded_as_kubernetes_words_them(
    api: Api, method: str, path: str, body: Any, headers: dict[str, str], query: dict[str, str], expected: Any
) -> None:
    """Code, reason, message and details of each refusal."""
    await api("POST", MAPS, config_map("there"))
    code, reason, message, details = expected
    status, answer = await api(method, path, body, headers, **query)
    assert (status, answer["code"], answer["reason"], answer["kind"]) == (code, code, reason, "Status")
    assert message is None or answer["message"] == message
    assert details is None or answer.get("details", {}) == details


async def test_an_unknown_path_is_plain_text(api: Api) -> None:
    """As a real server answers outside its API."""
    assert await api("GET", "/apis/none.io/v1/things") == (404, "404 page not found\n")


async def test_nobody_sees_nothing_but_health(session: aiohttp.ClientSession) -> None:
    """Without an identity: health and version; everything else is Unauthorized."""
    nobody = Api(session, "")
    assert await nobody("GET", "/readyz") == (200, "ok")
    assert (await nobody("GET", "/version"))[1]["minor"] == "34"
    status, answer = await nobody("GET", MAPS)
    assert (status, answer["reason"], answer["message"]) == (401, "Unauthorized", "Unauthorized")
    assert (await Api(session, "wrong")("GET", "/version"))[0] == 401


async def test_rights_come_from_roles(api: Api, session: aiohttp.ClientSession) -> None:
    """A ServiceAccount's token may what its Role says, and the refusal names what it may not."""
    await api("POST", "/api/v1/namespaces/default/serviceaccounts",
              {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})  # fmt: skip
    _, answer = await api("POST", "/api/v1/namespaces/default/serviceaccounts/reader/token", {"spec": {}})
    reader = Api(session, answer["status"]["token"])
    status, refused = await reader("GET", MAPS)
    assert (status, refused["message"]) == (
        403,
        'configmaps is forbidden: User "system:serviceaccount:default:reader" cannot list resource "configmaps" in API '
        'group "" in the namespace "default"',
    )
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    await api("POST", f"{rbac}/roles", {"metadata": {"name": "read"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"}
    await api("POST", f"{rbac}/rolebindings", {"metadata": {"name": "read"}, "roleRef": role, "subjects": [subject]})
    assert (await reader("GET", MAPS))[0] == 200
    assert (await reader("POST", MAPS, config_map("x")))[0] == 403
    status, refused = await reader("PATCH", "/apis/apps/v1/namespaces/other/deployments/web/status", {}, MERGE)
    assert refused["message"] == (
        'deployments.apps "web" is forbidden: User "system:serviceaccount:default:reader" cannot patch resource '
        '"deployments/status" in API group "apps" in the namespace "other"'
    )
    await api("DELETE", "/api/v1/namespaces/default/serviceaccounts/reader")
    assert (await reader("GET", MAPS))[0] == 401


async def test_pages_show_one_moment(api: Api) -> None:
    """Continued lists are of the revision of the first page, whatever happened between."""
    for number in range(5):
        await api("POST", "/api/v1/namespaces/kube-public/configmaps", config_map(f"m-{number}"))
    path = "/api/v1/namespaces/kube-public/configmaps"
    _, first = await api("GET", path, limit="2")
    assert first["metadata"]["remainingItemCount"] == 3
    await api("DELETE", f"{path}/m-3")
    await api("POST", path, config_map("m-9"))
    _, second = await api("GET", path, limit="9", **{"continue": first["metadata"]["continue"]})
    names = [item["metadata"]["name"] for item in (*first["items"], *second["items"])]
    assert names == [f"m-{number}" for number in range(5)]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_generations_count_wishes(api: Api) -> None:
    """spec counts, metadata and status do not."""
    await api("POST", CRDS, widget_crd())
    _, made = await api("POST", WIDGETS, widget(size=1))
    assert (made["metadata"]["generation"], made["spec"]) == (1, {"mode": "slow", "size": 1})
    _, labelled = await api("PATCH", f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    _, observed = await api("PATCH", f"{WIDGETS}/w/status", {"status": {"ok": True}, "spec": {"size": 9}}, MERGE)
    _, changed = await api("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}, "status": {"ok": False}}, MERGE)
    generations = [each["metadata"]["generation"] for each in (labelled, observed, changed)]
    assert generations == [1, 1, 2]
    assert (observed["spec"]["size"], changed["status"]) == (1, {"ok": True})


async def test_a_write_that_changes_nothing_is_none(api: Api) -> None:
    """No new revision, no new time."""
    _, made = await api("POST", MAPS, config_map("x", data={"a": "1"}))
    _, again = await api("PATCH", f"{MAPS}/x", {"data": {"a": "1"}}, MERGE)
    assert again == made


async def test_a_dry_run_leaves_no_trace(api: Api, server: ApiServer) -> None:
    """Answered as if, stored not."""
    before = server.store.rv
    status, _ = await api("POST", MAPS, config_map("x"), dryRun="All")
    assert (status, server.store.rv, (await api("GET", f"{MAPS}/x"))[0]) == (201, before, 404)


async def test_finalizers_hold_an_object(api: Api) -> None:
    """It is marked, takes no new finalizers, and goes with the last one."""
    body = config_map("x")
    body["metadata"]["finalizers"] = ["example.io/hold"]
    await api("POST", MAPS, body)
    status, marked = await api("DELETE", f"{MAPS}/x")
    assert (status, "deletionTimestamp" in marked["metadata"]) == (200, True)
    more = {"metadata": {"finalizers": ["example.io/hold", "example.io/more"]}}
    status, refused = await api("PATCH", f"{MAPS}/x", more, MERGE)
    assert (status, refused["message"]) == (
        422,
        'ConfigMap "x" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.io/more"}',
    )
    await api("PATCH", f"{MAPS}/x", {"metadata": {"finalizers": None}}, MERGE)
    assert (await api("GET", f"{MAPS}/x"))[0] == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")], ids=["foreground", "orphan"]
)
async def test_propagation_marks_the_object(api: Api, policy: str, finalizer: str) -> None:
    """The collector finds the finalizer that says what is wanted."""
    await api("POST", MAPS, config_map("x"))
    _, marked = await api("DELETE", f"{MAPS}/x", {"propagationPolicy": policy})
    assert marked["metadata"]["finalizers"] == [finalizer]


async def test_a_pod_on_a_node_has_time_to_end(api: Api) -> None:
    """It stays for its grace period; a delete without grace takes it away at once."""
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await api("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    _, marked = await api("DELETE", f"{PODS}/p")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await api("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}))[0] == 200
    assert (await api("GET", f"{PODS}/p"))[0] == 404


async def test_unknown_fields_of_a_custom_resource_are_pruned(api: Api) -> None:
    """Dropped with a warning, refused when strict, dropped in silence when ignored."""
    await api("POST", CRDS, widget_crd())
    _, made = await api("POST", WIDGETS, widget(size=1, colour="red"))
    assert (made["spec"], api.headers["Warning"]) == (
        {"mode": "slow", "size": 1},
        '299 - "unknown field \\"spec.colour\\""',
    )
    status, refused = await api("PATCH", f"{WIDGETS}/w", {"spec": {"colour": "red"}}, MERGE, fieldValidation="Strict")
    assert (status, refused["reason"]) == (422, "Invalid")
    assert refused["message"].startswith(' "" is invalid: patch: Invalid value: "{')
    assert refused["message"].endswith('": strict decoding error: unknown field "spec.colour"')
    await api("PATCH", f"{WIDGETS}/w", {"spec": {"colour": "red"}}, MERGE, fieldValidation="Ignore")
    assert "Warning" not in api.headers


async def test_a_definition_comes_and_goes(api: Api) -> None:
    """Established at once; gone with its objects; its names belong to it."""
    _, made = await api("POST", CRDS, widget_crd())
    conditions = {c["type"]: (c["status"], c["reason"]) for c in made["status"]["conditions"]}
    assert conditions["Established"] == ("True", "InitialNamesAccepted")
    await api("POST", WIDGETS, widget(size=1))
    _, listed = await api("GET", "/apis/example.io/v1")
    assert [row["name"] for row in listed["resources"]] == ["widgets", "widgets/status"]
    await api("DELETE", f"{CRDS}/widgets.example.io")
    for _ in range(100):
        if (await api("GET", f"{CRDS}/widgets.example.io"))[0] == 404:
            break
    assert (await api("GET", WIDGETS))[0] == 404
    await api("POST", CRDS, widget_crd())
    assert (await api("GET", WIDGETS))[1]["items"] == []


async def test_a_custom_resource_is_updated_with_its_revision_only(api: Api) -> None:
    """A PUT without a revision is refused, as for every custom resource."""
    await api("POST", CRDS, widget_crd())
    await api("POST", WIDGETS, widget(size=1))
    status, refused = await api("PUT", f"{WIDGETS}/w", widget(size=2))
    why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    assert (status, refused["message"]) == (422, f'widgets.example.io "w" is invalid: {why}')


async def test_every_request_is_in_the_audit_log(api: Api, server: ApiServer) -> None:
    """Who did what to what, and what came of it."""
    await api("GET", f"{MAPS}/nope")
    event = orjson.loads((server.data / "audit.log").read_bytes().splitlines()[-1])
    assert (event["verb"], event["user"]["username"], event["responseStatus"]["code"]) == ("get", "admin", 404)
    assert event["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "nope",
        "apiVersion": "v1",
    }
    assert event["requestURI"] == f"{MAPS}/nope"
