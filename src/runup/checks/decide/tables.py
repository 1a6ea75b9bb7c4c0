"""The tables of what Kubernetes takes away, read from the files in `data`: each with its source, date and range.

A table speaks of the minor versions from `first` to `last` and has a row for each, also for those that remove nothing.
What a later version removes it does not know, and whoever asks is told so.
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
    """Rows by minor version of Kubernetes 1; `source` and `date` say where they are from."""

    source: str
    date: str
    first: int
    last: int
    removed: Mapping[int, Any]

    def between(self, source: int, target: int) -> Iterator[tuple[int, Any]]:
        """What the minor versions above `source` and up to `target` remove, as (minor, row)."""
        return ((minor, row) for minor, row in self.removed.items() if source < minor <= target)

    def knows(self, target: int) -> bool:
        """Whether the table goes as far as `target`."""
        return target <= self.last


@cache
def table(name: str) -> Table:
    """The table in `data/NAME.yaml`."""
    read = document(name)
    removed = {int(str(minor).partition(".")[2]): row for minor, row in read["removed"].items()}
    return Table(read["source"], str(read["date"]), read["first"], read["last"], dict(sorted(removed.items())))


@cache
def document(name: str) -> dict[str, Any]:
    """All of `data/NAME.yaml`."""
    read = kyaml.load((DATA / f"{name}.yaml").read_bytes(), name=f"{name}.yaml")
    assert isinstance(read, dict)
    return read


@cache
def removed_versions(source: int, target: int) -> Mapping[tuple[str, str, str], int]:
    """Which (group, version, kind) are gone between two minor versions of Kubernetes, and since which."""
    rows = table("removed-apis").between(source, target)
    return {
        (entry["group"], entry["version"], kind): minor
        for minor, row in rows
        for entry in row
        for kind in entry["kinds"]
    }
