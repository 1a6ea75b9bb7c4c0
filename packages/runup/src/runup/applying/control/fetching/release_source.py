"""Selects how the operator fetches other releases, by its flag `--release-source`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.applying.control.fetching.registry_fetching import FromRegistry
from runup.applying.control.fetching.version_pod import FromPod
from runup.applying.control.payloads import ReleaseLoader
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.release.control.release_images import ReleaseImages

Source = Literal["pod", "registry"]


def fetching(
    source: Source,
    client: Client,
    clock: Clock,
    *,
    images: ReleaseImages,
    settings: PodSettings,
    folder: Path,
    profile: str,
) -> ReleaseLoader:
    """Returns the loader for `source`: a Pod that copies to `folder` on the operator's node, or the registry."""
    if source == "registry":
        return FromRegistry(images, profile=profile)
    return FromPod(client, clock, namespace=settings.namespace, node=settings.node_name, folder=folder, profile=profile)
