"""The CustomResourceDefinitions that the sandbox's releases carry, as files."""

from __future__ import annotations

from pathlib import Path


def files() -> list[Path]:
    """Every file, in the order of their names."""
    return sorted(Path(__file__).parent.glob("*.crd.yaml"))


def of_release(major: int) -> list[Path]:
    """What a release of this major version carries.

    Up to 4 ClusterVersion has one variant a feature set; from 5 on the preflight is generally available, and there is
    one for all.
    """
    return [
        file
        for file in files()
        if "clusterversions" not in file.name or ("clusterversions-" in file.name) == (major < 5)
    ]
