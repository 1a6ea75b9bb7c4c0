"""The options `--target-catalog SOURCE=IMAGE` and `--read-catalogs`: reads the target's catalogs for a dump.

On a cluster the target's own code reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubekit.error_types import InputError

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.checks.decide.model import Context, Snapshot
    from runup.checks.decide.target_catalogs import Catalogs


def images_of(typed: Sequence[str]) -> dict[str, str]:
    """Returns the images as typed, by the name of their CatalogSource. Raises InputError."""
    image_by_source: dict[str, str] = {}
    for text in typed:
        source, _, image = text.partition("=")
        if not source or not image:
            raise InputError(f"--target-catalog {text}: give SOURCE=IMAGE, SOURCE being the name of a CatalogSource")
        image_by_source[source] = image
    return image_by_source


async def _read_catalogs(
    named_images: Mapping[str, str], snapshot: Snapshot, context: Context, access: Access, *, reads: bool
) -> Catalogs:
    """Returns the catalogs that the target brings: the named ones, or with `reads` those of the target's version."""
    from kubekit.kube.clock import SystemClock
    from runup.facts.catalog_images import CatalogImages
    from runup.kernelmodules.control.registries import GivenRegistries, with_registries_of

    registries = GivenRegistries(with_registries_of(access, *named_images.values()))
    images = CatalogImages(registries, SystemClock(), lambda: None, named_images=named_images, reads=reads)
    return await images.settled(snapshot, context)


def read(
    named_images: Mapping[str, str], snapshot: Snapshot, context: Context, access: Access, *, reads: bool
) -> Catalogs:
    """Returns what the named images contain; with `reads`, also what the catalogs of the target contain."""
    import asyncio

    return asyncio.run(_read_catalogs(named_images, snapshot, context, access, reads=reads))
