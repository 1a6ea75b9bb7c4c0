"""The operator catalogs that a cluster will have on the target, as far as they are known.

`catalogue.olm.shared.olm_catalog_images` decides which image a CatalogSource will have on the target; callers with a
network read that image.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from runup.checks.decide.file_based_catalog import Package

NOBODY_LOOKED = "it was not read"
SWITCHED_OFF = "catalogs of the target are not read here"


class TargetCatalog(msgspec.Struct, frozen=True):
    """The packages of one catalog image, of those that were `looked_for`; or in `problem` why it could not be read."""

    image: str
    packages: Mapping[str, Package] = msgspec.field(default_factory=dict)
    problem: str = ""
    looked_for: frozenset[str] = frozenset()


class Catalogs(msgspec.Struct, frozen=True):
    """The catalog images that the user named (name of a CatalogSource -> image) and the content read of each image.

    `why` is the reason why an image that is in neither was not read.
    """

    named: Mapping[str, str] = msgspec.field(default_factory=dict)
    read: Mapping[str, TargetCatalog] = msgspec.field(default_factory=dict)
    why: str = NOBODY_LOOKED

    def catalog_of(self, image: str, package: str) -> TargetCatalog:
        """Returns what is known about `package` in `image`: an answer, or a problem."""
        catalog = self.read.get(image)
        if catalog is None:
            return TargetCatalog(image, problem=self.why)
        if catalog.problem or package in catalog.looked_for:
            return catalog
        return TargetCatalog(image, problem=f"package {package} was not looked for yet")


NONE_READ = Catalogs()
