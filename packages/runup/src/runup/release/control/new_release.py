"""Builds release images for `runup release new`: in a temporary layout, loaded once as a check, signed, then published.

Every mistake in the input is found before anything is written; if writing fails, nothing incomplete remains.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubekit.error_types import InputError
from kubekit.lang.version import Version, VersionError
from kubekit.oci import image_locations, layers, registry_errors, signatures
from kubekit.oci.access import Access
from kubekit.oci.layout import Layout
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.process.steps import step
from runup.release.control.image_build import IMAGE_REFERENCES_PATH, METADATA_PATH, THIN_OPERATOR, build_release
from runup.release.decide import components, listing
from runup.release.decide.components import Component, check_name, gather_files
from runup.release.decide.payload import CHECKS, FOLDERS, load_payload
from runup.report import documentation

AddRights = Callable[[dict[str, bytes], bytes | None], dict[str, bytes]]
"""Adds the list of what the release's checks read to its files; the second value is the base image's list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelease:
    """The release to build; images are by name. `operator` None means the operator of the base image."""

    folders: Sequence[str]
    version: str
    destination: str
    previous: Sequence[str] = ()
    following: Sequence[str] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    image_references: dict[str, str] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)
    operator: bytes = THIN_OPERATOR
    base: str = ""
    overwrite: bool = False
    sign_key: signatures.SigningKey | None = None
    signature_store: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """The published image: its digest, its name, and likely mistakes in it."""

    digest: str
    name: str
    notes: tuple[str, ...]


def make_release(request: NewRelease, access: Access, add_rights: AddRights) -> Published:
    """Builds, checks, signs and publishes the image.

    Raises InputError, OciError, and PayloadError if the result is not a release that an operator could load.
    """
    versions_by_flag = {"--version": [request.version], "--previous": request.previous, "--next": request.following}
    for flag, versions in versions_by_flag.items():
        for version in versions:
            try:
                Version(version)
            except VersionError as error:
                raise InputError(f"{flag}: {error}") from error
    try:
        documentation.read_base(request.metadata.get(documentation.KEY) or documentation.BUILT_IN)
    except documentation.BadBase as error:
        raise InputError(f"--metadata: {documentation.KEY} {request.metadata[documentation.KEY]!r} {error}") from error
    place = image_locations.parse_destination(request.destination, request.version)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        folder_files: dict[str, bytes] = {}
        for source in request.folders:
            folder_files |= image_locations.read_folder_files(Path(source), FOLDERS)
        _check_flags_have_effect(request, folder_files)
        files, images = gather_components(request.components, request.image_references, request.version, access)
        base = (
            image_locations.local_copy(image_locations.parse_location(request.base), scratch / "base", access)
            if request.base
            else None
        )
        base_reads = layers.read_folders(base, (CHECKS,)).get(READS_FILE) if base is not None else None
        built = build_release(
            scratch / "layout",
            version=request.version,
            files=add_rights(files | folder_files, base_reads),
            previous=request.previous,
            following=request.following,
            metadata=request.metadata,
            image_references=images,
            operator=request.operator,
            base=base,
        )
        layout = Layout.open(built.layout)
        payload = load_payload(
            layers.read_folders(layers.open_image(layout, built.digest), FOLDERS),
            source=f"{METADATA_PATH}, {IMAGE_REFERENCES_PATH} and the folders given",
        )
        if payload.version != request.version:
            raise InputError(f"--version: {METADATA_PATH} of the folders says {payload.version}, not {request.version}")
        name = str(place) if isinstance(place, image_locations.LayoutLocation) else str(place.at(built.digest))
        signature = request.sign_key.sign(built.digest, name) if request.sign_key else b""
        # The signature is added before the image is published, and removed if publishing fails.
        store = request.signature_store
        signature_path = signatures.add_signature(Path(store), built.digest, signature) if store else None
        try:
            image_locations.copy_image(layout, built.digest, place, access, overwrite=request.overwrite)
        except BaseException:
            if signature_path is not None:
                signature_path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    signature_path.parent.rmdir()
            raise
    return Published(built.digest, name, (*payload.warnings, *listing.likely_mistakes(payload)))


def gather_components(
    wanted_images: Mapping[str, str], references: Mapping[str, str], version: str, access: Access
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Returns the files that the images `wanted_images` (name -> image) contribute, and all images of the release.

    `references` are other images by name. Raises OciError, InputError for a layout that no cluster could pull from,
    ComponentError for a conflict.
    """
    for name in wanted_images:
        check_name(name)
    own_components = []
    for name, image in sorted(wanted_images.items()):
        place = image_locations.parse_location(image)
        pullspec = references.get(name, "")
        if isinstance(place, image_locations.LayoutLocation) and not pullspec:
            raise InputError(
                f"--component: {name}={image}: no cluster pulls from a layout; say where it will be pulled from, "
                f"--image-reference {name}=HOST/REPOSITORY@sha256:..."
            )
        with step(f"Reading image {image}"):
            files, digest = image_locations.read_image_files(place, components.FOLDERS, access)
        if not any(path.startswith("manifests/") for path in files):
            raise registry_errors.BadImage(
                f"component {name}: {image} has no /manifests; one that is only named is an --image-reference"
            )
        pullspec = pullspec or str(place if isinstance(place, image_locations.LayoutLocation) else place.at(digest))
        own_components.append(Component(name, pullspec, files))
    images = {**references, **{component.name: component.pullspec for component in own_components}}
    return gather_files(tuple(own_components), images, version), images


def _check_flags_have_effect(request: NewRelease, folder_files: Mapping[str, bytes]) -> None:
    """Raises InputError for flags without effect, because a file of the folders replaces them."""
    metadata = {"--previous": request.previous, "--next": request.following, "--metadata": request.metadata}
    images = {"--image-reference": request.image_references, "--component": request.components}
    for file, flags in ((METADATA_PATH, metadata), (IMAGE_REFERENCES_PATH, images)):
        conflicting = [flag for flag, value in flags.items() if value]
        if file in folder_files and conflicting:
            raise InputError(f"{', '.join(conflicting)}: the folders bring {file}; say it there, or leave the file out")
