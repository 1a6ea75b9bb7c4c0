"""Reads the target's operator catalogs in the background and stores the results.

In: snapshots, as the checks see them. Out: `Catalogs`, at once, and a call of `changed` when more is known. An image is
read again only if its tag points to another digest, or a package was installed that the last read did not look for.
Images are read one after the other, to save the cluster's memory and network. What reads them is imported when the
first one is read: an administrator waits for the first risks, and many clusters have no such image.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import resource_of
from kubekit.kube.clock import Clock
from kubekit.oci.access import Access
from kubekit.oci.image_locations import LayoutLocation
from kubekit.oci.layers import Pick
from kubekit.oci.reference import Reference, parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import OciError
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.catalogue.olm import olm_target_catalog
from runup.checks.catalogue.olm.shared.olm_catalog_images import catalog_images_of_target
from runup.checks.decide import file_based_catalog
from runup.checks.decide.file_based_catalog import ROOT, BadCatalog
from runup.checks.decide.model import Context, Snapshot
from runup.checks.decide.target_catalogs import SWITCHED_OFF, Catalogs, TargetCatalog
from runup.checks.decide.wording import minor_or_major
from runup.kernelmodules.control.registries import Registries
from runup.process.steps import each

SUBSCRIPTIONS, SOURCES = resource_of(Subscription), resource_of(CatalogSource)
WITHIN_S = 300.0
"""Time limit for reading one image, in seconds."""

FIRST_S = 120.0
"""Seconds for which a first report waits for the first answers; an image that takes longer is Unknown in it."""

AGAIN_S, RETRY_S = 1800.0, 180.0
"""Seconds until the digest of a tag is resolved again, and until an image that could not be read is retried."""

READING = "it is being read"


class KnownCatalog(msgspec.Struct, frozen=True):
    """An answer, the digest that it was read from, and the time at which it came, in seconds of the monotonic clock."""

    found: TargetCatalog
    digest: str
    at: float

    def is_due(self, packages: frozenset[str], now: float) -> bool:
        """Returns whether the image should be read again by now."""
        age_s = now - self.at
        return not packages <= self.found.looked_for or age_s >= (RETRY_S if self.found.problem else AGAIN_S)


class CatalogImages:
    """The catalogs of one target. `named_images` are images by CatalogSource; without `reads` no others are read."""

    def __init__(
        self,
        registries: Registries,
        clock: Clock,
        changed: Callable[[], None],
        *,
        named_images: Mapping[str, str] | None = None,
        reads: bool = True,
        within_s: float = WITHIN_S,
    ) -> None:
        self._registries = registries
        self._clock = clock
        self._changed = changed
        self._named = named_images or {}
        self._reads = reads
        self._within_s = within_s
        self._known: dict[str, KnownCatalog] = {}
        self._reading: asyncio.Task[None] | None = None
        self._began_at: float | None = None

    def seen(self, snapshot: Snapshot, context: Context) -> Catalogs:
        """Returns the known results for the update in `context`, and starts to read the missing catalogs."""
        images = self._images_wanted(snapshot, context)
        # Answers about images that are no longer needed are dropped.
        self._known = {image: catalog for image, catalog in self._known.items() if image in images}
        now = self._clock.monotonic()
        due_images = {image: packages for image, packages in images.items() if self._is_due(image, packages, now)}
        if due_images and self._reading is None:
            self._began_at = now if self._began_at is None else self._began_at
            self._reading = asyncio.create_task(self._read_all(due_images))
        read_catalogs = {image: catalog.found for image, catalog in self._known.items()}
        return Catalogs(self._named, read_catalogs, READING if self._reads else SWITCHED_OFF)

    async def settled(self, snapshot: Snapshot, context: Context) -> Catalogs:
        """Returns the same once no image is being read any more."""
        catalogs = self.seen(snapshot, context)
        while self._reading is not None:
            await self._reading
            catalogs = self.seen(snapshot, context)
        return catalogs

    def awaited(self, check: str) -> bool:
        """Returns whether a first report should wait for pending reads of `check`."""
        if check != olm_target_catalog.NAME or self._reading is None or self._began_at is None:
            return False
        return self._clock.monotonic() - self._began_at < FIRST_S

    async def close(self) -> None:
        """Stops reading."""
        if (reading := self._reading) is not None:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    def _images_wanted(self, snapshot: Snapshot, context: Context) -> dict[str, frozenset[str]]:
        """Returns the catalog images to read for the target, with the packages looked for in each."""
        if not minor_or_major(context):
            return {}
        subscriptions, sources = snapshot.objects.get(SUBSCRIPTIONS, ()), snapshot.objects.get(SOURCES, ())
        images = catalog_images_of_target(subscriptions, sources, replace(context, catalogs=Catalogs(self._named)))
        return {image: packages for image, packages in images.items() if self._reads or image in self._named.values()}

    def _is_due(self, image: str, packages: frozenset[str], now: float) -> bool:
        # A snapshot may name new packages of a known image, which the last read did not look for.
        return image not in self._known or self._known[image].is_due(packages, now)

    async def _read_all(self, due_images: Mapping[str, frozenset[str]]) -> None:
        """Reads the catalogs that are due, one after the other, and reports each."""
        try:
            for image, packages in each(due_images.items(), "Reading catalog images"):
                self._known[image] = await self._read_or_failure(image, packages)
                self._changed()
        finally:
            # Cleared before `changed` is called, so that a listener can start another read.
            self._reading = None
        self._changed()

    async def _read_or_failure(self, image: str, packages: frozenset[str]) -> KnownCatalog:
        try:
            return await self._read_catalog(image, packages)
        except Exception as error:  # noqa: BLE001 - a bug there costs this answer, not the preflight
            return self._unread(image, packages, f"{type(error).__name__}: {error}")

    async def _read_catalog(self, image: str, packages: frozenset[str]) -> KnownCatalog:
        """Reads one catalog: a layout or an image of a registry. A failure is an answer that says why."""
        from kubekit.oci.image_locations import LayoutLocation, parse_location
        from runup.kernelmodules.control.image_stage import ask_registry

        notes: list[str] = []
        try:
            location = parse_location(image) if image in self._named.values() else parse(image)
            if isinstance(location, LayoutLocation):
                return self._of_layout(image, location, packages)
            access = await self._registries.access("", "", notes)
            known_catalog = await ask_registry(
                location,
                access,
                lambda client: self._read_if_changed(client, image, location, packages),
                within_s=self._within_s,
            )
            return add_notes(known_catalog, notes)
        except TimeoutError:
            return self._unread(image, packages, f"it was not read within {self._within_s:g} s")
        except DecodeError as error:
            return self._unread(image, packages, f"the cluster's answer is not clear: {error}")
        except OciError as error:
            return add_notes(self._unread(image, packages, error.message), notes)

    def _read_if_changed(
        self, client: RegistryClient, image: str, reference: Reference, packages: frozenset[str]
    ) -> KnownCatalog:
        """Reads the image unless the known answer is of the same digest. Runs in a thread. Raises OciError."""

        digest = client.resolve(reference)
        known_catalog = self._known.get(image)
        if known_catalog is not None and known_catalog.digest == digest and packages <= known_catalog.found.looked_for:
            return replace(known_catalog, at=self._clock.monotonic())
        catalog = read_catalog(
            image, packages, lambda folders, pick: client.read_folders(reference, folders, pick, architecture="")
        )
        return KnownCatalog(catalog, "" if catalog.problem else digest, self._clock.monotonic())

    def _of_layout(self, image: str, place: LayoutLocation, packages: frozenset[str]) -> KnownCatalog:
        from kubekit.oci.layers import open_image, read_folders
        from kubekit.oci.layout import Layout

        layout = open_image(Layout.open(place.folder), place.name, architecture="")
        catalog = read_catalog(image, packages, lambda folders, pick: read_folders(layout, folders, pick))
        return KnownCatalog(catalog, "", self._clock.monotonic())

    def _unread(self, image: str, packages: frozenset[str], problem: str) -> KnownCatalog:
        return KnownCatalog(unread_catalog(image, problem, packages), "", self._clock.monotonic())


def add_notes(catalog: KnownCatalog, notes: Sequence[str]) -> KnownCatalog:
    """Returns a failed answer with `notes` added to its problem.

    The notes name what could not be read of the cluster, such as its pull secret.
    """
    if not catalog.found.problem or not notes:
        return catalog
    return replace(catalog, found=replace(catalog.found, problem=f"{catalog.found.problem} ({'; '.join(notes)})"))


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
        """Returns why `files` do not show what the catalog has of the packages, or an empty string if they do.

        They do if all of the catalog was read, or if each folder that was read has the package of its name and no
        other: then what the other folders have is known without reading them. A file that was not read, next to the
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
        """Returns whether the file at `path` is next to the folders, or in one of those that are read."""
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
    if not catalog_packages:
        return unread_catalog(image, "it has no package", packages)
    wanted = {name: package for name, package in catalog_packages.items() if name in packages}
    return TargetCatalog(image, wanted, looked_for=packages)


def unread_catalog(image: str, problem: str, packages: frozenset[str]) -> TargetCatalog:
    """Returns a catalog without any known package."""
    return TargetCatalog(image, problem=problem, looked_for=packages)


def read(
    named_images: Mapping[str, str], snapshot: Snapshot, context: Context, access: Access, *, reads: bool
) -> Catalogs:
    """Returns what the named images contain; with `reads`, also what the catalogs of the target contain."""
    from kubekit.kube.clock import SystemClock
    from runup.kernelmodules.control.registries import GivenRegistries, with_registries_of

    async def read_all() -> Catalogs:
        registries = GivenRegistries(with_registries_of(access, *named_images.values()))
        images = CatalogImages(registries, SystemClock(), lambda: None, named_images=named_images, reads=reads)
        return await images.settled(snapshot, context)

    return asyncio.run(read_all())
