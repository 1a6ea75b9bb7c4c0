"""Describes what a check reads, with types that keep nothing else.

A list of 50,000 pods takes gigabytes as dicts. `shape` builds a struct type from the fields that a check names; the
decoder fills these and leaves the rest of the text undecoded. `plain` converts one object at a time to the dict that
CEL needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import Condition, Object, ObjectMeta, Wire, shared_texts, with_shared_texts
from kubekit.api.scheme import Resource, resource_of
from runup.api.kinds import resources_by_type

# By value: conditions of many nodes became true in the same second, when they were made or updated together.
_shared_condition: Callable[[Condition], Condition] = lru_cache(4096)(with_shared_texts)
_shared_info: Callable[[NodeSystemInfo], NodeSystemInfo] = lru_cache(256)(lambda info: info)
_shared_quantities: Callable[[tuple[tuple[str, str], ...]], dict[str, str]] = lru_cache(1024)(dict)


def share_node(node: Node) -> Node:
    """Returns an equal node, whose parts are those of the nodes before it where they are equal."""
    metadata, status = node.metadata, node.status
    return replace(
        node,
        metadata=replace(metadata, labels=shared_texts(metadata.labels)),
        status=NodeStatus(
            conditions=tuple(_shared_condition(condition) for condition in status.conditions),
            node_info=_shared_info(status.node_info),
            allocatable=_shared_quantities(tuple(status.allocatable.items())),
        ),
    )


# Marks a field that was absent from the text, so that CEL's `has()` can say so.
UNSET = msgspec.UNSET


class Read(Resource, msgspec.Struct, frozen=True, kw_only=True):
    """A read of some fields of a resource. In a snapshot it is a separate key, apart from that of the whole resource.

    `fields` are dotted paths from the top of the object such as `spec.nodeName`; metadata is always kept. `namespace`
    limits the list to one namespace.
    """

    namespace: str = ""
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return super().__str__()


class Slim(Resource, msgspec.Struct, frozen=True, kw_only=True):
    """A resource decoded as `type`, which has fewer fields than the scheme's own, and reduced further by `keep`.

    In a snapshot it is a separate key, apart from that of the resource. `namespace` limits the list to one namespace,
    `label_selector` to some of its objects. With `changes`, which are minor versions of Kubernetes, it is read only for
    an update that crosses one of them.
    """

    type: type[Object] = Object
    keep: Callable[[Any], Any] = lambda obj: obj
    namespace: str = ""
    label_selector: str = ""
    changes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return super().__str__()


def crosses(resource: Resource, source: int, target: int) -> bool:
    """Returns whether an update between two minor versions of Kubernetes crosses a change that the read is for."""
    changes = resource.changes if isinstance(resource, Slim) else ()
    return not changes or any(min(source, target) < minor <= max(source, target) for minor in changes)


class Lookup(Slim, msgspec.Struct, frozen=True, kw_only=True):
    """A resource whose objects are read by name, and only those that other objects refer to. It cannot be watched.

    `of` is the read whose objects refer to them; `names` returns the namespace and name that each refers to, empty for
    none.
    """

    of: Resource | None = None
    names: Callable[[Any], tuple[str, str]] = lambda obj: (obj.metadata.namespace, obj.metadata.name)

    def __str__(self) -> str:
        return super().__str__()


# Reversed, so that the first type of a resource wins: it is the slim one, the sandbox's keep whole objects.
_KINDS = {resource: kind for kind, resource in reversed(resources_by_type().items())}
_NODES = resource_of(Node)


def has_type(resource: Resource) -> bool:
    """Returns whether runup has a type for the resource."""
    return type(resource) is not Resource or resource in _KINDS


def type_of(resource: Resource) -> type[Object]:
    """Returns the type as which objects of `resource` are decoded. Raises KeyError if it is not `known`."""
    if isinstance(resource, Slim):
        return resource.type
    return shape(resource.fields) if isinstance(resource, Read) else _KINDS[resource]


def kept_form(resource: Resource) -> Callable[[Any], Any] | None:
    """Returns the function that reduces a decoded object of `resource` to what is stored; None stores it as it is."""
    if isinstance(resource, Slim):
        return resource.keep
    return share_node if resource == _NODES else None


def namespace_of(resource: Resource) -> str:
    """Returns the only namespace that is listed, or an empty string for all."""
    return resource.namespace if isinstance(resource, Read | Slim) else ""


@cache
def shape(fields: tuple[str, ...]) -> type[Object]:
    """Returns the struct type of an object that keeps only `fields`."""
    tree: dict[str, Any] = {}
    for path in sorted(fields):
        _add_path(tree, path.split("."))
    tree.pop("metadata", None)
    return cast("type[Object]", _struct("Shape", tree, Object))


def slim_metadata(obj: Object, **kept: Any) -> ObjectMeta:
    """Returns the metadata by which a list of objects is kept and findings name them, and the fields in `kept`."""
    metadata = obj.metadata
    return ObjectMeta(
        name=metadata.name, namespace=metadata.namespace, resource_version=metadata.resource_version, **kept
    )


def as_dict(obj: Object) -> dict[str, Any]:
    """Returns `obj` as the dict that CEL reads; fields that the object did not have are absent."""
    # Through JSON, because CEL takes no tuples and metadata has some (owners, finalizers).
    decoded = cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(obj)))
    # Encoding omits default values, and expressions rely on metadata being there.
    decoded.setdefault("metadata", {})
    return decoded


def _add_path(tree: dict[str, Any], path: list[str]) -> None:
    """Adds a path to the tree.

    A path below one that is already there changes nothing: the shorter one keeps all below it.
    """
    head, remaining_path = path[0], path[1:]
    if not remaining_path:
        tree[head] = None
    elif tree.get(head, {}) is not None:
        _add_path(tree.setdefault(head, {}), remaining_path)


def _struct(name: str, tree: dict[str, Any], base: type[Wire]) -> type[Wire]:
    """Returns a struct type with a field for each key of the tree, nested as the tree is.

    A key whose value is None is kept whole. Fields are numbered, because a key need not be a Python identifier.
    """
    members: Iterable[tuple[str, Any, Any]] = [
        (
            f"field_{number}",
            Any if below is None else _struct(f"{name}_{number}", below, Wire) | msgspec.UnsetType | None,
            msgspec.field(default=UNSET, name=field),
        )
        for number, (field, below) in enumerate(tree.items())
    ]
    return cast("type[Wire]", msgspec.defstruct(name, members, bases=(base,), frozen=True, kw_only=True))
