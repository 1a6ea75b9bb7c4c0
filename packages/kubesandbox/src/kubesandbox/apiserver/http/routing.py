"""Parsing of request paths: the verb and the resource for authorization, audit and handlers.

Follows k8s.io/apiserver's RequestInfo: `/api/v1/...` and `/apis/GROUP/VERSION/...` are resource requests, others are
not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubesandbox.apiserver.http.messages import is_true

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Their "namespace" is their own name: /api/v1/namespaces/x/finalize is about the namespace x.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


class Target(msgspec.Struct, frozen=True, gc=False):
    """The target of a request. For a non-resource request `resource` is "" and `verb` the method in lower case."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    rest: str = ""

    @property
    def is_resource(self) -> bool:
        """Reports whether the path names a resource."""
        return bool(self.resource)


def parse_target(method: str, path: str, query: Mapping[str, str]) -> Target:
    """Parses a path. Never fails: a path of another form is a non-resource target."""
    parts = [part for part in path.split("/") if part]
    verb = _VERBS.get(method)
    if len(parts) >= 3 and parts[0] == "api":
        group, version, parts = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        verb = None
    if verb is None:
        return Target(method.lower(), path)
    # The deprecated form /api/v1/watch/..., which is still served.
    if parts[0] == "watch" and len(parts) > 1:
        verb, parts = "watch", parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    remaining_path = "/".join(parts[3:])
    verb = _refine_verb(verb, name, query)
    if verb in {"list", "watch"}:
        name = name or _only_name(query.get("fieldSelector", ""))
    return Target(verb, path, group, version, namespace, resource, subresource, name, remaining_path)


def _only_name(selector: str) -> str:
    """Returns the one name that a field selector admits, or "": rights to that object are rights to such a list."""
    terms = (part.strip().partition("=") for part in selector.split(",") if "!=" not in part)
    return next((value.removeprefix("=") for path, _, value in terms if path.strip() == "metadata.name"), "")


def _refine_verb(verb: str, name: str, query: Mapping[str, str]) -> str:
    # A single object cannot be watched by its path; clients watch the list with a field selector.
    if verb == "get" and not name:
        return "watch" if is_true(query.get("watch", "")) else "list"
    return "deletecollection" if verb == "delete" and not name else verb
