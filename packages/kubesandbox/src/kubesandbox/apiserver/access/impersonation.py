"""Impersonation: the user that a request's headers name, each part of it only with the right to impersonate that part.

See k8s.io/apiserver/pkg/endpoints/filters/impersonation.go.
"""

from __future__ import annotations

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.authz import Authorizer
from kubesandbox.apiserver.http.list_options import unescape
from kubesandbox.apiserver.http.messages import Request, User
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.schema.object_meta import dns1123_label_faults, dns1123_subdomain_faults

_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


def impersonated_user(authz: Authorizer, request: Request, user: User) -> User | None:
    """Returns the user that the request's headers name, None without such headers. Raises ApiError 403 or 500."""
    name, uid = request.header("impersonate-user"), request.header("impersonate-uid")
    groups = tuple(request.headers.get("impersonate-group", ()))
    extra = _extra_values(request)
    if not name:
        if groups or extra or uid:
            raise status_errors.internal("requested impersonation without impersonating a user")
        return None
    account = _split_account(name)
    if account is not None:
        authz.require(user, _impersonating("serviceaccounts", account[1], namespace=account[0]))
    else:
        authz.require(user, _impersonating("users", name))
    for group in groups:
        authz.require(user, _impersonating("groups", group))
    for key, values in extra.items():
        for value in values:
            authz.require(user, _impersonating("userextras", value, group=_GROUP, subresource=key))
    if uid:
        authz.require(user, _impersonating("uids", uid, group=_GROUP))
    # A ServiceAccount has its own groups unless others are given.
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name == "system:anonymous":
        groups = groups if _UNAUTHENTICATED in groups else (*groups, _UNAUTHENTICATED)
    elif not {_AUTHENTICATED, _UNAUTHENTICATED} & {*groups}:
        groups = (*groups, _AUTHENTICATED)
    return User(name, uid, groups, tuple((key, tuple(values)) for key, values in extra.items()))


def _impersonating(resource: str, name: str, *, group: str = "", namespace: str = "", subresource: str = "") -> Target:
    return Target(
        verb="impersonate", group=group, resource=resource, subresource=subresource, namespace=namespace, name=name
    )


def _extra_values(request: Request) -> dict[str, list[str]]:
    """Returns the user's extra fields; their keys are percent-encoded in the headers' names."""
    extra: dict[str, list[str]] = {}
    for header, values in request.headers.items():
        if header.startswith(_EXTRA):
            encoded = header.removeprefix(_EXTRA)
            key = unescape(encoded)
            extra.setdefault(encoded if key is None else key, []).extend(values)
    return extra


def _split_account(name: str) -> tuple[str, str] | None:
    """Returns namespace and name of a ServiceAccount's user name, None for another user."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    is_account = name.startswith(_ACCOUNT) and not dns1123_label_faults(namespace)
    return (namespace, account) if is_account and not dns1123_subdomain_faults(account) else None
