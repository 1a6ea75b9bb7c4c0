"""Drops the fields of an object whose feature gate is off, as kube-apiserver's registries do (`dropDisabledFields`).

A field that the former object has stays: it was stored while its gate was on, or by an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from kubesandbox.apiserver import kubernetes_version
from kubesandbox.apiserver.metadata import JSON
from kubesandbox.apiserver.schema import builtin_table
from kubesandbox.apiserver.served_kinds import Kind

# Names of members on the way to a field; "[]" is each item of a list, "{}" each value of a map.
_Path = tuple[str, ...]
# A source of a claim in another namespace is dropped whole: without its namespace it would be another source.
_OTHER_NAMESPACE = ("dataSourceRef", "namespace")


def drop_disabled(kind: Kind, new: JSON, old: JSON | None) -> None:
    """Removes the fields of a built-in kind whose gate is off, except those that `old` has somewhere."""
    for path in _paths(builtin_table.full_name(kind.group, kind.version, kind.kind)):
        if old is None or not any(path[-1] in holder for holder in _holders(old, path[:-1])):
            whole = path[-2:] == _OTHER_NAMESPACE
            for holder in _holders(new, path[:-2] if whole else path[:-1]):
                if not whole:
                    holder.pop(path[-1], None)
                elif (holder.get(path[-2]) or {}).get(path[-1]):
                    del holder[path[-2]]


def _holders(value: Any, path: _Path) -> Iterator[JSON]:
    """Yields the objects at a path."""
    if not path:
        if isinstance(value, dict):
            yield value
        return
    step, rest = path[0], path[1:]
    members: Iterable[Any] = ()
    if step == "[]":
        members = value if isinstance(value, list) else ()
    elif isinstance(value, dict):
        members = value.values() if step == "{}" else (value.get(step),)
    for member in members:
        yield from _holders(member, rest)


@cache
def _paths(name: str) -> tuple[_Path, ...]:
    """Returns the paths of all fields of a type that are dropped."""
    return tuple(_paths_below(name, kubernetes_version.fields_without_gate(), frozenset()))


def _paths_below(word: str, dropped: Mapping[str, frozenset[str]], above: frozenset[str]) -> Iterator[_Path]:
    if word[:2] in {"[]", "{}"}:
        yield from ((word[:2], *path) for path in _paths_below(word[2:], dropped, above))
        return
    struct = None if word in above else builtin_table.find_type(word)
    for field in struct.fields if struct else ():
        if field.name in dropped.get(word, ()):
            yield (field.name,)
        else:
            yield from ((field.name, *path) for path in _paths_below(field.type, dropped, above | {word}))
