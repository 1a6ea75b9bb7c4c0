"""A request and its response, independent of any web framework, so that handlers are plain functions of values.

With them are what a request means before a handler is called: the resource that its path names (`Target`), as
k8s.io/apiserver's RequestInfo has it; the errors that go-restful returns for a path or method; the representation that
the client accepts; and the answers of the health probes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import orjson

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind

JSON_TYPE = "application/json"
# The answer to a subresource that creates nothing to show.
CREATED: status_errors.JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Their "namespace" is their own name: /api/v1/namespaces/x/finalize is about the namespace x.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_COLLECTION = frozenset({"GET", "POST", "DELETE"})
_ITEM = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_JSON_LIKE = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_META, _DISCOVERY = ("meta.k8s.io", ("v1", "v1beta1")), ("apidiscovery.k8s.io", ("v2",))
_CHECKS = ("ping", "log", "etcd")
_PROBES = {"healthz": _CHECKS, "livez": _CHECKS, "readyz": (*_CHECKS, "informer-sync", "shutdown")}
_SAFE = (("X-Content-Type-Options", "nosniff"),)


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_dict(self) -> status_errors.JSON:
        """Returns the user as `authentication.k8s.io/v1` UserInfo."""
        info: status_errors.JSON = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


# Characters of all warnings of an answer, and of each where all of them do not fit (apiserver, filters/warning.go).
_MAX_WARNINGS, _MAX_CUT_WARNING = 4096, 256


class Warnings(list[str]):
    """The warnings of an answer, each once; what has no room in its headers is neither kept nor asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._size, self._cut = 0, False

    @property
    def is_full(self) -> bool:
        """Whether no further warning is sent."""
        return self._cut and self._size >= _MAX_WARNINGS

    def append(self, text: str) -> None:
        """Adds a warning, unless it is there or has no room; cuts all of them if they do not fit otherwise."""
        if self.is_full or not text or text in self:
            return
        super().append(text)
        if not self._cut and self._size + len(text) > _MAX_WARNINGS:
            self._cut = True
            self._size = sum(min(len(each), _MAX_CUT_WARNING) for each in self)
        else:
            self._size += min(len(text), _MAX_CUT_WARNING) if self._cut else len(text)

    def extend(self, texts: Iterable[str]) -> None:
        """Adds warnings until there is no room."""
        for text in texts:
            if self.is_full:
                return
            self.append(text)

    def sent(self) -> list[str]:
        """Returns the texts as they are sent."""
        return [text[:_MAX_CUT_WARNING] for text in self] if self._cut else list(self)


@dataclass(slots=True, kw_only=True)
class Request:
    """A request. `headers` has lower-case names; `query` holds the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    _: KW_ONLY
    body: bytes = b""
    user: User | None = None
    # Collected while handling, sent as Warning headers.
    warnings: Warnings = field(default_factory=Warnings)
    # Collected by admission, written to the audit log.
    annotations: dict[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str:
        """Returns a header's value, or ""."""
        return self.headers.get(name, "")


@dataclass(slots=True, kw_only=True)
class Response:
    """A response with its whole body, or a streaming one if `stream` is set."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    _: KW_ONLY
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None


def json_response(obj: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with `obj` as JSON."""
    return Response(status=status, body=orjson.dumps(obj), headers=headers)


