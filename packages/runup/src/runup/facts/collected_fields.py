"""Decides which fields of an object a collected dump has, and whether they suffice for a read. Pure.

Arguments, variables, parameters of volumes and annotations of other tools hold passwords, and dumps are sent around. So
a dump has the fields that hold no secrets (`rules/data/shown-fields.txt`), and those that runup reads, each named with
its reason in `rules/data/collected-fields.txt`. The record of the dump names the fields of each kind: a check that
reads another one is Unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, reduce
from typing import Any

from msgspec import inspect

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from runup.checks.decide.reads import Read, has_type, type_of
from runup.rules.platform_namespaces import is_system
from runup.rules.shown_fields import ALL, EVERY_KIND, Selection, merged, parsed, read_table, selection_of

JSON = dict[str, Any]
NOT_COLLECTED = "(not collected)"
WHOLE_OBJECTS = "--whole-objects"
_OTHER_KEYS, _FLAGS, _TYPE = "?", "=flags", "=type"
_VALUED_FLAGS = frozenset({"feature-gates", "enable-admission-plugins", "disable-admission-plugins"})
_WHILE_A_POLICY_DENIES = "while-a-policy-denies"
# The user and password of an address (RFC 3986, 3.2.1), and a key among certificates (RFC 7468).
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
MOST_NAMED = 3


def _kind_of(resource: Resource) -> str:
    """Returns the name of the resource's kind in the tables."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def _fields_of(kind: str) -> dict[str, Any]:
    """Returns the fields that every dump has of the objects of a kind."""
    table = read_table("collected-fields")
    return reduce(merged, (table[EVERY_KIND], table.get(kind, {})), selection_of(kind))


def collected_fields(resource: Resource, others: Iterable[Resource] = ()) -> dict[str, Any]:
    """Returns the fields that a dump has of a kind; `others` are reads of the kind by checks that are not built in."""
    return reduce(merged, map(fields_read, others), _fields_of(_kind_of(resource)))


def reducer(resource: Resource, fields: Mapping[str, Any], *, policies_deny: bool) -> Callable[[JSON], JSON]:
    """Returns the function that reduces an object to `fields`, and to those that its name or namespace adds.

    `policies_deny`: an admission policy is bound that denies requests.
    """
    table, kind = read_table("collected-fields"), _kind_of(resource)

    @cache
    def fields_of(name: str, *, is_platform: bool) -> dict[str, Any]:
        more = table.get(f"{_WHILE_A_POLICY_DENIES}@{kind}", {}) if policies_deny and is_platform else {}
        return reduce(merged, (table.get(name, {}), more), dict(fields))

    def reduced(obj: JSON) -> JSON:
        metadata = obj.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name, namespace = f"{metadata.get('name')}@{kind}", str(metadata.get("namespace") or "")
        chosen = fields_of(name if name in table else "", is_platform=bool(namespace) and is_system(namespace))
        kept: JSON = _kept(obj, chosen)
        return kept

    return reduced


def _kept(value: Any, selection: Selection) -> Any:
    """Returns what a dump has of a value."""
    if isinstance(value, list):
        return list(_flags(value)) if selection == _FLAGS else [_kept(item, selection) for item in value]
    if isinstance(value, dict):
        if isinstance(selection, str):
            return {key: _kept(item, selection) for key, item in value.items()}
        fields = selection or {}
        keeps_keys = _OTHER_KEYS in fields or not fields
        return {
            key: _kept(item, fields[key] if key in fields else fields["*"])
            if key in fields or "*" in fields
            else _empty(item)
            for key, item in value.items()
            if keeps_keys or key in fields or "*" in fields
        }
    if isinstance(selection, Mapping):
        return _empty(value)  # a single value where the kind has fields
    if selection == _TYPE:
        return _type_of_manifest(value)
    return _PRIVATE_KEY.sub("", _USER_OF_URL.sub("", value)) if isinstance(value, str) else value


def _empty(value: Any) -> Any:
    """Returns a value of the same type, which takes the place of a value whose key is kept."""
    if value is None or isinstance(value, bool):
        return value
    return NOT_COLLECTED if isinstance(value, str) else type(value)()


