"""What is known of the catalogs of operators that a cluster will have on the target: values alone, for the checks.

Which image a CatalogSource will have then is decided in `catalogue.olm.shared.olm_catalog_images`; who has a network
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runup.checks.decide.file_based_catalog import Package

NOBODY_LOOKED = "it was not read"


@dataclass(frozen=True, slots=True)
class TargetCatalog:
    """What was read of one image: of the packages `looked_for` those that it has, or why it could not be read."""

    image: str
    packages: Mapping[str, Package] = field(default_factory=dict)
    problem: str = ""
    looked_for: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Catalogs:
    """Images that were named by hand (name of a CatalogSource -> image), and what was read (image -> what it has).

    `why` is why an image that is in neither was not read.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    read: Mapping[str, TargetCatalog] = field(default_factory=dict)
    why: str = NOBODY_LOOKED

    def of(self, image: str, package: str) -> TargetCatalog:
        """What is known of `image` and whether it has `package`: an answer, or a problem."""
        found = self.read.get(image)
        if found is None:
            return TargetCatalog(image, problem=self.why)
        if found.problem or package in found.looked_for:
            return found
        return TargetCatalog(image, problem=f"package {package} was not looked for yet")


NONE_READ = Catalogs()
