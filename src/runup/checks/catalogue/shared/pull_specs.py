"""Compares pull specs with the scopes of the cluster's image configuration: registries, paths and wildcards."""

from __future__ import annotations


def repository_of(image: str) -> str:
    """Returns a pull spec without its digest and its tag."""
    name = image.partition("@")[0]
    slash = name.rfind("/")
    return name[:slash] + name[slash:].partition(":")[0]


def covers(entry: str, repository: str) -> bool:
    """Returns whether an entry is the repository, the beginning of its path, or a wildcard for its registry."""
    if entry.startswith("*."):
        return repository.partition("/")[0].partition(":")[0].endswith(entry[1:])
    return repository == entry or repository.startswith(f"{entry}/")