def _type_of_manifest(text: object) -> str:
    """Returns a manifest in JSON with its type alone."""
    try:
        manifest = json.loads(str(text))
    except (ValueError, RecursionError):
        manifest = None
    fields = manifest if isinstance(manifest, dict) else {}
    return json.dumps({key: fields[key] for key in ("apiVersion", "kind") if isinstance(fields.get(key), str)})


def _flags(words: Iterable[object]) -> Iterator[str]:
    """Yields the names of the flags among arguments, and the values of feature gates and admission plug-ins."""
    has_value = False
    for word in words:
        name, equals, value = str(word).partition("=")
        if name.startswith("--"):
            is_valued = name[2:].replace("_", "-") in _VALUED_FLAGS
            yield f"{name}{equals}{value if is_valued else ''}"
            has_value = is_valued and not equals
        elif has_value:
            yield str(word)
            has_value = False


def as_text(fields: Mapping[str, Any]) -> str:
    """Returns fields in the form of the tables."""
    words = []
    for name, below in fields.items():
        words += [name, *([f"{{{as_text(below)}}}"] if isinstance(below, Mapping) else [below] if below else [])]
    return " ".join(words)


@lru_cache(maxsize=4096)
def why_insufficient(resource: Resource, recorded: str) -> str:
    """Returns why a dump with the recorded fields of a kind does not suffice for a read, or an empty string."""
    missing = fields_left_out(resource, parsed(recorded)) if has_type(resource) else []
    if not missing:
        return ""
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    fields = f"{', '.join(missing[:MOST_NAMED])}{more}"
    return f"the dump leaves out fields of {resource.name} ({fields}); collect it with `{WHOLE_OBJECTS}`"


def fields_left_out(resource: Resource, fields: Mapping[str, Any]) -> list[str]:
    """Returns the paths that a read of the resource needs and that `fields` leave out."""
    table = read_table("collected-fields")
    # The fields that a check names itself are all needed.
    unneeded = (
        {} if isinstance(resource, Read) else merged(table[f"-{EVERY_KIND}"], table.get(f"-{_kind_of(resource)}", {}))
    )
    of_metadata = set(_paths_left_out(_tree(inspect.type_info(Object)), fields, ""))
    paths = dict.fromkeys(_paths_left_out(fields_read(resource), fields, ""))
    return [path for path in paths if path not in unneeded and not (isinstance(resource, Read) and path in of_metadata)]


def _paths_left_out(wanted: Selection, fields: Selection, path: str) -> Iterator[str]:
    """Yields the paths of the wanted fields that `fields` do not have."""
    if fields == ALL:
        return
    if not isinstance(wanted, Mapping):
        # The API has a single value where the table has no fields below.
        if isinstance(fields, Mapping):
            yield path
        return
    has = fields if isinstance(fields, Mapping) else {}
    for name, below in wanted.items():
        below_path = f"{path}.{name}" if path else name
        if name in has or "*" in has:
            yield from _paths_left_out(below, has[name] if name in has else has["*"], below_path)
        else:
            yield below_path


def fields_read(resource: Resource) -> Mapping[str, Any]:
    """Returns the fields that the type of a read has."""
    return _fields_of_type(type_of(resource)) if has_type(resource) else {}


@cache
def _fields_of_type(kind: type[Object]) -> Mapping[str, Any]:
    fields = _tree(inspect.type_info(kind))
    assert isinstance(fields, Mapping)
    return fields


def _tree(kind: inspect.Type, above: tuple[type, ...] = ()) -> Selection:
    """Returns the fields of a type; what may be anything, and a type in itself, counts as everything below."""
    match kind:
        case inspect.StructType():
            if kind.cls in above:
                return ALL
            return {each.encode_name: _tree(each.type, (*above, kind.cls)) for each in kind.fields}
        case inspect.UnionType():
            trees = [tree for each in kind.types if (tree := _tree(each, above)) is not None]
            return ALL if ALL in trees else reduce(merged, trees) if trees else None  # type: ignore[arg-type]
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return _tree(kind.item_type, above)
        case inspect.DictType():
            return {"*": _tree(kind.value_type, above)}
        case inspect.AnyType() | inspect.RawType() | inspect.TupleType():
            return ALL
        case _:
            return None
