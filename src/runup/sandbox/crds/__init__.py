"""The CustomResourceDefinitions that the sandbox's releases carry, as files."""

from __future__ import annotations

from pathlib import Path


def files() -> list[Path]:
    """Every file, in the order of their names."""
    return sorted(Path(__file__).parent.glob("*.crd.yaml"))


def of_release(*, generally_available: bool) -> list[Path]:
    """What a release carries: one ClusterVersion for all where the preflight is generally available, else one variant
    a feature set.
    """
    variants = "clusterversions-"
    return [
        file
        for file in files()
        if "clusterversions" not in file.name or (variants not in file.name) == generally_available
    ]
