"""Reads the tables of what Kubernetes removes from the files in `data`: each has its source, date and range.

A table covers the minor versions from `first` to `last` and has a row for each, even if that version removes nothing.
It does not know what a later version removes, and `Table.knows` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kubekit.lang import yaml as kyaml

DATA = resources.files(__package__) / "data"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table by minor version of Kubernetes 1; `source` and `date` say where they come from."""

    source: str
    date: str
    first: int
    last: int
    removed: Mapping[int, Any]

    def between(self, source: int, target: int) -> Iterator[tuple[int, Any]]:
        """Returns the (minor, row) pairs of the minor versions above `source` and up to `target`."""
        return ((minor, row) for minor, row in self.removed.items() if source < minor <= target)

    def knows(self, target: int) -> bool:
        """Returns whether the table reaches the minor version `target`."""
        return target <= self.last


@cache
def table(name: str) -> Table:
    """Returns the table in `data/NAME.yaml`."""
    content = document(name)
    # Keys are such as "1.16"; tables are of Kubernetes 1 alone.
    removed = {int(str(minor).partition(".")[2]): row for minor, row in content["removed"].items()}
    return Table(
        content["source"], str(content["date"]), content["first"], content["last"], dict(sorted(removed.items()))
    )


@cache
def document(name: str) -> dict[str, Any]:
    """Returns the whole content of `data/NAME.yaml`."""
    content = kyaml.load((DATA / f"{name}.yaml").read_bytes(), name=f"{name}.yaml")
    assert isinstance(content, dict)
    return content


@cache
def removed_versions(source: int, target: int) -> Mapping[tuple[str, str, str], int]:
    """Returns the (group, version, kind) triples removed between two minor versions of Kubernetes, and by which."""
    rows = table("removed-apis").between(source, target)
    return {
        (entry["group"], entry["version"], kind): minor
        for minor, row in rows
        for entry in row
        for kind in entry["kinds"]
    }
