"""Reads a catalog image from its registry: only the requested packages, and of them only what the checks use.

An index of operators has about a gigabyte, nearly all of it bundles. Its layers are read as they arrive and nothing is
kept on disk. Each file is reduced before the next one is read, so that memory holds the largest file and not the whole
catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

ReadFolders = Callable[[tuple[str, ...], Pick], dict[str, bytes]]


@dataclass
class CatalogSelection:
    """The files of a catalog to read: those of `packages`, and of one other package to learn the folder layout."""

    packages: frozenset[str]
    specimen: str = ""

    def reads(self, path: str) -> bool:
        """Returns whether the content of the file at `path` is needed."""
        return file_based_catalog.is_ignore_file(path) or self.has_parts(path)

    def has_parts(self, path: str) -> bool:
        """Returns whether the file at `path` is read for the packages in it."""
        folder = file_based_catalog.folder_of(path)
        if not folder or not file_based_catalog.has_known_ending(path):
            return False
        if folder not in self.packages and not self.specimen:
            self.specimen = folder
        return self._is_folder_read(folder)

    def problem_of(self, files: Mapping[str, bytes], packages_by_folder: Mapping[str, frozenset[str]]) -> str:
        """Returns why `files` do not tell what the catalog has of the packages, or an empty string if they do.

        They do if all of the catalog was read, or if each folder that was read has the package of its name and no
        other: then what the other folders have is known without reading them. A file that was not read, beside the
        folders or in one that was, may have any package. A file that OLM ignores has none, though it was read.
        """
        near = sorted(path for path in files if self._is_near(path))
        for path in near:
            if file_based_catalog.is_ignore_file(path) and files[path] != file_based_catalog.NO_PATTERNS:
                return f"its file {path} has patterns of what to leave out, which are not followed here"
        if all(self.reads(path) for path in files):
            return ""
        for path in near:
            if not self.reads(path):
                return f"its file {path} was not read and may have a part of any package"
        if packages_by_folder and all(names == {folder} for folder, names in packages_by_folder.items()):
            return ""
        return "its packages are not all in folders of their names"

    def _is_near(self, path: str) -> bool:
        """Returns whether the file at `path` is beside the folders, or in one of those that are read."""
        folder = file_based_catalog.folder_of(path)
        return not folder or self._is_folder_read(folder)

    def _is_folder_read(self, folder: str) -> bool:
        return folder in self.packages or folder == self.specimen


def read_catalog(image: str, packages: frozenset[str], read_folders: ReadFolders) -> TargetCatalog:
    """Returns what `image` has of `packages`, read with `read_folders`.

    An OciError from `read_folders` becomes the catalog's problem.
    """
    choice = CatalogSelection(packages)
    pick = Pick(MAX_CATALOG_BYTES, MAX_FILE_BYTES, choice.reads, file_based_catalog.keep_used_part)
    try:
        files = read_folders((ROOT,), pick)
        if not files:
            return unread_catalog(image, f"it is not a file-based catalog: it has no folder {ROOT}", packages)
        read_files = {f"{path}.json": data for path, data in files.items() if choice.has_parts(path)}
        catalog_packages = file_based_catalog.parse(read_files)
        problem = choice.problem_of(files, file_based_catalog.packages_by_folder(read_files))
    except (OciError, BadCatalog) as error:
        return unread_catalog(image, str(error), packages)
    if problem:
        names = ", ".join(sorted(packages))
        return unread_catalog(image, f"{problem}, so that what it has of {names} is not known", packages)
    return TargetCatalog(image, _only_packages(catalog_packages, packages), looked_for=packages)


def unread_catalog(image: str, problem: str, packages: frozenset[str]) -> TargetCatalog:
    """Returns a catalog without any known package."""
    return TargetCatalog(image, problem=problem, looked_for=packages)


def _only_packages(
    packages_by_name: Mapping[str, file_based_catalog.Package], packages: frozenset[str]
) -> dict[str, file_based_catalog.Package]:
    return {name: package for name, package in packages_by_name.items() if name in packages}
