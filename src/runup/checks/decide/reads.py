"""What a check reads, as a type that keeps nothing else.

A list of 50,000 pods takes gigabytes as dicts. `shape` makes, of the fields that a check names, a struct type that the
decoder fills and that leaves the rest of the text undecoded; `plain` gives the dict that CEL wants, one object at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import msgspec

from kubekit.api.meta_v1 import Object, Wire
from kubekit.api.scheme import Resource
from runup.api.kinds import types

# Nothing of it was in the text: CEL's `has()` must say so.
UNSET = msgspec.UNSET


class Read(Resource, msgspec.Struct, frozen=True):
    """Some fields of a resource: another key in a snapshot than the resource itself, which holds wire types.

    `fields` are dotted paths from the object's top such as `spec.nodeName`; metadata is always there. `namespace`
    limits the list to one namespace.
    """

    namespace: str = ""
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return super().__str__()


class Slim(Resource, msgspec.Struct, frozen=True):
    """A resource as `type`, which knows less of it than the scheme's own, and of that only what `keep` keeps.

    Another key in a snapshot than the resource itself. `namespace` limits the list to one namespace, `label_selector`
    to some of its objects.
    """

    type: type[Object] = Object
    keep: Callable[[Any], Any] = lambda obj: obj
    namespace: str = ""
    label_selector: str = ""

    def __str__(self) -> str:
        return super().__str__()


class Lookup(Slim, msgspec.Struct, frozen=True):
    """A resource of which only those objects are read that others call for, by name: nobody can watch it.

    `of` is the read whose objects call for some, `names` says which one each does, empty for none.
    """

    of: Resource | None = None
    names: Callable[[Any], tuple[str, str]] = lambda obj: (obj.metadata.namespace, obj.metadata.name)

    def __str__(self) -> str:
        return super().__str__()


# The first type of a resource is the slim one; the sandbox's, which keep whole objects, come after.
_KINDS = {resource: kind for kind, resource in reversed(types().items())}


def known(resource: Resource) -> bool:
    """Whether there is a type for it."""
    return type(resource) is not Resource or resource in _KINDS


def type_of(resource: Resource) -> type[Object]:
    """The type as which objects of `resource` are decoded; raises KeyError where it is not `known`."""
    if isinstance(resource, Slim):
        return resource.type
    return shape(resource.fields) if isinstance(resource, Read) else _KINDS[resource]


def namespace_of(resource: Resource) -> str:
    """The only namespace that is listed; empty for all."""
    return resource.namespace if isinstance(resource, Read | Slim) else ""


@cache
def shape(fields: tuple[str, ...]) -> type[Object]:
    """The type of an object of which only `fields` are kept."""
    tree: dict[str, Any] = {}
    for path in sorted(fields):
        _plant(tree, path.split("."))
    tree.pop("metadata", None)
    return cast("type[Object]", _struct("Shape", tree, Object))


def plain(obj: Object) -> dict[str, Any]:
    """`obj` as the dict that CEL reads; what the object did not have is not there."""
    # By way of JSON: CEL takes no tuples, and metadata has some (owners, finalizers).
    found = cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(obj)))
    found.setdefault("metadata", {})
    return found


def _plant(tree: dict[str, Any], path: list[str]) -> None:
    """Add a path; a longer path below a shorter one changes nothing, the shorter one keeps all below it."""
    head, rest = path[0], path[1:]
    if not rest:
        tree[head] = None
    elif tree.get(head, {}) is not None:
        _plant(tree.setdefault(head, {}), rest)


def _struct(name: str, tree: dict[str, Any], base: type[Wire]) -> type[Wire]:
    members: Iterable[tuple[str, Any, Any]] = [
        (
            f"field_{number}",
            Any if below is None else _struct(f"{name}_{number}", below, Wire) | msgspec.UnsetType | None,
            msgspec.field(default=UNSET, name=field),
        )
        for number, (field, below) in enumerate(tree.items())
    ]
    return cast("type[Wire]", msgspec.defstruct(name, members, bases=(base,), frozen=True, kw_only=True))
