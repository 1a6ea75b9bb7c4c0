"""Compares pull specs with the scopes of the cluster's image configuration: registries, paths and wildcards."""

from __future__ import annotations

from runup.api.config_v1 import ClusterVersion
from runup.checks.writing import Snapshot


def repository_of(image: str) -> str:
    """Returns a pull spec without its digest and its tag."""
    name = image.partition("@")[0]
    slash = name.rfind("/")
    return name[:slash] + name[slash:].partition(":")[0]


def running_repository(snapshot: Snapshot) -> str:
    """Returns the repository of the release that the cluster runs. Raises Unreadable."""
    version = snapshot.get(ClusterVersion, "version")
    return repository_of(version.status.desired.image) if version else ""


def covers(entry: str, repository: str) -> bool:
    """Returns whether an entry is the repository, the beginning of its path, or a wildcard for its registry."""
    if entry.startswith("*."):
        return repository.partition("/")[0].partition(":")[0].endswith(entry[1:])
    return repository == entry or repository.startswith(f"{entry}/")
