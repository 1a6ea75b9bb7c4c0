"""Calls about identities: access reviews, token reviews, and tokens of service accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.meta_v1 import Wire
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.request import Call

ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    kind="SelfSubjectAccessReview",
    plural="selfsubjectaccessreviews",
    namespaced=False,
)
TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", kind="TokenReview", plural="tokenreviews", namespaced=False
)
SUBJECT_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    kind="SubjectAccessReview",
    plural="subjectaccessreviews",
    namespaced=False,
)

# https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens
_ACCOUNT, _ACCOUNTS = "system:serviceaccount:", "system:serviceaccounts"


class Access(Wire, frozen=True):
    """The answer of an access review; `denied`: no other authorizer may allow it; `reason` is the server's."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class Token(Wire, frozen=True):
    """A bound token and its expiration time."""

    token: str = ""
    expiration_timestamp: datetime | None = None


class User(Wire, frozen=True):
    """A user as the API server knows it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Identity(Wire, frozen=True):
    """The user to whom a token belongs; `error` is the reason if it belongs to no user."""

    authenticated: bool = False
    user: User = User()
    error: str = ""


class _TokenReview(Wire, frozen=True):
    status: Identity = Identity()


class _Review(Wire, frozen=True):
    status: Access = Access()


class _TokenRequest(Wire, frozen=True):
    status: Token = Token()


def may_i(verb: str, resource: Resource, namespace: str = "", *, name: str = "", subresource: str = "") -> Call[Access]:
    """Returns a call that asks whether the client may `verb` the resource; an empty `namespace` means all of them."""
    attributes = _attributes(verb, resource, namespace=namespace, name=name, subresource=subresource)
    return _review_call(ACCESS_REVIEWS, {"resourceAttributes": attributes})


def may_they(
    username: str, verb: str, resource: Resource, namespace: str = "", *, name: str = "", subresource: str = ""
) -> Call[Access]:
    """Returns the SubjectAccessReview for another user; a service account has the groups that the server gives it."""
    groups = []
    if username.startswith(_ACCOUNT):
        account_namespace = username.removeprefix(_ACCOUNT).partition(":")[0]
        groups = [_ACCOUNTS, f"{_ACCOUNTS}:{account_namespace}", "system:authenticated"]
    attributes = _attributes(verb, resource, namespace=namespace, name=name, subresource=subresource)
    return _review_call(SUBJECT_REVIEWS, {"user": username, "groups": groups, "resourceAttributes": attributes})


def who_is(token: str) -> Call[Identity]:
    """Returns a call that asks to whom `token` belongs, and whether it is valid for this API server."""
    body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": {"token": token}}
    return Call(calls.create(TOKEN_REVIEWS, body).request, lambda data: codec.decode(_TokenReview, data).status)


def may_reach_path(user: User, verb: str, path: str) -> Call[Access]:
    """Returns a call that asks whether `user` may `verb` the non-resource path `path`."""
    return _review_call(SUBJECT_REVIEWS, {**_subject(user), "nonResourceAttributes": {"verb": verb, "path": path}})


def may_user(user: User, verb: str, resource: Resource, namespace: str = "", *, name: str = "") -> Call[Access]:
    """Returns the SubjectAccessReview whether `user`, as a TokenReview has it, may `verb` the resource."""
    attributes = _attributes(verb, resource, namespace=namespace, name=name)
    return _review_call(SUBJECT_REVIEWS, {**_subject(user), "resourceAttributes": attributes})


def _subject(user: User) -> dict[str, Any]:
    return {"user": user.username, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}


def _attributes(verb: str, resource: Resource, **place: str) -> dict[str, str]:
    """Returns the resourceAttributes of an access review, without the empty ones."""
    kind = {"verb": verb, "group": resource.group, "version": resource.version, "resource": resource.plural}
    return {key: value for key, value in {**kind, **place}.items() if value}


def _review_call(kind: Resource, spec: dict[str, Any]) -> Call[Access]:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
    return Call(calls.create(kind, body).request, lambda data: codec.decode(_Review, data).status)


def token_request(
    service_account: str, namespace: str, *, audiences: Sequence[str] = (), expiration_s: int = 3600
) -> Call[Token]:
    """Returns a call that requests a token of a service account; servers issue it for at least ten minutes."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": namespace},
        "spec": {"audiences": list(audiences), "expirationSeconds": expiration_s},
    }
    accounts = resource_of(ServiceAccount)
    request = calls.create(accounts, body, name=service_account, subresource="token").request
    return Call(request, lambda data: codec.decode(_TokenRequest, data).status)
