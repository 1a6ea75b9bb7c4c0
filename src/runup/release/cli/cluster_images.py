"""Which image a cluster's own release is, as its ClusterVersion says."""

from __future__ import annotations

from runup.api.config_v1 import ClusterVersion
from runup.cli.errors import CommandError


def image_of(version: ClusterVersion) -> str:
    """The release that the cluster works towards; raises CommandError where it names none."""
    image = version.status.desired.image
    if not image:
        raise CommandError("ClusterVersion names no image under status.desired; say which release with --release IMAGE")
    return image
