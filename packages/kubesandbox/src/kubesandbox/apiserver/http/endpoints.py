"""The served paths and their methods: the errors that go-restful returns before a handler is called.

In: a method, its parsed path, and the kind served there (or None). Out: None, or the error: 404 for an unknown path of
a built-in group, 405 for a method that a path does not have. Paths below a group of custom resources, or outside of all
groups, are left to the handlers that answer `404 page not found`.
"""

from __future__ import annotations

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.routing import Target, parse_target
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind
from kubesandbox.apiserver.status_errors import ApiError

BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_COLLECTION = frozenset({"GET", "POST", "DELETE"})
_ITEM = frozenset({"GET", "PUT", "PATCH", "DELETE"})


def in_builtin_group(path: str) -> bool:
    """Returns whether a path is below `/api/` or below a built-in group's version."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return len(parts) > 1
    return parts[:1] == ["apis"] and len(parts) > 2 and parts[1] in BUILTIN_GROUPS


def endpoint_error(method: str, target: Target, kind: Kind) -> ApiError | None:
    """Returns the error of a request that is not valid for `kind`, or None."""
    if kind.custom:
        return None
    if not _is_place(target, kind):
        return not_there()
    if target.subresource:
        return None  # checked by the handler of subresources
    methods = _ITEM if target.name else _COLLECTION
    if method not in methods or (kind.namespaced and not target.namespace and not target.name and method != "GET"):
        # Reviews accept POST on any path, also on one with a namespace or name.
        return None if target.verb == "create" and kind.verbs == ("create",) else status_errors.method_not_allowed()
    return None if target.verb in kind.verbs else status_errors.method_not_allowed()


def is_custom_place(target: Target, kind: Kind) -> bool:
    """Returns whether a path can hold objects of a custom kind; True for built-in kinds, which `refusal` checks."""
    if not kind.custom:
        return True
    if kind.namespaced:
        return bool(target.namespace) or (not target.name and target.verb in {"list", "watch"})
    return not target.namespace


def resource_of(path: str) -> tuple[str, str, str]:
    """Returns group, version and resource of a resource path, whatever the method."""
    target = parse_target("GET", path, {})
    return target.group, target.version, target.resource


def _is_place(target: Target, kind: Kind) -> bool:
    """Returns whether a path is one at which a kind has objects, by its namespace."""
    if target.rest:
        return False
    if kind.namespaced:
        # The name of a list is its field selector's: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
        return bool(target.namespace) or not target.name or target.path.rstrip("/").endswith(f"/{target.resource}")
    return not target.namespace or kind.resource == "namespaces"


def not_there() -> ApiError:
    """Returns the 404 of a path in a built-in group."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})
