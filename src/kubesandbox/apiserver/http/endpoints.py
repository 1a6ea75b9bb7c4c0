"""Which paths there are, and with which methods: what go-restful answers before any handler is asked.

In: a method, what its path means, and the kind served there (or None). Out: nothing, or the failure: 404 for a path of
a built-in group that leads nowhere, 405 for one that has no such method. What is below a group of custom resources or
nowhere at all is left to those who answer `404 page not found`.
"""

from __future__ import annotations

from kubesandbox.apiserver import errors
from kubesandbox.apiserver.errors import ApiError
from kubesandbox.apiserver.http.routing import Target, parse
from kubesandbox.apiserver.kinds import BUILTIN, Kind

BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_COLLECTION = frozenset({"GET", "POST", "DELETE"})
_ITEM = frozenset({"GET", "PUT", "PATCH", "DELETE"})


def in_builtin_group(path: str) -> bool:
    """Whether a path is below `/api/` or below a built-in group's version."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return len(parts) > 1
    return parts[:1] == ["apis"] and len(parts) > 2 and parts[1] in BUILTIN_GROUPS


def refusal(method: str, target: Target, kind: Kind) -> ApiError | None:
    """Why a request cannot be for `kind`, None when it can."""
    if kind.custom:
        return None
    if not _is_place(target, kind):
        return not_there()
    if target.subresource:
        return None  # judged where subresources are known
    methods = _ITEM if target.name else _COLLECTION
    if method not in methods or (kind.namespaced and not target.namespace and not target.name and method != "GET"):
        # Reviews are posted wherever they are.
        return None if target.verb == "create" and kind.verbs == ("create",) else errors.method_not_allowed("", "")
    return None if target.verb in kind.verbs else errors.method_not_allowed("", "")


def is_custom_place(target: Target, kind: Kind) -> bool:
    """Whether a path is where objects of a custom kind are; always for built-in kinds, which `refusal` judges."""
    if not kind.custom:
        return True
    if kind.namespaced:
        return bool(target.namespace) or (not target.name and target.verb in {"list", "watch"})
    return not target.namespace


def resource_of(path: str) -> tuple[str, str, str]:
    """Group, version and resource of a resource path, whatever the method."""
    target = parse("GET", path, {})
    return target.group, target.version, target.resource


def _is_place(target: Target, kind: Kind) -> bool:
    if target.rest:
        return False
    if kind.namespaced:
        return bool(target.namespace) or not target.name
    return not target.namespace or kind.resource == "namespaces"


def not_there() -> ApiError:
    """404 of a path in a built-in group."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})
