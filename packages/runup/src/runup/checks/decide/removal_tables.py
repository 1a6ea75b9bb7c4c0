"""Reads the tables of what Kubernetes removes from the files in `data`: each has its source, date and range.

A table covers the minor versions from `first` to `last` and has a row for each, even if that version removes nothing.
It does not know what a later version removes, and `Table.knows` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import msgspec

from kubekit.api.scheme import guess_plural
from kubekit.lang import yaml as kyaml

DATA = resources.files(__package__) / "data"


class Life(msgspec.Struct, frozen=True):
    """The life of a built-in API version in minor versions of Kubernetes 1; `replacement` is a version, and a kind if
    that is another (`apps/v1`, `policy/v1 Eviction`).

    None and an empty replacement mean that the Kubernetes documentation names none.
    """

    introduced: int | None = None
    deprecated: int | None = None
    removed: int | None = None
    replacement: str = ""


class AddonRemoval(msgspec.Struct, frozen=True):
    """The end of a version that an add-on's definitions had: from which version of the add-on on, and what to write."""

    addon: str
    removed: str
    replacement: str
    source: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table by minor version of Kubernetes 1; `source` and `date` say where they come from."""

    source: str
    date: str
    first: int
    last: int
    removed: Mapping[int, Any]
    # What the newest version or a prerelease says of later ones, which may change; not every minor version has a row.
    planned: Mapping[int, Any]
    # What a minor version is the first to have, if the table says so; planned versions are included.
    added: Mapping[int, Any]
    # What the version before the first row has.
    base: Any = ()

    def between(self, source: int, target: int) -> Iterator[tuple[int, Any]]:
        """Returns the (minor, row) pairs of the minor versions above `source` and up to `target`."""
        return ((minor, row) for minor, row in self.removed.items() if source < minor <= target)

    def until(self, target: int) -> Iterator[tuple[int, Any]]:
        """Returns the (minor, row) pairs up to `target`, planned ones included."""
        return ((minor, row) for rows in (self.removed, self.planned) for minor, row in rows.items() if minor <= target)

    def when(self, minor: int) -> str:
        """Returns `Kubernetes 1.37`, and that it is planned if the table does not reach that version."""
        return f"Kubernetes 1.{minor}{'' if self.knows(minor) else ' (planned)'}"

    def knows(self, target: int) -> bool:
        """Returns whether the table reaches the minor version `target`."""
        return target <= self.last


@cache
def table(name: str) -> Table:
    """Returns the table in `data/NAME.yaml`."""
    content = document(name)
    removed, planned = _by_minor(content["removed"]), _by_minor(content.get("planned") or {})
    added = {**(content.get("added") or {}), **(content.get("plannedAdded") or {})}
    return Table(
        source=content["source"],
        date=str(content["date"]),
        first=content["first"],
        last=content["last"],
        removed=removed,
        planned=planned,
        added=_by_minor(added),
        base=content.get("base") or (),
    )


def _by_minor(rows: Mapping[str, Any]) -> dict[int, Any]:
    """Returns the rows by minor version. Their keys are such as "1.16"; tables are of Kubernetes 1 alone."""
    return dict(sorted((int(str(minor).partition(".")[2]), row) for minor, row in rows.items()))


@cache
def document(name: str) -> dict[str, Any]:
    """Returns the whole content of `data/NAME.yaml`."""
    content = kyaml.load((DATA / f"{name}.yaml").read_bytes(), name=f"{name}.yaml")
    assert isinstance(content, dict)
    return content


@cache
def removed_versions(source: int, target: int) -> Mapping[tuple[str, str, str], int]:
    """Returns the (group, version, kind) triples removed between two minor versions of Kubernetes, and by which.

    Removals that are planned for versions which the table does not reach are included.
    """
    return {triple: minor for triple, minor in _removal_minors().items() if source < minor <= target}


def removal_of(group: str, version: str, kind: str) -> int | None:
    """Returns the minor version that no longer serves a built-in kind in that version, or None if none is known."""
    return _removal_minors().get((group, version, kind))


def life_of(group: str, version: str, kind: str) -> Life:
    """Returns the life of a built-in kind in that version, with empty fields if the table does not have it."""
    return _api_lives().get((group, version, kind), Life())


def lives() -> Mapping[tuple[str, str, str], Life]:
    """Returns the life of each built-in API (group, version, kind) that the table has."""
    return _api_lives()


@cache
def built_in_types() -> frozenset[tuple[str, str, str]]:
    """Returns each built-in (group, version, kind) that a minor version of the table has."""
    stable = {
        (row["group"], row["version"], kind) for row in document("api-lifecycle")["stable"] for kind in row["kinds"]
    }
    return frozenset(stable | {*_api_lives()} | {*_removal_minors()})


def versions_of(group: str, kind: str) -> dict[str, Life]:
    """Returns the life of each version of a built-in kind that the table has; it has none of the oldest versions."""
    return {
        version: life for (of, version, kind_name), life in _api_lives().items() if (of, kind_name) == (group, kind)
    }


@cache
def addon_groups() -> frozenset[str]:
    """Returns the API groups of the add-ons that the table of removals has."""
    return frozenset(row["group"] for row in document("removed-addon-apis")["removed"])


# Bounded: what is asked for comes from the cluster.
@lru_cache(4096)
def addon_removal(group: str, version: str, kind: str) -> AddonRemoval | None:
    """Returns when the add-on that defines the kind stopped to serve that version, or None if it is not known to."""
    rows = [
        row
        for row in document("removed-addon-apis")["removed"]
        if row["group"] == group and version in row["versions"] and kind in row.get("kinds", [kind])
    ]
    # A row about the very kind comes before one about all kinds of the group.
    for row in sorted(rows, key=lambda row: "kinds" not in row):
        return AddonRemoval(row["addon"], str(row["removed"]), row["replacement"], row["source"])
    return None


@cache
def config_groups() -> frozenset[str]:
    """Returns the groups of configuration files whose versions are known."""
    content = document("removed-config-apis")
    return frozenset({row["group"] for row in content["removed"]} | set(content["known"]))


def config_removal(group: str, version: str) -> tuple[int, str] | None:
    """Returns the minor version that no longer reads configuration in that version, and the version to write."""
    rows = document("removed-config-apis")["removed"]
    return next(
        ((row["removed"], row["replacement"]) for row in rows if (row["group"], row["version"]) == (group, version)),
        None,
    )


@lru_cache(4096)
def removed_resource(resource: str, version: str, group: str) -> int | None:
    """Returns the minor version that no longer serves a resource in that version, or None if the table has none."""
    for (its_group, its_version, kind), minor in _removal_minors().items():
        if (its_group, its_version, guess_plural(kind)) == (group, version, resource):
            return minor
    return None


@cache
def _removal_minors() -> Mapping[tuple[str, str, str], int]:
    """Returns the minor version that no longer serves each API (group, version, kind), planned ones included."""
    rows = table("removed-apis")
    return {
        (entry["group"], entry["version"], kind): minor
        for minor, row in (*rows.removed.items(), *rows.planned.items())
        for entry in row
        for kind in entry["kinds"]
    }


@cache
def _api_lives() -> Mapping[tuple[str, str, str], Life]:
    """Returns for each API (group, version, kind) when it was introduced, deprecated and removed."""
    return {
        (row["group"], row["version"], kind): Life(
            row.get("introduced"),
            row.get("deprecated"),
            row.get("removed"),
            f"{row.get('replacement', '')} {row.get('as', '')}".strip(),
        )
        for row in document("api-lifecycle")["lives"]
        for kind in row["kinds"]
    }
