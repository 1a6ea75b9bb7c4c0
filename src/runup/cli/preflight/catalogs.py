"""`--target-catalog SOURCE=IMAGE`: which packages a cluster has installed, and what those images have of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from runup.api.olm_v1alpha1 import Subscription
from runup.cli.errors import CommandError
from runup.domain.checks import file_based_catalog as catalogs
from runup.domain.checks.catalogue.olm_target_catalog import Catalogs, TargetCatalog
from runup.domain.checks.file_based_catalog import BadCatalog

if TYPE_CHECKING:
    from runup.oci.access import Access


def images_of(typed: Sequence[str]) -> dict[str, str]:
    """Name of a CatalogSource -> image, as typed; raises CommandError."""
    found: dict[str, str] = {}
    for text in typed:
        source, _, image = text.partition("=")
        if not source or not image:
            raise CommandError(f"--target-catalog {text}: give SOURCE=IMAGE, SOURCE being the name of a CatalogSource")
        found[source] = image
    return found


def read(images: dict[str, str], subscriptions: Iterable[Subscription], access: Access) -> Catalogs:
    """What each image has of the packages that are subscribed to out of its source; never raises for one of them."""
    wanted: dict[str, set[str]] = {}
    for sub in subscriptions:
        wanted.setdefault(sub.spec.source, set()).add(sub.spec.name)
    return {source: _read(image, wanted.get(source, set()), access) for source, image in images.items()}


def _read(image: str, packages: set[str], access: Access) -> TargetCatalog:
    from runup.oci.errors import OciError

    if not packages:
        return TargetCatalog(image)
    try:
        files = _files(image, catalogs.folders(packages), access)
        if not files:
            # A catalog of another make has its packages elsewhere: that none is found says nothing then.
            return TargetCatalog(image, problem=f"it has none of {', '.join(catalogs.folders(packages))}")
        return TargetCatalog(image, catalogs.parse(files))
    except (OciError, BadCatalog) as error:
        return TargetCatalog(image, problem=str(error))


def _files(image: str, folders: tuple[str, ...], access: Access) -> dict[str, bytes]:
    """Only those folders, out of layers that are streamed: an index of operators has a gigabyte."""
    from runup.oci.layers import open_image, read_folders
    from runup.oci.layout import Layout
    from runup.oci.places import LayoutPlace, place_of
    from runup.oci.registry import RegistryClient

    place = place_of(image)
    if isinstance(place, LayoutPlace):
        return read_folders(open_image(Layout.open(place.folder), place.name), folders)
    return RegistryClient(access).read_folders(place, folders)
