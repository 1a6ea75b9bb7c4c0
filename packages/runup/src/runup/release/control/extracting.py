"""Implements `runup release extract`: prints one file of the payload, or writes all into a new folder."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from kubekit.error_types import InputError
from kubekit.lang.files import remove_tree
from kubekit.oci.access import Access
from kubekit.oci.image_locations import read_folder_files, read_image_files
from runup.release.control.release_location import place_of_release
from runup.release.decide.payload import FOLDERS


def files(image: str, access: Access) -> tuple[dict[str, bytes], str]:
    """Returns the files of a folder, a layout or a pull spec by path in the image, and the digest; raises OciError."""
    location = place_of_release(image)
    return (
        (read_folder_files(location, FOLDERS), "")
        if isinstance(location, Path)
        else read_image_files(location, FOLDERS, access)
    )


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
