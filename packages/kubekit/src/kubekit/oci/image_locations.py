"""Image locations as a user types them: a layout on disk (`oci:DIR[:TAG]`), a registry, or plain files.

In: the text. Out: the payload's files at that location, or an image written to it. Nothing that exists is replaced
unless that was requested, and a failure leaves every name as it was.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kubekit.lang.files import remove_tree
from kubekit.oci import images
from kubekit.oci.access import Access
from kubekit.oci.layers import MAX_PAYLOAD_BYTES, Image, open_image, read_folders
from kubekit.oci.layout import Layout
from kubekit.oci.reference import Reference, is_digest, parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import BadImage, CannotWrite, ImageNotFound, InvalidReference, NameInUse

LAYOUT = "oci:"
REGISTRY = "docker://"


@dataclass(frozen=True, slots=True)
class LayoutLocation:
    """An image called `name` (tag or digest, empty for the only one) in the layout `folder`."""

    folder: Path
    name: str = ""

    def __str__(self) -> str:
        joint = "@" if is_digest(self.name) else ":"
        return f"{LAYOUT}{self.folder}{joint + self.name if self.name else ''}"


Location = LayoutLocation | Reference


def read_image_files(place: Location, folders: tuple[str, ...], access: Access) -> tuple[dict[str, bytes], str]:
    """Returns the files below `folders` of the image at `place`, and its digest. Raises OciError."""
    with tempfile.TemporaryDirectory() as scratch:
        image = local_copy(place, Path(scratch), access)
        return read_folders(image, folders), image.digest


def local_copy(place: Location, scratch: Path, access: Access) -> Image:
    """Returns the image at `place`; an image in a registry is pulled into `scratch`. Raises OciError."""
    if isinstance(place, LayoutLocation):
        return open_image(Layout.open(place.folder), place.name)
    layout = Layout.create(scratch)
    return open_image(layout, RegistryClient(access).pull(place, layout))


def read_folder_files(folder: Path, folders: tuple[str, ...]) -> dict[str, bytes]:
    """Returns the files below `folders` of a folder on disk; a link to a file counts as that file.

    Raises ImageNotFound if they do not exist, BadImage for a broken link, a device, or more than `MAX_PAYLOAD_BYTES`.
    """
    if not folder.is_dir():
        raise ImageNotFound(f"{folder}: there is no such folder")
    paths = [path for name in folders for path in sorted((folder / name).rglob("*")) if not path.is_dir()]
    if not paths:
        raise ImageNotFound(f"{folder}: holds none of {', '.join(f'{name}/' for name in folders)}")
    if odd := next((path for path in paths if not path.is_file()), None):
        raise BadImage(
            f"{odd}: cannot be packed, because it is {'a broken link' if odd.is_symlink() else 'a special file'}"
        )
    try:
        if sum(path.stat().st_size for path in paths) > MAX_PAYLOAD_BYTES:
            raise BadImage(f"{folder}: {', '.join(folders)} hold more than {MAX_PAYLOAD_BYTES} bytes")
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    except OSError as error:
        raise ImageNotFound(f"{error.filename}: cannot be read: {error.strerror}") from error


def parse_location(text: str) -> Location:
    """Returns the location that `text` names: `oci:DIR[:TAG]` or a pull spec. Raises InvalidReference."""
    if text.startswith(LAYOUT):
        location = text.removeprefix(LAYOUT)
        folder, at, name = location.partition("@")
        if not at or not is_digest(name):
            # The tag follows the last colon, unless that is part of a folder's name.
            folder, colon, name = location.rpartition(":")
            if not colon or "/" in name:
                folder, name = location, ""
        if not folder:
            raise InvalidReference(f"{text!r} names no folder; expected oci:DIR or oci:DIR:TAG")
        return LayoutLocation(Path(folder), name)
    reference = parse(text.removeprefix(REGISTRY))
    if not reference.registry:
        raise InvalidReference(
            f"{text!r} is neither a folder nor an image in a registry; "
            "expected ./DIR, oci:DIR[:TAG] or HOST/REPOSITORY@sha256:..."
        )
    return reference


def parse_destination(text: str, tag: str) -> Location:
    """Returns the location to which an image must be written, by default called `tag`. Raises InvalidReference."""
    if not text.startswith((LAYOUT, REGISTRY)):
        raise InvalidReference(f"{text!r} is neither oci:DIR[:TAG] nor docker://HOST/REPO:TAG")
    place = parse_location(text)
    if is_digest(place.name if isinstance(place, LayoutLocation) else place.digest):
        raise InvalidReference(f"{text!r}: an image's digest comes from what is in it; name it by tag")
    if isinstance(place, LayoutLocation):
        return LayoutLocation(place.folder, place.name or tag)
    # A plus sign, which versions may have, is not allowed in a registry's tags.
    return place if place.tag else replace(place, tag=tag.replace("+", "_"))


def copy_image(source: Layout, digest: str, place: Location, access: Access, *, overwrite: bool = False) -> None:
    """Copies the image `digest` of `source` to `place`. Raises NameInUse if that name belongs to another image."""
    if isinstance(place, LayoutLocation):
        try:
            occupied = (
                place.folder.exists() and not (place.folder / "oci-layout").is_file() and any(place.folder.iterdir())
            )
        except OSError as error:
            raise CannotWrite(f"{place.folder}: no layout can be made there: {error.strerror}") from error
        if occupied:
            raise CannotWrite(f"{place.folder}: exists already and is not an OCI image layout; name another folder")
        existed = place.folder.exists()
        try:
            target = Layout.create(place.folder)
            if not overwrite:
                for item in target.index().manifests:
                    if item.annotations.get(images.REF_NAME) == place.name:
                        _check_same(str(place), item.digest, digest)
            manifest = images.decode_document(images.Manifest, source.read(digest), f"manifest {digest}")
            for blob in (manifest.config, *manifest.layers):
                source.copy_blob(blob.digest, target)
            target.add_blob(source.read(digest))
            target.add_manifest(source.resolve(digest), place.name)
        except BaseException:
            if not existed:
                remove_tree(place.folder)
            raise
        return
    client = RegistryClient(access)
    if not overwrite:
        try:
            existing = client.resolve(place)
        # The name is free, so nothing would be replaced.
        except ImageNotFound:
            existing = digest
        _check_same(str(place), existing, digest)
    client.push(source, digest, place)


def _check_same(name: str, actual: str, digest: str) -> None:
    if actual != digest:
        raise NameInUse(f"{name} exists already and is another image ({actual}); choose another tag, or overwrite it")
