"""Reads a catalog image from its registry: only the requested packages, and of them only what the checks use.

An index of operators has about a gigabyte, nearly all of it bundles. Its layers are read as they arrive and nothing is
kept on disk. Each file is reduced before the next one is read, so that memory holds the largest file and not the whole
catalog.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kubekit.oci.layers import Pick
from kubekit.oci.registry_errors import OciError
from runup.checks.decide import file_based_catalog
from runup.checks.decide.file_based_catalog import ROOT, BadCatalog
from runup.checks.decide.target_catalogs import TargetCatalog

MAX_CATALOG_BYTES = 512 * 1024 * 1024
"""Maximum size of the files of the requested packages in all; they are read one by one."""

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Maximum size of one file, which is in memory twice while it is read; the target's pod has 512 MiB by default."""

_SUFFIXES = (".json", ".yaml", ".yml")
_IGNORE_FILE = ".indexignore"

ReadFolders = Callable[[tuple[str, ...], Pick], dict[str, bytes]]


@dataclass
class CatalogSelection:
    """The files of a catalog to read: those of `packages`, and of one other package to learn the folder layout."""

    packages: frozenset[str]
    specimen: str = ""

    def reads(self, path: str) -> bool:
        """Returns whether the content of the file at `path` is needed."""
        folder = file_based_catalog.folder_of(path)
        if not folder or not path.endswith(_SUFFIXES):
            return False
        if folder not in self.packages and not self.specimen:
            self.specimen = folder
        return folder in self.packages or folder == self.specimen

    def covers(self, paths: Iterable[str]) -> bool:
        """Returns whether all of the catalog was read, so that what was not found is not in it."""
        return all(self.reads(path) or posixpath.basename(path) == _IGNORE_FILE for path in paths)

    def shows_layout(self, paths: Iterable[str], packages_by_folder: Mapping[str, frozenset[str]]) -> bool:
        """Returns whether each folder that was read has the package of its name and no other.

        A file beside the folders may have any package, so that a catalog with one does not show it.
        """
        if any(path.endswith(_SUFFIXES) and not file_based_catalog.folder_of(path) for path in paths):
            return False
        return bool(packages_by_folder) and all(names == {folder} for folder, names in packages_by_folder.items())


def read_catalog(image: str, packages: frozenset[str], read_folders: ReadFolders) -> TargetCatalog:
    """Returns what `image` has of `packages`, read with `read_folders`.

    An OciError from `read_folders` becomes the catalog's problem.
    """
    choice = CatalogSelection(packages)
    pick = Pick(MAX_CATALOG_BYTES, MAX_FILE_BYTES, choice.reads, file_based_catalog.keep_used_schemas)
    try:
        files = read_folders((ROOT,), pick)
        if not files:
            return unread_catalog(image, f"it is not a file-based catalog: it has no folder {ROOT}", packages)
        read_files = {f"{path}.json": data for path, data in files.items() if choice.reads(path)}
        catalog_packages = file_based_catalog.parse(read_files)
        is_known = choice.covers(files) or choice.shows_layout(files, file_based_catalog.packages_by_folder(read_files))
    except (OciError, BadCatalog) as error:
        return unread_catalog(image, str(error), packages)
    if not is_known:
        # Files that were not read may have these packages, or more channels of them.
        names = ", ".join(sorted(packages))
        problem = f"its packages are not all in folders of their names, so that what it has of {names} is not known"
        return unread_catalog(image, problem, packages)
    return TargetCatalog(image, _only_packages(catalog_packages, packages), looked_for=packages)


def unread_catalog(image: str, problem: str, packages: frozenset[str]) -> TargetCatalog:
    """Returns a catalog without any known package."""
    return TargetCatalog(image, problem=problem, looked_for=packages)


def _only_packages(
    packages_by_name: Mapping[str, file_based_catalog.Package], packages: frozenset[str]
) -> dict[str, file_based_catalog.Package]:
    return {name: package for name, package in packages_by_name.items() if name in packages}