def text_response(text: str, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with plain text, for health endpoints and unknown paths."""
    return Response(status=status, body=text.encode(), content_type="text/plain; charset=utf-8", headers=headers)


def is_true(value: str) -> bool:
    """Returns whether a query flag is set, as apimachinery reads it: any value but "", `0` and `false`."""
    return value.lower() not in {"", "0", "false"}


class Target(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The target of a request, or the subject of an authorization.

    For a non-resource request `resource` is "" and `verb` the method in lower case.
    """

    verb: str
    path: str = ""
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

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, such as `pods/log`, or `pods`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


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
        return Target(verb=method.lower(), path=path)
    # The deprecated form /api/v1/watch/..., which is still served.
    if parts[0] == "watch" and len(parts) > 1:
        verb, parts = "watch", parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    if verb == "get" and not name:
        # A single object cannot be watched by its path; clients watch the list with a field selector.
        verb = "watch" if is_true(query.get("watch", "")) else "list"
    elif verb == "delete" and not name:
        verb = "deletecollection"
    if verb in {"list", "watch"} and not name:
        # Rights to the one object that a field selector admits are rights to such a list.
        terms = (term.strip().partition("=") for term in query.get("fieldSelector", "").split(",") if "!=" not in term)
        name = next((value.removeprefix("=") for path, _, value in terms if path.strip() == "metadata.name"), "")
    return Target(
        verb=verb, path=path, group=group, version=version, namespace=namespace, resource=resource,
        subresource=subresource, name=name, rest="/".join(parts[3:]),
    )  # fmt: skip


def in_builtin_group(path: str) -> bool:
    """Returns whether a path is below `/api/` or below a built-in group's version."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return len(parts) > 1
    return parts[:1] == ["apis"] and len(parts) > 2 and parts[1] in BUILTIN_GROUPS


def endpoint_error(method: str, target: Target, kind: Kind) -> status_errors.ApiError | None:
    """Returns the error of a request that is not valid for `kind`, or None."""
    if kind.custom:
        return None
    if kind.namespaced:
        # The name of a list is its field selector's: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
        in_place = bool(target.namespace or not target.name) or target.path.rstrip("/").endswith(f"/{target.resource}")
    else:
        in_place = not target.namespace or kind.resource == "namespaces"
    if target.rest or not in_place:
        return not_there()
    if target.subresource:
        return None  # checked by the handler of subresources
    methods = _ITEM if target.name else _COLLECTION
    if method not in methods or (kind.namespaced and not target.namespace and not target.name and method != "GET"):
        # Reviews accept POST on any path, also on one with a namespace or name.
        return None if target.verb == "create" and kind.verbs == ("create",) else status_errors.method_not_allowed()
    return None if target.verb in kind.verbs else status_errors.method_not_allowed()


def is_custom_place(target: Target, kind: Kind) -> bool:
    """Returns whether a path can hold objects of a custom kind; True for built-in kinds."""
    if not kind.custom:
        return True
    if kind.namespaced:
        return bool(target.namespace) or (not target.name and target.verb in {"list", "watch"})
    return not target.namespace


def resource_of(path: str) -> tuple[str, str, str]:
    """Returns group, version and resource of a resource path, whatever the method."""
    target = parse_target("GET", path, {})
    return target.group, target.version, target.resource


def not_there() -> status_errors.ApiError:
    """Returns the 404 of a path in a built-in group."""
    return status_errors.ApiError(404, "NotFound", "the server could not find the requested resource", details={})


class Form(Enum):
    """The representation in a response's body."""

    OBJECT = "object"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Accepted(NamedTuple):
    """The negotiated representation; `version` is that of `meta.k8s.io` for its kinds."""

    form: Form = Form.OBJECT
    as_yaml: bool = False
    version: str = "v1"


# Form -> its group, and the versions of it that the server has.
_FORMS = {
    "Table": (Form.TABLE, *_META),
    "PartialObjectMetadata": (Form.PARTIAL, *_META),
    "PartialObjectMetadataList": (Form.PARTIAL_LIST, *_META),
    "APIGroupDiscoveryList": (Form.DISCOVERY, *_DISCOVERY),
}


# The representations of objects; those of what is answered and never stored, such as a review.
OBJECTS = frozenset({Form.OBJECT, Form.TABLE, Form.PARTIAL, Form.PARTIAL_LIST})
UNSTORED = frozenset({Form.OBJECT, Form.PARTIAL})
DOCUMENTS = frozenset({Form.OBJECT, Form.DISCOVERY})


@lru_cache(maxsize=256)
def negotiate(accept: str, forms: frozenset[Form] = OBJECTS, *, stream: bool = False) -> Accepted:
    """Returns the first representation of an Accept header that the server supports. Raises ApiError 406."""
    if not accept:
        return Accepted()
    refusal = status_errors.not_acceptable
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _JSON_LIKE:
            continue
        as_yaml = media == "application/yaml"
        if stream and as_yaml:
            refusal = status_errors.only_stream_types
            continue
        refusal = status_errors.only_media_types
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        # Without as= the client accepts the object itself.
        if not options.get("as"):
            return Accepted(as_yaml=as_yaml)
        form, group, versions = _FORMS.get(options["as"], (Form.OBJECT, "", ()))
        if form in forms and (version := options.get("v", "")) in versions and options.get("g") == group:
            return Accepted(form, as_yaml, version)
    raise refusal()


def answer_probe(path: str, query: Mapping[str, str]) -> Response | None:
    """Returns the answer to a path of a probe or of one of its checks, or None for another path."""
    probe, _, check = path[1:].partition("/")
    checks = _PROBES.get(probe)
    if checks is None:
        return None
    if check:
        return text_response("ok") if check in checks else None
    if "verbose" not in query:
        return text_response("ok", headers=_SAFE)
    excluded = query.get("exclude", "")
    lines = [f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}" for name in checks]
    if excluded and excluded not in checks:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
    return text_response("\n".join((*lines, f"{probe} check passed\n")), headers=_SAFE)
