"""A catalog image out of its registry: only the packages that were asked for, and of them only what checks look at.

An index of operators has a gigabyte, nearly all of it bundles. Its layers are read as they arrive and nothing is kept
on disk; a file is made small before the next one is read, so that memory has the largest file and not the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubekit.oci.errors import OciError
from kubekit.oci.layers import Pick
from runup.checks.decide import file_based_catalog
from runup.checks.decide.file_based_catalog import ROOT, BadCatalog
from runup.checks.decide.target_catalogs import TargetCatalog

MAX_CATALOG_BYTES = 512 * 1024 * 1024
"""Most that the files of the packages that are looked for may have; they are read one by one."""

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Most of one file, which is in memory twice while it is read; the target's pod has 512 MiB by default."""

ReadFolders = Callable[[tuple[str, ...], Pick], dict[str, bytes]]


@dataclass
class _Choice:
    """Which files of a catalog are read: those of `packages`, and of one other for how its folders are called."""

    packages: frozenset[str]
    specimen: str = ""

    def reads(self, path: str) -> bool:
        """Whether it is more than the name of `path` that counts."""
        _, _, below = path.partition("/")
        folder, inside, _ = below.partition("/")
        if not inside or not path.endswith((".json", ".yaml", ".yml")):
            return False
        if folder not in self.packages and not self.specimen:
            self.specimen = folder
        return folder in self.packages or folder == self.specimen


def read_catalog(image: str, packages: frozenset[str], read_folders: ReadFolders) -> TargetCatalog:
    """What `image` has of `packages`, by whoever reads its folders; what it raises as an OciError is the problem."""
    choice = _Choice(packages)
    pick = Pick(MAX_CATALOG_BYTES, MAX_FILE_BYTES, choice.reads, file_based_catalog.slim)
    try:
        files = read_folders((ROOT,), pick)
        if not files:
            return unread(image, f"it is no file-based catalog: it has no folder {ROOT}", packages)
        found = file_based_catalog.parse({f"{path}.json": data for path, data in files.items()})
    except (OciError, BadCatalog) as error:
        return unread(image, str(error), packages)
    if not packages & set(found) and choice.specimen not in found:
        # A catalog of another make has its packages elsewhere: that none is where it should be says nothing then.
        folders = ", ".join(file_based_catalog.folders(packages))
        return unread(image, f"it has none of {folders}, and its packages are not in folders of their names", packages)
    return TargetCatalog(image, _only(found, packages), looked_for=packages)


def unread(image: str, problem: str, packages: frozenset[str]) -> TargetCatalog:
    """A catalog of which nothing is known."""
    return TargetCatalog(image, problem=problem, looked_for=packages)


def _only(
    found: Mapping[str, file_based_catalog.Package], packages: frozenset[str]
) -> dict[str, file_based_catalog.Package]:
    return {name: package for name, package in found.items() if name in packages}
