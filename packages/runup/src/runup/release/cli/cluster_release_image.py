"""Finds the image of a cluster's own release in its ClusterVersion."""

from __future__ import annotations

from runup.api.config_v1 import ClusterVersion
from runup.cli.errors import CommandError


def release_image_of(version: ClusterVersion) -> str:
    """Returns the image of the release that the cluster runs or updates to; raises CommandError if there is none."""
    image = version.status.desired.image
    if not image:
        raise CommandError("ClusterVersion names no image under status.desired; say which release with --release IMAGE")
    return image
