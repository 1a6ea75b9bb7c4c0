"""The calls that runup makes to a Kubernetes API, as values: path, query, content type, body, and how to decode it.

`kind` is a type of `kubekit.api.scheme`, and its answer is typed. `resource` is a `Resource`, and its answer a dict.
Nothing is sent here: `SyncClient.send` and `Client.send` send what these functions return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube.request import Call, Request, path_segment

if TYPE_CHECKING:
    from kubekit.kube.list_pages import Page, UndecodedEvent, WatchEvent

JSON = dict[str, Any]
K = TypeVar("K", bound=Object)
Query = tuple[tuple[str, str], ...]
Propagation = Literal["Foreground", "Background", "Orphan"]

APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_JSON = "application/json"


class Selectors(TypedDict, total=False):
    """The objects of a list or watch, as the API server selects them."""

    label_selector: str
    field_selector: str


class Selection(Selectors, total=False):
    """The objects of a list or watch; `resource` replaces the kind's own, whose metadata is read with kind `Object`."""

    resource: Resource | None


class WriteOptions(TypedDict, total=False):
    """The options of a write, as the API server knows them."""

    dry_run: bool
    field_validation: str
    field_manager: str


# Requests only the metadata; a server that does not support that sends the whole object.
_METADATA_OF = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Returns the path of a collection (`name` empty), an object or its subresource.

    A namespaced resource without a namespace is the collection over all namespaces. Raises ValueError for a name that
    is not a path segment.
    """
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced and namespace:
        root += f"/namespaces/{path_segment(namespace)}"
    elif resource.namespaced and name:
        raise ValueError(f"{resource} {name}: a namespace is needed to name one object")
    parts = (resource.plural, *((path_segment(name),) if name else ()), *((subresource,) if subresource else ()))
    return "/".join((root, *parts))


def get(kind: type[K], name: str, namespace: str = "") -> Call[K]:
    """Returns a call that reads one object as a wire type; its DecodeError names the object."""
    resource = resource_of(kind)

    def decode_object(data: bytes) -> K:
        try:
            return codec.decode(kind, data)
        except codec.DecodeError as error:
            raise codec.DecodeError(f"{resource.kind} {codec.identify_undecodable(data, error)}") from error

    return Call(_get_request(_object_path(resource, name, namespace), _accept_header(kind)), decode_object)


def get_raw(resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Call[JSON]:
    """Returns a call that reads one object (or its `status` or `scale`) as a dict."""
    return Call(_get_request(_object_path(resource, name, namespace, subresource), _JSON), _decode_dict)


def get_path(path: str, query: Query = ()) -> Call[bytes]:
    """Returns a call that reads any path of the server as bytes: `/version`, `/openapi/v2`, `/apis`."""
    return Call(_get_request(path, _JSON, query), lambda data: data)


def server_version(path: str = "/version") -> Call[str]:
    """Returns a call that reads a server's version, such as v1.34.2+k3s1; empty if the answer lacks it."""
    return Call(_get_request(path, _JSON), lambda data: str(codec.decode(dict, data).get("gitVersion") or ""))


def list_page(
    kind: type[K],
    namespace: str = "",
    *,
    limit: int = 500,
    continue_: str = "",
    resource_version: str = "",
    **selection: Unpack[Selection],
) -> Call[Page[K]]:
    """Returns a call that reads one page of a list; `limit` 0 requests everything at once."""
    from kubekit.kube.list_pages import page_reader

    path = path_of(selection.get("resource") or resource_of(kind), namespace)
    query = _list_query(selection, limit, continue_, resource_version)
    return Call(_get_request(path, _accept_header(kind, "List"), query), page_reader(kind))


def list_raw(
    resource: Resource,
    namespace: str = "",
    *,
    limit: int = 500,
    continue_: str = "",
    resource_version: str = "",
    **selectors: Unpack[Selectors],
) -> Call[Page[JSON]]:
    """Returns a call that reads one page of a list as dicts, each with apiVersion and kind."""
    from kubekit.kube.list_pages import raw_page

    query = _list_query(selectors, limit, continue_, resource_version)
    return Call(_get_request(path_of(resource, namespace), _JSON, query), lambda data: raw_page(data, resource))


