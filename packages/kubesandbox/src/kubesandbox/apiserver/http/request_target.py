"""Parses a request once into the verb, the resource and the name that its method, path and query mean.

`parse_target` does as k8s.io/apiserver's RequestInfoFactory (pkg/endpoints/request/requestinfo.go). Routing,
authorization, admission, audit and the handlers read the same `Target`; none of them reads the path again.
"""

from __future__ import annotations

import msgspec

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.list_options import ListOptions, Query, decode_list_options, unescape
from kubesandbox.apiserver.schema.object_meta import path_segment_faults
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PATH_VERBS = frozenset({"proxy", "watch"})
# Their "namespace" is their own name: /api/v1/namespaces/x/finalize is about the namespace x.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_COLLECTION = frozenset({"GET", "POST", "DELETE"})
_ITEM = frozenset({"GET", "PUT", "PATCH", "DELETE"})


class Target(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The target of a request, or the subject of an authorization.

    For a non-resource request `verb` is the method in lower case. `name` is that of the path, or of a list's field
    selector; `parts` is the path from the resource on. `in_namespace` is whether the path has a namespace before the
    resource, which `/namespaces/x` itself has not. `listing` has the options of a list or watch, or their fault;
    `fault` says why the path cannot be parsed.
    """

    verb: str
    path: str = ""
    is_resource: bool = True
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    verb_in_path: bool = False
    in_namespace: bool = False
    listing: ListOptions | status_errors.ApiError | None = None
    fault: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, such as `pods/log`, or `pods`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def list_options(self) -> ListOptions:
        """The options of a list, watch or deletecollection. Raises ApiError 400."""
        if isinstance(self.listing, ListOptions):
            return self.listing
        raise self.listing or status_errors.method_not_allowed()

    @property
    def has_builtin_group(self) -> bool:
        """Whether the path is below `/api/` or below a version of a built-in group."""
        parts = _split_path(self.path)
        if parts[0] == "api":
            return len(parts) > 1
        return parts[0] == "apis" and len(parts) > 2 and bool(parts[1]) and parts[1] in _BUILTIN_GROUPS


def split_uri(uri: str) -> tuple[str, Query]:
    """Returns the decoded path and the query of a request's URI. Raises ApiError 400 for a broken path."""
    if not uri.startswith("/"):
        # The absolute form, as sent to a proxy.
        uri = "/" + uri.partition("://")[2].partition("/")[2]
    raw_path, _, query = uri.partition("?")
    path = unescape(raw_path)
    if path is None:
        raise status_errors.bad_request(f"invalid URL escape in {raw_path}")
    return path, Query(query)


def parse_target(method: str, path: str, query: Query) -> Target:
    """Parses a decoded path. Never fails: a path of another form is a non-resource target."""
    parts = _split_path(path)
    groups = {"api": 0, "apis": 1}.get(parts[0])
    if groups is None or len(parts) < 3 + groups:
        return Target(verb=method.lower(), path=path, is_resource=False)
    group, version, parts = "".join(parts[1 : 1 + groups]), parts[1 + groups], parts[2 + groups :]
    # The deprecated form /api/v1/watch/..., which is still served.
    verb_in_path = parts[0] in _PATH_VERBS
    if verb_in_path and len(parts) == 1:
        why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
        return Target(verb=method.lower(), path=path, group=group, version=version, fault=why)
    verb, parts = (parts[0], parts[1:]) if verb_in_path else (_VERBS.get(method, ""), parts)
    namespace, in_namespace = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        in_namespace = len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES
        parts = parts[2:] if in_namespace else parts
    resource, name, subresource = (*parts, "", "")[:3]
    listing: ListOptions | status_errors.ApiError | None = None
    if verb == "watch" or (not name and verb in {"get", "delete"}):
        try:
            listing = decode_list_options(query)
        except status_errors.ApiError as error:
            listing = error
    if verb == "get" and not name:
        # A single object cannot be watched by its path; clients watch the list with a field selector.
        verb = "watch" if query.flag("watch") else "list"
        # Rights to the one object that a field selector admits are rights to such a list.
        required = listing.exact_name if isinstance(listing, ListOptions) else None
        if required and not path_segment_faults(required):
            name = required
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return Target(
        verb=verb, path=path, group=group, version=version, namespace=namespace, resource=resource, name=name,
        subresource="" if verb == "proxy" else subresource, parts=tuple(parts), verb_in_path=verb_in_path,
        in_namespace=in_namespace, listing=listing,
    )  # fmt: skip


def _split_path(path: str) -> list[str]:
    return path.strip("/").split("/")


def endpoint_error(method: str, target: Target, kind: Kind) -> status_errors.ApiError | None:
    """Returns the error of a request for whose path or method there is no route of `kind`, or None."""
    if kind.custom:
        # Handlers of custom resources are chosen by the verb alone (apiextensions-apiserver, crdHandler).
        across = target.verb in {"list", "watch"}
        in_place = bool(target.namespace) or across if kind.namespaced else not target.namespace
        return None if in_place else not_there()
    has_name, most_parts = len(target.parts) > 1, 2 if target.verb_in_path else 3
    in_place = target.in_namespace or not has_name if kind.namespaced else not target.in_namespace
    if len(target.parts) > most_parts or not in_place or target.verb == "proxy":
        return not_there()
    if target.verb_in_path:
        return None if method == "GET" and "watch" in kind.verbs else status_errors.method_not_allowed()
    if target.subresource:
        return None  # checked by the handler of subresources
    methods = _ITEM if has_name else _COLLECTION
    if method not in methods or (kind.namespaced and not target.in_namespace and method != "GET"):
        # Reviews accept POST on any path, also on one with a namespace or name.
        return None if target.verb == "create" and kind.verbs == ("create",) else status_errors.method_not_allowed()
    return None if target.verb in kind.verbs else status_errors.method_not_allowed()


def not_there() -> status_errors.ApiError:
    """Returns the 404 of a path in a built-in group."""
    return status_errors.ApiError(404, "NotFound", "the server could not find the requested resource", details={})
