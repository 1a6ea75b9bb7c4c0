"""The CustomResourceDefinitions that the sandbox's releases carry, as files."""

from __future__ import annotations

from pathlib import Path


def files() -> list[Path]:
    """Returns every file, sorted by name."""
    return sorted(Path(__file__).parent.glob("*.crd.yaml"))


def definition_files(*, generally_available: bool) -> list[Path]:
    """Returns the files of a release: one ClusterVersion if the preflight is generally available, else a variant for
    each feature set.
    """
    variants = "clusterversions-"
    return [
        file
        for file in files()
        if "clusterversions" not in file.name or (variants not in file.name) == generally_available
    ]
