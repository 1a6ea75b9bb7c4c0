"""Reads releases from a folder, a layout or a registry, and writes their files to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from kubekit.error_types import InputError
from kubekit.lang.files import remove_tree
from kubekit.oci.access import Access
from kubekit.oci.image_locations import LayoutLocation, Location, parse_location, read_folder_files, read_image_files
from kubekit.oci.reference import Reference
from runup.process.steps import step
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import FOLDERS, Payload, load_payload


def load(
    image: str, access: Access, *, profile: str = DEFAULT_PROFILE, keep_going: bool = False
) -> tuple[Payload, str]:
    """Returns the payload of a folder, a layout or a pull spec, and its digest (empty for a folder).

    With `keep_going` a file that cannot be read is listed beside the others. Raises OciError, and PayloadError if it is
    not a release.
    """
    location = place_of_release(image)
    files, digest = _read(location, image, access)
    # A folder or layout has no pull spec, so its manifests name the release as it was typed.
    name = str(location.at(digest)) if isinstance(location, Reference) else image
    return load_payload(files, source=image, profile=profile, release_image=name, keep_going=keep_going), digest


def place_of_release(image: str) -> Path | Location:
    """Returns a folder of files, a layout or a registry, as typed; raises InvalidReference."""
    folder = Path(image)
    if folder.is_dir() and (folder / "oci-layout").is_file():
        return LayoutLocation(folder)
    return folder if folder.is_dir() or image.startswith((".", "/")) else parse_location(image)


def files(image: str, access: Access) -> tuple[dict[str, bytes], str]:
    """Returns the files of a folder, a layout or a pull spec by path in the image, and the digest; raises OciError."""
    return _read(place_of_release(image), image, access)


def _read(location: Path | Location, image: str, access: Access) -> tuple[dict[str, bytes], str]:
    if isinstance(location, Path):
        return read_folder_files(location, FOLDERS), ""
    with step(f"Reading image {image}"):
        return read_image_files(location, FOLDERS, access)


def file_at(files: Mapping[str, bytes], path: str, image: str) -> bytes:
    """Returns the file at `path`; the folder may be omitted if only one file has that name. Raises InputError."""
    wanted_path = path.removeprefix("/")
    matches = [
        name for name in files if name == wanted_path or ("/" not in wanted_path and name.endswith(f"/{wanted_path}"))
    ]
    if len(matches) != 1:
        several = f"; there are {', '.join(matches)}" if matches else f"; it has {len(files)} files"
        raise InputError(f"--file: {image} has no file {path}{several}")
    return files[matches[0]]


def write(files: Mapping[str, bytes], target: str) -> None:
    """Writes all files below the folder `target`, which appears completely or not at all; raises InputError."""
    folder = Path(target)
    scratch = None
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise InputError(f"--to: {target} exists already and is not empty; name another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        # mkdtemp creates a folder that only its owner may read.
        scratch.chmod(0o755)
        for name, data in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        scratch.rename(folder)
    except OSError as error:
        raise InputError(f"--to: {target} cannot be written: {error.strerror or error}") from error
    finally:
        if scratch is not None:
            remove_tree(scratch)
