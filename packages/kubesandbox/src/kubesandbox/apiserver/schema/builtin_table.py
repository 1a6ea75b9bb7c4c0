"""The table of built-in types from `builtin_types.txt`, which tools/generate_builtin_schemas.py makes from Kubernetes.

A `[package group]` line begins a package. Each line below it is a type and its fields, in the order of the Go struct.
`^` after the type's name: server-side apply treats it as one value. A field is

    name[!]:TYPE[*|*null|-][^|~|@key+key][<strategy:key>][=default]

`!`: required. TYPE: one of s (text; s/v1.PullPolicy when Go gives the type a name), i32, i64, n, b, bytes, another
type, or `[]` or `{}` before any of these. For an absent field Go writes the zero value, except with `*` (nothing),
`*null` (null) and `-` (nothing, and a given zero is omitted too). `^`: an atomic list or map, `~`: a set, `@`: a
list-map with its keys. `<>`: the strategy of a strategic merge patch. Every property of a field has this one source.
The types of other versions of Kubernetes than the default one are this table with differences (`kubernetes_version`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kubesandbox.apiserver import kubernetes_version, version_tables

_FILE = Path(__file__).with_name("builtin_types.txt")
_FIELD = re.compile(
    r"(?P<name>[^!:]+)(?P<required>!?):(?P<type>[^*^~@<=-]*(?:-[^*^~@<=-]+)*?)(?P<absent>\*null|\*|-|)"
    r"(?:(?P<atomic>\^)|(?P<set>~)|@(?P<keys>[\w+]+))?(?:<(?P<strategy>[\w,]+)(?::(?P<merge>\w+))?>)?(?:=(?P<default>.*))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a type in the table; `type` is a word of the table with full type names."""

    name: str
    type: str
    required: bool
    pointer: bool  # absent and zero are two things
    written: bool  # an absent one is written as zero (a pointer as null)
    merge: str  # atomic, set, map or nothing
    keys: tuple[str, ...]
    strategy: str
    merge_key: str
    default: Any


@dataclass(frozen=True, slots=True)
class Type:
    """A struct of the table."""

    name: str  # in full: io.k8s.api.core.v1.Pod
    atomic: bool
    fields: tuple[Field, ...]

    @property
    def package(self) -> str:
        """The type's package, for example `io.k8s.api.core.v1`."""
        return self.name.rpartition(".")[0]


@cache
def _table_lines() -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Returns the table's lines by full type name, and the packages by (group, version)."""
    lines: dict[str, str] = {}
    packages: dict[tuple[str, str], str] = {}
    tables = kubernetes_version.table("types", version_tables.parse_types(_FILE.read_bytes()))
    for header, types in tables.items():
        package, group = header.split()
        packages["" if group == "core" else group, package.rpartition(".")[2]] = package
        lines |= {f"{package}.{name}": line for name, line in types.items()}
    return lines, packages


def type_names() -> list[str]:
    """Returns the full names of all types."""
    return list(_table_lines()[0])


def full_name(group: str, version: str, kind: str) -> str:
    """Returns the full name of a kind's type, or "" if the table lacks it."""
    lines, packages = _table_lines()
    name = f"{packages.get((group, version), '')}.{kind}"
    return name if name in lines else ""


@cache
def find_type(name: str) -> Type | None:
    """Returns a type by its full name, or None for one that is not a struct (a quantity, a time, any JSON)."""
    line = _table_lines()[0].get(name)
    if line is None:
        return None
    head, *words = line.split(" ")
    package, fields = name.rpartition(".")[0], []
    for word in words:
        match = _FIELD.fullmatch(word)
        assert match is not None, word
        field = Field(
            name=match["name"],
            type=_qualify_type(package, match["type"]),
            required=bool(match["required"]),
            pointer=match["absent"].startswith("*"),
            written=match["absent"] in {"", "*null"},
            merge="atomic" if match["atomic"] else "set" if match["set"] else "map" if match["keys"] else "",
            keys=tuple(match["keys"].split("+")) if match["keys"] else (),
            strategy=match["strategy"] or "",
            merge_key=match["merge"] or "",
            default=json.loads(match["default"]) if match["default"] else None,
        )
        fields.append(field)
    return Type(name, head.endswith("^"), tuple(fields))


_SCALARS = frozenset({"s", "i32", "i64", "n", "b", "bytes"})


def _qualify_type(package: str, word: str) -> str:
    if word[:2] in {"[]", "{}"}:
        return word[:2] + _qualify_type(package, word[2:])
    bare = word.partition("/")[0]
    return word if bare in _SCALARS or word.startswith("io.k8s.") else f"{package}.{word}"
