"""Calls that ask about identities instead of objects: may I do this, and a token for that service account."""

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
    """Whether one may; `denied` is a refusal that no other authorizer may overrule, `reason` is the server's."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class Token(Wire, frozen=True):
    """A bound token and the end of its life."""

    token: str = ""
    expiration_timestamp: datetime | None = None


class User(Wire, frozen=True):
    """Who somebody is, as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Identity(Wire, frozen=True):
    """Whose token it is; `error` says why it is nobody's."""

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
    """Ask whether we may `verb` the resource; an empty `namespace` means in all of them."""
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
    """Ask whose `token` this is, and whether it is good for this API server."""
    body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": {"token": token}}
    return Call(calls.create(TOKEN_REVIEWS, body).request, lambda data: codec.decode(_TokenReview, data).status)


def may(user: User, verb: str, path: str) -> Call[Access]:
    """Ask whether `user` may `verb` what is served at `path` beside the API's resources."""
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
    """Ask for a token of a service account; servers give no less than ten minutes."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": namespace},
        "spec": {"audiences": list(audiences), "expirationSeconds": expiration_s},
    }
    accounts = resource_of(ServiceAccount)
    request = calls.create(accounts, body, name=service_account, subresource="token").request
    return Call(request, lambda data: codec.decode(_TokenRequest, data).status)
