"""Calls about identities: access reviews, token reviews, and tokens of service accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubekit.api import codec
from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.meta_v1 import Wire
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.request import Call

ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
SUBJECT_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)


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
    """The user to whom a token belongs; `error` is the reason why it belongs to nobody."""

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
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "namespace": namespace,
        "name": name,
        "subresource": subresource,
    }
    body = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    request = calls.create(ACCESS_REVIEWS, body).request
    return Call(request, lambda data: codec.decode(_Review, data).status)


def who_is(token: str) -> Call[Identity]:
    """Returns a call that asks to whom `token` belongs, and whether it is valid for this API server."""
    body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": {"token": token}}
    return Call(calls.create(TOKEN_REVIEWS, body).request, lambda data: codec.decode(_TokenReview, data).status)


def may(user: User, verb: str, path: str) -> Call[Access]:
    """Returns a call that asks whether `user` may `verb` the non-resource path `path`."""
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": dict(user.extra),
        "nonResourceAttributes": {"verb": verb, "path": path},
    }
    body = {"apiVersion": SUBJECT_REVIEWS.api_version, "kind": SUBJECT_REVIEWS.kind, "spec": spec}
    return Call(calls.create(SUBJECT_REVIEWS, body).request, lambda data: codec.decode(_Review, data).status)


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
