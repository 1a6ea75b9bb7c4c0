"""Tasks of a release out of file names, for tables."""

from __future__ import annotations

from typing import Any

from runup.applying.decide.task import Task, tasks_of
from runup.release.decide.manifest import Identity, Manifest


def task(file: str, kind: str = "ConfigMap", group: str = "", name: str = "", **obj: Any) -> Task:
    """One task; its object is named after its file."""
    return tasks(manifest(file, kind, group, name, **obj))[0]


def manifest(file: str, kind: str = "ConfigMap", group: str = "", name: str = "", **obj: Any) -> Manifest:
    """A manifest; `obj` are further fields of its object."""
    metadata = {"name": name or file, "namespace": "ns"} | obj.pop("metadata", {})
    version = f"{group}/v1" if group else "v1"
    whole = {"apiVersion": version, "kind": kind, "metadata": metadata, **obj}
    return Manifest.of(
        f"release-manifests/{file}", Identity(group, kind, metadata["namespace"], metadata["name"]), whole
    )


def tasks(*manifests: Manifest) -> tuple[Task, ...]:
    """The tasks of these manifests."""
    return tasks_of(manifests)
