"""`--target-catalog SOURCE=IMAGE`, `--read-catalogs`: what the target's catalogs have of what a dump has installed.

On a cluster the target's own code reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runup.cli.errors import CommandError

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.checks.decide.model import Context, Snapshot
    from runup.checks.decide.target_catalogs import Catalogs


def images_of(typed: Sequence[str]) -> dict[str, str]:
    """Name of a CatalogSource -> image, as typed; raises CommandError."""
    found: dict[str, str] = {}
    for text in typed:
        source, _, image = text.partition("=")
        if not source or not image:
            raise CommandError(f"--target-catalog {text}: give SOURCE=IMAGE, SOURCE being the name of a CatalogSource")
        found[source] = image
    return found


async def _read(
    named: Mapping[str, str], snapshot: Snapshot, context: Context, access: Access, *, reads: bool
) -> Catalogs:
    from kubekit.kube.clock import SystemClock
    from runup.kernelmodules.control.registries import GivenRegistries
    from runup.preflight.control.catalog_images import CatalogImages

    images = CatalogImages(GivenRegistries(access), SystemClock(), lambda: None, named=named, reads=reads)
    return await images.settled(snapshot, context)


def read(named: Mapping[str, str], snapshot: Snapshot, context: Context, access: Access, *, reads: bool) -> Catalogs:
    """What those images have, and with `reads` what those have that the target brings."""
    import asyncio

    return asyncio.run(_read(named, snapshot, context, access, reads=reads))
