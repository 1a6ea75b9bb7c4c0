"""Finds the image of a cluster's own release in its ClusterVersion."""

from __future__ import annotations

from kubekit.error_types import InputError
from runup.api.config_v1 import ClusterVersion


def release_image_of(version: ClusterVersion) -> str:
    """Returns the image of the release that the cluster runs or updates to; raises InputError if there is none."""
    image = version.status.desired.image
    if not image:
        raise InputError("ClusterVersion names no image under status.desired; say which release with --release IMAGE")
    return image
