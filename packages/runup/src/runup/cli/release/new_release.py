"""Implements `runup release new`: builds in a temporary layout, checks that it loads, signs it, then puts it in its
place.

Every mistake in the input is found before anything is written; if writing fails, nothing incomplete remains.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from kubekit.lang.version import Version, VersionError
from kubekit.oci.access import Access
from kubekit.oci.image_locations import (
    LayoutLocation,
    copy_image,
    local_copy,
    parse_destination,
    parse_location,
    read_folder_files,
)
from kubekit.oci.layers import Image, open_image, read_folders
from kubekit.oci.layout import Layout
from kubekit.oci.registry_errors import BadImage
from kubekit.oci.signatures import SigningKey, add_signature
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights, rights_file_of_release
from runup.cli.errors import CommandError
from runup.cli.named_files import read_file
from runup.release.control import component_images as components
from runup.release.control.image_build import (
    IMAGE_REFERENCES_PATH,
    METADATA_PATH,
    THIN_OPERATOR,
    BuiltImage,
    build_release,
)
from runup.release.decide.listing import likely_mistakes
from runup.release.decide.payload import CHECKS, FOLDERS, load_payload
from runup.report import documentation


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReleaseFlags:
    """The flags of the command."""

    folders: Sequence[str]
    version: str
    destination: str
    previous: Sequence[str] = ()
    following: Sequence[str] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    image_references: dict[str, str] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)
    entrypoint: str | None = None
    base: str = ""
    overwrite: bool = False
    sign_key: str | None = None
    signature_store: str | None = None


def make_release(request: NewReleaseFlags, access: Access) -> tuple[str, str]:
    """Builds the image and returns its digest and name.

    Raises CommandError, OciError, and PayloadError if the result is not a release.
    """
    _check_versions(request)
    _check_documentation(request)
    place = parse_destination(request.destination, request.version)
    key = _read_signing_key(request.sign_key) if request.sign_key else None
    with tempfile.TemporaryDirectory() as scratch:
        built = _build(Path(scratch), request, access)
        layout = Layout.open(built.layout)
        notes = _check_loads(layout, built, request)
        name = str(place) if isinstance(place, LayoutLocation) else str(place.at(built.digest))
        signature = key.sign(built.digest, name) if key is not None else b""
        with _signature_in_store(request.signature_store, built.digest, signature):
            copy_image(layout, built.digest, place, access, overwrite=request.overwrite)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    return built.digest, name


def _read_signing_key(path: str) -> SigningKey:
    """Returns the private key in a file. Raises CommandError."""
    key = SigningKey(read_file("--sign-key", path))
    try:
        key.public  # noqa: B018 -- reading it is the check
    except BadImage as error:
        raise CommandError(f"--sign-key: {path}: {error}") from error
    return key


@contextlib.contextmanager
def _signature_in_store(store: str | None, digest: str, signature: bytes) -> Iterator[None]:
    """Adds the signature to its store before the image is published, and removes it if publishing fails."""
    path = add_signature(Path(store), digest, signature) if store else None
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()
        raise


def _build(scratch: Path, request: NewReleaseFlags, access: Access) -> BuiltImage:
    """Builds the image in the folder `scratch` from the components and folders that the flags name."""
    folder_files: dict[str, bytes] = {}
    for folder in request.folders:
        folder_files |= read_folder_files(Path(folder), FOLDERS)
    _check_flags_count(request, folder_files)
    gathered = components.gather_components(request.components, request.image_references, request.version, access)
    files = gathered.files | folder_files
    base = local_copy(parse_location(request.base), scratch / "base", access) if request.base else None
    files = _with_reads(files, base)
    return build_release(
        scratch / "layout",
        version=request.version,
        files=files,
        previous=request.previous,
        following=request.following,
        metadata=request.metadata,
        image_references=gathered.images,
        operator=read_file("--entrypoint", request.entrypoint) if request.entrypoint else THIN_OPERATOR,
        base=base,
    )


def _with_reads(files: dict[str, bytes], base: Image | None) -> dict[str, bytes]:
    """Returns `files` plus the list of what the release's checks read; a base image has the list of its own Python."""
    below = read_folders(base, (CHECKS,)).get(READS_FILE) if base is not None else None
    try:
        return rights_file_of_release.with_rights_file(files, own_rights(), below)
    except rights.BadReads as error:
        raise CommandError(f"--base: {error}") from error


def _check_flags_count(request: NewReleaseFlags, files: Collection[str]) -> None:
    """Raises CommandError for flags that would have no effect, because a file of the folders replaces them."""
    metadata = {"--previous": request.previous, "--next": request.following, "--metadata": request.metadata}
    images = {"--image-reference": request.image_references, "--component": request.components}
    for file, flags in ((METADATA_PATH, metadata), (IMAGE_REFERENCES_PATH, images)):
        conflicting = [flag for flag, value in flags.items() if value]
        if file in files and conflicting:
            raise CommandError(
                f"{', '.join(conflicting)}: the folders bring {file}; say it there, or leave the file out"
            )


def _check_loads(layout: Layout, built: BuiltImage, request: NewReleaseFlags) -> tuple[str, ...]:
    """Returns warnings about the image; raises PayloadError if an operator could not load it.

    Raises CommandError if it is of another version.
    """
    files = read_folders(open_image(layout, built.digest), FOLDERS)
    payload = load_payload(files, source=f"{METADATA_PATH}, {IMAGE_REFERENCES_PATH} and the folders given")
    if payload.version != request.version:
        raise CommandError(f"--version: {METADATA_PATH} of the folders says {payload.version}, not {request.version}")
    return (*payload.warnings, *likely_mistakes(payload))


def _check_documentation(request: NewReleaseFlags) -> None:
    """Raises CommandError for an invalid documentation base, because every risk of the release links to it."""
    try:
        documentation.read_base(request.metadata.get(documentation.KEY) or documentation.BUILT_IN)
    except documentation.BadBase as error:
        raise CommandError(
            f"--metadata: {documentation.KEY} {request.metadata[documentation.KEY]!r} {error}"
        ) from error


def _check_versions(request: NewReleaseFlags) -> None:
    """Raises CommandError if a flag names a version that is not semantic."""
    versions_by_flag = {"--version": [request.version], "--previous": request.previous, "--next": request.following}
    for flag, versions in versions_by_flag.items():
        for version in versions:
            try:
                Version(version)
            except VersionError as error:
                raise CommandError(f"{flag}: {error}") from error