def watch(
    kind: type[K],
    namespace: str = "",
    *,
    resource_version: str,
    timeout_seconds: int = 300,
    **selection: Unpack[Selection],
) -> Call[WatchEvent[K] | UndecodedEvent]:
    """Returns a call that watches changes after `resource_version`, with bookmarks, for `timeout_seconds`.

    The call's `decode` reads one line. An ERROR line raises its ApiError. A change of an object that cannot be decoded
    is an event too.
    """
    from kubekit.kube.list_pages import watch_reader

    query = (
        ("watch", "true"),
        # https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", resource_version),
        ("timeoutSeconds", str(timeout_seconds)),
        *_selectors(selection),
    )
    path = path_of(selection.get("resource") or resource_of(kind), namespace)
    request = _get_request(path, _accept_header(kind), query)
    return Call(request, watch_reader(kind, request))


def create(
    resource: Resource, obj: JSON, *, subresource: str = "", name: str = "", **options: Unpack[WriteOptions]
) -> Call[JSON]:
    """Returns a call that creates `obj` in its metadata.namespace, or posts it to `subresource` of `name`."""
    path = path_of(resource, _metadata_field(obj, "namespace"), name, subresource)
    return _write_call("POST", path, obj, _write_query(**options))


def replace(resource: Resource, obj: JSON, *, subresource: str = "", **options: Unpack[WriteOptions]) -> Call[JSON]:
    """Returns a call that replaces an object by `obj`, whose resourceVersion, if set, must be the current one."""
    return _write_call("PUT", _path_of_object(resource, obj, subresource), obj, _write_query(**options))


def apply(
    resource: Resource,
    obj: JSON,
    *,
    field_manager: str,
    force: bool = False,
    dry_run: bool = False,
    field_validation: str = "",
    subresource: str = "",
) -> Call[JSON]:
    """Returns a call for server-side apply of the fields in `obj`, which `field_manager` owns afterwards.

    A field of another manager is a Conflict unless `force`. The body is JSON, which is valid YAML.
    """
    # Server-side apply requires apiVersion and kind in the body.
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    forced = _set_parameters(force="true" if force else "")
    options = _write_query(dry_run=dry_run, field_validation=field_validation)
    query = (("fieldManager", field_manager), *forced, *options)
    return _write_call("PATCH", _path_of_object(resource, obj, subresource), body, query, content_type=APPLY)


def merge_patch(
    resource: Resource,
    name: str,
    patch: JSON,
    namespace: str = "",
    *,
    subresource: str = "",
    **options: Unpack[WriteOptions],
) -> Call[JSON]:
    """Returns a call for a JSON merge patch (RFC 7386): null removes a field, lists are replaced as a whole."""
    path = _object_path(resource, name, namespace, subresource)
    return _write_call("PATCH", path, patch, _write_query(**options), content_type=MERGE_PATCH)


def json_patch(
    resource: Resource,
    name: str,
    patch: Sequence[Mapping[str, Any]],
    namespace: str = "",
    *,
    subresource: str = "",
    **options: Unpack[WriteOptions],
) -> Call[JSON]:
    """Returns a call for a JSON patch (RFC 6902): its operations are applied in order, all or none."""
    path = _object_path(resource, name, namespace, subresource)
    return _write_call("PATCH", path, list(patch), _write_query(**options), content_type=JSON_PATCH)


def delete(
    resource: Resource,
    name: str,
    namespace: str = "",
    *,
    uid: str = "",
    resource_version: str = "",
    propagation: Propagation = "Background",
    grace_period_s: int | None = None,
    dry_run: bool = False,
) -> Call[JSON]:
    """Returns a call that deletes an object; with another `uid` or `resource_version` it raises Conflict."""
    expected = dict(_set_parameters(uid=uid, resourceVersion=resource_version))
    options: JSON = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    options |= {"preconditions": expected} if expected else {}
    options |= {"gracePeriodSeconds": grace_period_s} if grace_period_s is not None else {}
    options |= {"dryRun": ["All"]} if dry_run else {}
    return _write_call("DELETE", _object_path(resource, name, namespace), options)


def with_accept_for(kind: type[Object], headers: Query) -> Query:
    """Returns `headers` with an Accept that requests as much of an object as `kind` holds."""
    return (("Accept", _accept_header(kind)), *(pair for pair in headers if pair[0] != "Accept"))


