"""Rights that a request gives: by an aggregationRule, and by impersonation, each with the right that it needs.

Each answer is that of a real kube-apiserver, to which `python -m tests.controlplane` sends the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.contract.api import JSON, Api
from tests.contract.raw import Raw, Request

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/clusterroles"
_GROUP = "rbac.authorization.k8s.io"
_ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_PATHS = {"nonResourceURLs": ["*"], "verbs": ["*"]}
_EDIT = {"apiGroups": [_GROUP], "resources": ["clusterroles"], "verbs": ["get", "create", "update", "patch"]}
USERS = {
    "grants-editor": [_EDIT],
    "grants-escalator": [_EDIT, {**_EDIT, "verbs": ["escalate"]}],
    "grants-full": [_ALL, _ALL_PATHS],
}


def grant(api: Api, user: str, subject: JSON, rules: list[JSON]) -> None:
    """Creates a ClusterRole with the rules, and binds the subject to it."""
    api.post(ROLES, {"metadata": {"name": user}, "rules": rules}).ok()
    role = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": user}
    api.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": user}, "roleRef": role, "subjects": [subject]}).ok()


@pytest.fixture(scope="module")
def users(api: Api) -> None:
    """The users of the rows, and a ClusterRole with an aggregationRule."""
    for user, rules in USERS.items():
        grant(api, user, {"apiGroup": _GROUP, "kind": "User", "name": user}, rules)
    api.post(ROLES, {"metadata": {"name": "grants-aggregated"}, "aggregationRule": BY_LABELS, "rules": []}).ok()


BY_LABELS = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
BY_EXPRESSIONS = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
BY_NOTHING = {"clusterRoleSelectors": [{}]}
NOT_ALL = (403, "must have cluster-admin privileges to use the aggregationRule")
ROWS = [
    ("an editor creates one by labels", "grants-editor", None, {"aggregationRule": BY_LABELS}, NOT_ALL),
    ("an editor creates one by expressions", "grants-editor", None, {"aggregationRule": BY_EXPRESSIONS}, NOT_ALL),
    ("an editor creates one that selects all", "grants-editor", None, {"aggregationRule": BY_NOTHING}, NOT_ALL),
    ("an editor creates one without a rule", "grants-editor", None, {}, (201, "")),
    ("an editor sets the rule", "grants-editor", "grants-editor", {"aggregationRule": BY_EXPRESSIONS}, NOT_ALL),
    ("an editor removes the rule", "grants-editor", "grants-aggregated", {"aggregationRule": None}, NOT_ALL),
    (
        "an editor labels one with a rule", "grants-editor", "grants-aggregated",
        {"metadata": {"labels": {"x": "y"}}}, NOT_ALL,
    ),
    (
        "an editor changes what the garbage collector changes", "grants-editor", "grants-aggregated",
        {"metadata": {"finalizers": ["e.example/f"]}}, (200, ""),
    ),
    ("all rights, which is one to escalate", "grants-full", None, {"aggregationRule": BY_LABELS}, (201, "")),
    ("the right to escalate", "grants-escalator", None, {"aggregationRule": BY_LABELS}, (201, "")),
    ("the right to escalate, by a patch", "grants-escalator", "grants-editor", {"aggregationRule": None}, (200, "")),
    (
        "a selector without selectors", "", None, {"aggregationRule": {}},
        (422, "at least one clusterRoleSelector required if aggregationRule is non-nil"),
    ),
    (
        "an unknown operator", "", None,
        {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}},
        (422, "not a valid selector operator"),
    ),
]  # fmt: skip


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(("user", "name", "change", "answer"), [pytest.param(*row, id=name) for name, *row in ROWS])
def test_an_aggregation_rule_needs_all_rights(
    api: Api, request: pytest.FixtureRequest, user: str, name: str | None, change: JSON, answer: tuple[int, str]
) -> None:
    """It gathers rules of any ClusterRole, so that its writer must hold all rights, or may escalate."""
    client = api.impersonating(user) if user else api
    if name is not None:
        found = client.merge(f"{ROLES}/{name}", change)
    else:
        made = f"grants-row-{ROWS.index(next(row for row in ROWS if row[0] in request.node.callspec.id))}"
        found = client.post(ROLES, {"metadata": {"name": made}, "rules": [], **change})
    assert found.code == answer[0], found.body
    assert answer[1] in found.body.get("message", "")


ACCOUNT = "system:serviceaccount:default:grants"
_AUTHENTICATION = "authentication.k8s.io"


@pytest.fixture(scope="module")
def impersonator(api: Api) -> Iterator[Raw]:
    """A ServiceAccount with the right to impersonate one of each part of a user."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.post(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "grants"}}).ok()

    def named(group: str, resource: str, name: str) -> JSON:
        return {"apiGroups": [group], "resources": [resource], "verbs": ["impersonate"], "resourceNames": [name]}

    rules = [
        named("", "users", "bob"),
        named("", "users", "system:anonymous"),
        named("", "users", "system:serviceaccount:UP:a"),
        named("", "groups", "dev"),
        named("", "groups", "system:unauthenticated"),
        named("", "serviceaccounts", "robot"),
        named(_AUTHENTICATION, "uids", "42"),
        named(_AUTHENTICATION, "userextras/scopes", "view"),
        named(_AUTHENTICATION, "userextras/e.example/k", "v"),
    ]
    grant(api, "grants-impersonator", {"kind": "ServiceAccount", "name": "grants", "namespace": "default"}, rules)
    spec = {"apiVersion": f"{_AUTHENTICATION}/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    made = Raw(api.kubeconfig, api.post(f"{accounts}/grants/token", spec).ok()["status"]["token"])
    yield made
    made.close()


def user(name: str, *groups: str, **more: object) -> JSON:
    """The user info of an impersonated user."""
    return {"username": name, "groups": list(groups), **more}


AUTHENTICATED = "system:authenticated"
BOB = ("Impersonate-User", b"bob")
IMPERSONATED = [
    ("a user", [BOB], user("bob", AUTHENTICATED)),
    ("another user", [("Impersonate-User", b"eve")], 'users "eve"'),
    ("the first of two users counts", [BOB, ("Impersonate-User", b"eve")], user("bob", AUTHENTICATED)),
    ("the second of two users does not", [("Impersonate-User", b"eve"), BOB], 'users "eve"'),
    ("a group", [BOB, ("Impersonate-Group", b"dev")], user("bob", "dev", AUTHENTICATED)),
    ("a group twice", [BOB, ("Impersonate-Group", b"dev"), ("Impersonate-Group", b"root")], 'groups "root"'),
    ("an empty group", [BOB, ("Impersonate-Group", b"")], "groups is forbidden"),
    (
        "a group without an account", [BOB, ("Impersonate-Group", b"system:unauthenticated")],
        'User "bob" cannot create resource "selfsubjectreviews"',
    ),
    (
        "anonymous, which is nobody", [("Impersonate-User", b"system:anonymous")],
        'User "system:anonymous" cannot create resource "selfsubjectreviews"',
    ),
    (
        "an account", [("Impersonate-User", b"system:serviceaccount:default:robot")],
        user(
            "system:serviceaccount:default:robot",
            "system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED,
        ),
    ),
    ("another account", [("Impersonate-User", b"system:serviceaccount:default:a")], 'serviceaccounts "a"'),
    (
        "a name that no account can have", [("Impersonate-User", b"system:serviceaccount:UP:a")],
        user("system:serviceaccount:UP:a", AUTHENTICATED),
    ),
    ("a uid", [BOB, ("Impersonate-Uid", b"42")], user("bob", AUTHENTICATED, uid="42")),
    ("another uid", [BOB, ("Impersonate-Uid", b"43")], 'uids.authentication.k8s.io "43"'),
    (
        "an extra value", [BOB, ("Impersonate-Extra-Scopes", b"view")],
        user("bob", AUTHENTICATED, extra={"scopes": ["view"]}),
    ),
    (
        "another value", [BOB, ("Impersonate-Extra-Scopes", b"view"), ("Impersonate-Extra-Scopes", b"admin")],
        'userextras.authentication.k8s.io "admin"',
    ),
    ("another key", [BOB, ("Impersonate-Extra-Role", b"view")], 'resource "userextras/role"'),
    (
        "an encoded key", [BOB, ("Impersonate-Extra-E.example%2Fk", b"v")],
        user("bob", AUTHENTICATED, extra={"e.example/k": ["v"]}),
    ),
    ("a broken key", [BOB, ("Impersonate-Extra-%zz", b"view")], 'resource "userextras/%zz"'),
    ("a uid of nobody", [("Impersonate-Uid", b"42")], "without impersonating a user"),
    ("an extra value of nobody", [("Impersonate-Extra-Scopes", b"view")], "without impersonating a user"),
    ("a group of nobody", [("Impersonate-Group", b"dev")], "without impersonating a user"),
    ("bytes that are not UTF-8", [("Impersonate-User", b"\xff")], 'cannot impersonate resource "users"'),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "answer"), [pytest.param(*row, id=name) for name, *row in IMPERSONATED])
def test_each_part_of_an_impersonated_user_needs_a_right(
    impersonator: Raw, headers: list[tuple[str, bytes]], answer: JSON | str
) -> None:
    """The whole user is known to authorization and to the handler, or nothing of it is."""
    body = json.dumps({"apiVersion": f"{_AUTHENTICATION}/v1", "kind": "SelfSubjectReview"}).encode()
    request = Request(
        "POST", b"/apis/authentication.k8s.io/v1/selfsubjectreviews",
        [("Content-Type", b"application/json"), *headers], body,
    )  # fmt: skip
    found = impersonator.send(request)
    if isinstance(answer, str):
        assert found.code in {403, 500}, found
        assert answer in found.message
    else:
        assert found.code == 201, found
        assert found.body["status"]["userInfo"] == answer
