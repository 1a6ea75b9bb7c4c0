"""What a request is about is the same for authorization and for the handler, whatever its path and query look like.

Each answer is that of a real kube-apiserver, to which `python -m tests.controlplane` sends the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.api import JSON, Api
from tests.contract.raw import Raw, Request

RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
def raw(api: Api) -> Iterator[Raw]:
    """A raw connection of the administrator."""
    made = Raw(api.kubeconfig)
    yield made
    made.close()


@pytest.fixture(scope="module")
def place(api: Api) -> str:
    """The namespaces `targets-one` and `targets-two`, and users with rights in one of them.

    `nsadmin` may do anything in the first; `reader` may read its Secret `allowed`, `lister` what has no resource.
    """
    for name in ("targets-one", "targets-two"):
        api.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok()
    for name in ("allowed", "other"):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        api.post("/api/v1/namespaces/targets-one/secrets", secret).ok()
    named = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["allowed"]}
    roles: dict[str, JSON] = {
        "nsadmin": {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        "reader": {**named, "verbs": ["get", "list", "watch"]},
    }
    for user, rule in roles.items():
        role = {"metadata": {"name": user}, "rules": [rule]}
        api.post(f"{RBAC}/namespaces/targets-one/roles", role).ok()
        api.post(f"{RBAC}/namespaces/targets-one/rolebindings", _binding("Role", user)).ok()
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}
    api.post("/apis/policy/v1/namespaces/targets-one/poddisruptionbudgets", budget).ok()
    rules = [{"nonResourceURLs": ["/api/*", "/healthz/"], "verbs": ["*"]}]
    api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "targets-lister"}, "rules": rules}).ok()
    api.post(f"{RBAC}/clusterrolebindings", _binding("ClusterRole", "lister", "targets-lister")).ok()
    return "targets-one"


def _binding(kind: str, user: str, role: str = "") -> JSON:
    return {
        "metadata": {"name": role or user},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role or user},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
    }


ONE = "/api/v1/namespaces/targets-one"
SECRETS = f"{ONE}/secrets"
NO_ROUTE, NO_RIGHT, NO_METHOD, BAD = "404 NotFound", "403 Forbidden", "405 MethodNotAllowed", "400 BadRequest"
ROWS = [
    ("a namespace below a namespace", "nsadmin", "GET", f"{ONE}/namespaces/targets-two", NO_ROUTE),
    ("a namespace below itself", "nsadmin", "GET", f"{ONE}/namespaces/targets-one", NO_ROUTE),
    ("deletes a namespace below a namespace", "nsadmin", "DELETE", f"{ONE}/namespaces/targets-two", NO_ROUTE),
    ("the status of a namespace below a namespace", "nsadmin", "GET", f"{ONE}/namespaces/targets-two/status", NO_ROUTE),
    ("all namespaces below a namespace", "nsadmin", "GET", f"{ONE}/namespaces", NO_ROUTE),
    ("a namespace itself", "nsadmin", "GET", ONE, "200 targets-one"),
    ("another namespace", "nsadmin", "GET", "/api/v1/namespaces/targets-two", NO_RIGHT),
    ("a cluster's kind in a namespace", "nsadmin", "GET", f"{RBAC}/namespaces/targets-one/clusterroles", NO_ROUTE),
    ("an encoded slash is a slash", "nsadmin", "GET", f"{ONE}%2Fnamespaces%2ftargets-two", NO_ROUTE),
    ("an encoded name", "reader", "GET", f"{SECRETS}/%61llowed", "200 allowed"),
    ("a broken escape", "reader", "GET", f"{SECRETS}/%zz", "400"),
    ("dots are a name", "nsadmin", "GET", f"{ONE}/../targets-two", NO_ROUTE),
    ("an encoded dot is a name", "nsadmin", "GET", f"{ONE}/%2e%2e/targets-two", NO_ROUTE),
    ("a semicolon is part of a name", "reader", "GET", f"{SECRETS}/allowed;x=1", NO_RIGHT),
    ("a slash at the end", "reader", "GET", f"{SECRETS}/allowed/", "200 allowed"),
    ("two slashes at the beginning", "reader", "GET", f"/{SECRETS}/allowed", "404"),
    ("an empty namespace", "reader", "GET", "/api/v1/namespaces//secrets/allowed", NO_RIGHT),
    ("an empty resource has the rights of a resource", "lister", "GET", "/api/v1//secrets", NO_RIGHT),
    ("an empty version has the rights of a resource", "lister", "GET", "/api//namespaces/x", NO_RIGHT),
    ("capitals are another path", "lister", "GET", "/API/v1/namespaces", NO_RIGHT),
    ("a path without a resource", "lister", "GET", "/api/v1", "200"),
    ("another method on a path without a resource", "lister", "POST", "/healthz", NO_RIGHT),
    ("a list of all", "reader", "GET", SECRETS, NO_RIGHT),
    ("a list of one", "reader", "GET", f"{SECRETS}?fieldSelector=metadata.name%3Dallowed", "200 allowed"),
    ("a list of one, by ==", "reader", "GET", f"{SECRETS}?fieldSelector=metadata.name%3D%3Dallowed", "200 allowed"),
    ("a list of all but one", "reader", "GET", f"{SECRETS}?fieldSelector=metadata.name!%3Dallowed", NO_RIGHT),
    (
        "a comma that a backslash escapes", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.namespace!%3Da%5C,metadata.name%3Dallowed", NO_RIGHT,
    ),
    (
        "a backslash that a backslash escapes", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.namespace!%3Da%5C%5C,metadata.name%3Dallowed", "200 allowed",
    ),
    ("an escape in the name", "reader", "GET", f"{SECRETS}?fieldSelector=metadata.name%3Dallowed%5C,", NO_RIGHT),
    ("an unknown escape", "nsadmin", "GET", f"{SECRETS}?fieldSelector=metadata.name%3Da%5Cb", BAD),
    ("an equals sign that is not escaped", "nsadmin", "GET", f"{SECRETS}?fieldSelector=metadata.name%3Da%3Db", BAD),
    ("a blank before the field", "nsadmin", "GET", f"{SECRETS}?fieldSelector=%20metadata.name%3Dallowed", BAD),
    (
        "two names", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.name%3Dallowed,metadata.name%3Dother", "200",
    ),
    (
        "the first of two selectors counts", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.name%3Dallowed&fieldSelector=metadata.name%3Dother", "200 allowed",
    ),
    (
        "a selector after an empty one", "reader", "GET",
        f"{SECRETS}?fieldSelector=&fieldSelector=metadata.name%3Dallowed", NO_RIGHT,
    ),
    (
        "a pair with a semicolon is no parameter", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.name%3Dallowed;a=b", NO_RIGHT,
    ),
    (
        "a selector beside an option that cannot be read", "reader", "GET",
        f"{SECRETS}?fieldSelector=metadata.name%3Dallowed&limit=x", NO_RIGHT,
    ),
    ("an option that cannot be read", "nsadmin", "GET", f"{SECRETS}?limit=x", BAD),
    ("a watch by an empty flag", "reader", "GET", f"{SECRETS}?watch=", NO_RIGHT),
    ("the first of two flags counts", "nsadmin", "GET", f"{SECRETS}?watch=0&watch=1", "200 allowed other"),
    (
        "deletes a collection by a name", "reader", "DELETE",
        f"{SECRETS}?fieldSelector=metadata.name%3Dallowed", NO_RIGHT,
    ),
    (
        "watches one by the old path", "reader", "GET",
        "/api/v1/watch/namespaces/targets-one/secrets/allowed?timeoutSeconds=1", "200",
    ),
    (
        "watches another by the old path", "reader", "GET",
        "/api/v1/watch/namespaces/targets-one/secrets/other", NO_RIGHT,
    ),
    (
        "watches one by the old path with another selector", "reader", "GET",
        "/api/v1/watch/namespaces/targets-one/secrets/allowed?fieldSelector=metadata.name%3Dother", BAD,
    ),
    (
        "watches one by the old path with a selector of another field", "reader", "GET",
        "/api/v1/watch/namespaces/targets-one/secrets/allowed?fieldSelector=metadata.namespace%3Dtargets-one", BAD,
    ),
    (
        "a selector gives no right to the old path", "reader", "GET",
        "/api/v1/watch/namespaces/targets-one/secrets?fieldSelector=metadata.name%3Dallowed", NO_RIGHT,
    ),
    ("the old path has one method", "nsadmin", "POST", "/api/v1/watch/namespaces/targets-one/secrets", NO_METHOD),
    ("deletes by the old path", "nsadmin", "DELETE", "/api/v1/watch/namespaces/targets-one/secrets/other", NO_METHOD),
    (
        "a subresource by the old path", "nsadmin", "GET",
        "/api/v1/watch/namespaces/targets-one/pods/a/status", NO_ROUTE,
    ),
    ("the old path of proxies", "nsadmin", "GET", "/api/v1/proxy/namespaces/targets-one/pods/a", NO_ROUTE),
    ("the old path without a resource", "nsadmin", "GET", "/api/v1/watch", "500"),
    ("a name in the path of all namespaces", "nsadmin", "GET", "/api/v1/secrets/allowed", NO_RIGHT),
    ("a name in the path of all namespaces, for all rights", "", "GET", "/api/v1/secrets/allowed", NO_ROUTE),
    ("what follows a subresource", "nsadmin", "GET", f"{ONE}/pods/a/status/b", NO_ROUTE),
    ("a method without a verb", "reader", "OPTIONS", SECRETS, NO_RIGHT),
    ("a method without a verb, for all rights", "", "OPTIONS", SECRETS, NO_METHOD),
]  # fmt: skip


@pytest.mark.parametrize(("user", "method", "path", "answer"), [pytest.param(*row, id=name) for name, *row in ROWS])
def test_a_request_has_one_meaning(raw: Raw, place: str, user: str, method: str, path: str, answer: str) -> None:
    """The handler reads the namespace, the name and the selector that authorization has seen."""
    headers = [("Impersonate-User", user.encode())] if user else []
    found = raw.send(Request(method, path.encode(), headers))
    assert " ".join(filter(None, (str(found.code), found.reason, *found.names))) == answer, found.message


BUDGET = "/apis/policy/v1/namespaces/targets-one/poddisruptionbudgets/a"
WIDGETS = "/apis/contract.example.com/v1/namespaces/targets-one/widgets"
HTML, TABLE = ("Accept", b"text/html"), ("Accept", b"application/json;as=Table")
BODY, TEXT = ("Content-Type", b"application/json"), ("Content-Type", b"text/plain")
MERGE, OPERATIONS = ("Content-Type", b"application/merge-patch+json"), ("Content-Type", b"application/json-patch+json")
ODD = [
    ("a name that is no part of a path", Request("GET", f"{SECRETS}/..".encode()), BAD),
    ("a patch of such a name", Request("PATCH", f"{SECRETS}/%2e".encode(), [MERGE], b"{}"), BAD),
    ("a revision that is no number", Request("GET", f"{SECRETS}/allowed?resourceVersion=x".encode()), "500"),
    ("a revision that is too large", Request("GET", f"{SECRETS}?resourceVersion={'9' * 40}".encode()), BAD),
    ("a timeout that is too long", Request("GET", f"{SECRETS}?timeout={'9' * 20}s".encode()), BAD),
    ("a path of namespaces of nodes", Request("GET", b"/api/v1/nodes?fieldSelector=metadata.namespace%3Da"), BAD),
    (
        "a deletion by another revision",
        Request("DELETE", f"{SECRETS}/other?resourceVersion=1".encode()),
        "409 Conflict",
    ),
    ("a deletion by another uid", Request("DELETE", f"{SECRETS}/other?uid=a".encode()), "409 Conflict"),
    ("a deletion of a page that is none", Request("DELETE", f"{SECRETS}?continue=a%20b".encode()), BAD),
    ("JSON that is nested too deeply", Request("POST", SECRETS.encode(), [BODY], b'{"a":' + b"[" * 20000), BAD),
    (
        "another type, and options that are wrong",
        Request("PUT", f"{SECRETS}/other?dryRun=x".encode(), [TEXT], b"{}"),
        "422 Invalid",
    ),
    ("a version as YAML", Request("GET", b"/version", [("Accept", b"application/yaml")]), "406 NotAcceptable"),
    ("a version as a table", Request("GET", b"/version", [TABLE]), "200"),
    ("a probe with a slash", Request("GET", b"/healthz/"), "404"),
    ("a path of a version", Request("GET", b"/version/x"), "404 NotFound"),
    ("a group without a name", Request("GET", b"/apis//apps/v1/namespaces/x/y"), "404"),
    ("groups, with two slashes", Request("GET", b"/apis//"), "404"),
    ("groups, with three slashes", Request("GET", b"/apis///"), "404"),
    ("versions, with two slashes", Request("GET", b"/api//"), "200"),
    ("a group with two slashes", Request("GET", b"/apis/apps//"), "200"),
    ("slashes alone", Request("GET", b"//"), "404"),
    ("a type that is not served", Request("GET", f"{SECRETS}?limit=x".encode(), [HTML]), "406 NotAcceptable"),
    ("such a type, for no route", Request("GET", f"{ONE}/none".encode(), [HTML]), "404 NotFound"),
    ("such a type, for another method", Request("POST", f"{SECRETS}/a".encode(), [HTML]), NO_METHOD),
    ("a table that is none", Request("GET", f"{SECRETS}/none".encode(), [TABLE]), "406 NotAcceptable"),
    ("a patch of nothing", Request("PATCH", f"{SECRETS}/none".encode(), [MERGE], b"{"), "404 NotFound"),
    ("a patch that is no operation", Request("PATCH", f"{SECRETS}/allowed".encode(), [OPERATIONS], b'[""]'), BAD),
    (
        "a body of another type",
        Request("POST", f"{SECRETS}?dryRun=x".encode(), [TEXT], b"{}"),
        "415 UnsupportedMediaType",
    ),
    ("an apiVersion that is false", Request("POST", SECRETS.encode(), [BODY], b'{"apiVersion": 0}'), BAD),
    ("a kind that is empty", Request("POST", SECRETS.encode(), [BODY], b'{"kind": []}'), BAD),
    ("a custom resource without a version", Request("POST", WIDGETS.encode(), [BODY], b'{"kind": "Widget"}'), BAD),
    ("a patch of a collection of custom resources", Request("PATCH", WIDGETS.encode(), [MERGE], b"{}"), BAD),
    (
        "a pod without a name",
        Request("POST", f"{ONE}/pods".encode(), [BODY], b'{"spec": {"containers": [{"name": "c", "image": "i"}]}}'),
        "422 Invalid",
    ),
    (
        "an update that needs a revision",
        Request("PUT", BUDGET.encode(), [BODY], b'{"metadata": {"name": "a"}, "spec": {"minAvailable": 1}}'),
        "422 Invalid",
    ),
    (
        "options of a deletion that are of another kind",
        Request("DELETE", f"{SECRETS}/other".encode(), [BODY], b'{"apiVersion": "v1", "kind": "Secret"}'),
        "500",
    ),
    (
        "a deletion whose query is not read, for it has a body",
        Request("DELETE", f"{SECRETS}/other?dryRun=x".encode(), [BODY], b'{"dryRun": ["All"]}'),
        "200",
    ),
]


@pytest.mark.usefixtures("place", "widgets")
@pytest.mark.parametrize(("request_", "answer"), [pytest.param(*row, id=name) for name, *row in ODD])
def test_the_first_fault_is_that_of_the_real_server(raw: Raw, request_: Request, answer: str) -> None:
    """A request with several faults is refused for the one that kube-apiserver meets first."""
    found = raw.send(request_)
    assert " ".join(filter(None, (str(found.code), found.reason))) == answer, found.message