def _object_path(resource: Resource, name: str, namespace: str, subresource: str = "") -> str:
    path_segment(name)  # an empty name would give the path of the whole collection
    return path_of(resource, namespace, name, subresource)


def _metadata_field(obj: JSON, field: str) -> str:
    return str(obj.get("metadata", {}).get(field, ""))


def _path_of_object(resource: Resource, obj: JSON, subresource: str) -> str:
    return _object_path(resource, _metadata_field(obj, "name"), _metadata_field(obj, "namespace"), subresource)


def _accept_header(kind: type[Object], list_: str = "") -> str:
    return _METADATA_OF.format(list=list_) if kind is Object or kind.metadata_alone else _JSON


def _get_request(path: str, accept: str, query: Query = ()) -> Request:
    return Request(method="GET", path=path, query=query, headers=(("Accept", accept),))


def _write_call(method: str, path: str, body: Any, query: Query = (), *, content_type: str = _JSON) -> Call[JSON]:
    headers = (("Accept", _JSON), ("Content-Type", content_type))
    request = Request(method=method, path=path, query=query, headers=headers, body=codec.encode(body))
    return Call(request, _decode_dict)


def _set_parameters(**parameters: str) -> Query:
    """Returns the parameters that are not empty."""
    return tuple((key, value) for key, value in parameters.items() if value)


def _selectors(selection: Selectors) -> Query:
    return _set_parameters(
        labelSelector=selection.get("label_selector", ""), fieldSelector=selection.get("field_selector", "")
    )


def _list_query(selection: Selectors, limit: int, continue_: str, resource_version: str) -> Query:
    # A continue token includes a resourceVersion; the API server rejects both together.
    version = "" if continue_ else resource_version
    page = _set_parameters(limit=str(limit) if limit else "", resourceVersion=version, **{"continue": continue_})
    return (*_selectors(selection), *page)


def _write_query(*, dry_run: bool = False, field_validation: str = "", field_manager: str = "") -> Query:
    return _set_parameters(
        dryRun="All" if dry_run else "", fieldValidation=field_validation, fieldManager=field_manager
    )


def _decode_dict(data: bytes) -> JSON:
    return codec.decode(dict[str, Any], data)


def group_version(api_version: str) -> tuple[str, str]:
    """Returns the group (empty for core) and the version of an `apiVersion`."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", group)


def list_kinds(api_version: str) -> Call[tuple[Resource, ...]]:
    """Returns a call that reads the kinds of `api_version`, or raises NotFound. Subresources are left out."""
    group, version = group_version(api_version)
    path = f"/apis/{api_version}" if group else f"/api/{version}"

    def decode_resources(data: bytes) -> tuple[Resource, ...]:
        listed = codec.decode(dict[str, Any], data).get("resources")
        return tuple(
            Resource(
                group=group,
                version=version,
                kind=str(item["kind"]),
                plural=str(item["name"]),
                namespaced=bool(item.get("namespaced")),
            )
            for item in (listed if isinstance(listed, list) else ())
            # Subresources are listed as `resource/subresource`.
            if isinstance(item, dict) and item.get("kind") and "/" not in str(item.get("name") or "/")
        )

    return Call(get_path(path).request, decode_resources)


def list_versions(group: str) -> Call[tuple[str, ...]]:
    """Returns a call that reads the apiVersions of a group other than core, in the server's order.

    NotFound means that the server does not know the group, a DecodeError that its answer lists no versions.
    """
    return Call(
        get_path(f"/apis/{group}").request,
        lambda data: tuple(version.group_version for version in codec.decode(_Group, data).versions),
    )


def list_group_versions() -> Call[frozenset[str]]:
    """Returns a call that reads the apiVersions of all groups but core, those of API servers that are down included.

    Source: kube-aggregator, handler_apis.go, which lists what is registered, whether it is available or not.
    """
    return Call(
        get_path("/apis").request,
        lambda data: frozenset(
            version.group_version for group in codec.decode(_Groups, data).groups for version in group.versions
        ),
    )


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    """An APIGroup; every field is required, since no versions would say that none of its kinds is served."""

    versions: tuple[_GroupVersion, ...]


class _Groups(msgspec.Struct, frozen=True):
    """An APIGroupList."""

    groups: tuple[_Group, ...]
