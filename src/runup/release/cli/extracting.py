"""What `runup release extract` does: the payload's files of an image, one printed, or all in a folder of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kubekit.oci.access import Access
from kubekit.oci.places import files_in, files_of
from runup.cli.errors import CommandError
from runup.release.cli.read import place
from runup.release.decide.payload import FOLDERS


def files(image: str, access: Access) -> tuple[dict[str, bytes], str]:
    """Path in the image -> bytes of a folder, a layout or a pull spec, and its digest; raises OciError."""
    found = place(image)
    return (files_in(found, FOLDERS), "") if isinstance(found, Path) else files_of(found, FOLDERS, access)


def one(files: Mapping[str, bytes], path: str, image: str) -> bytes:
    """The file at `path`; the folder may be left out where one file alone is called so. Raises CommandError."""
    wanted = path.removeprefix("/")
    found = [name for name in files if name == wanted or ("/" not in wanted and name.endswith(f"/{wanted}"))]
    if len(found) != 1:
        several = f"; there are {', '.join(found)}" if found else f"; it has {len(files)} files"
        raise CommandError(f"--file: {image} has no file {path}{several}")
    return files[found[0]]


def write(files: Mapping[str, bytes], target: str) -> None:
    """All files below the folder `target`, which appears whole or not at all; raises CommandError."""
    folder = Path(target)
    scratch = None
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise CommandError(f"--to: {target} is there already and holds something; name another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        scratch.chmod(0o755)
        for name, data in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        scratch.rename(folder)
    except OSError as error:
        raise CommandError(f"--to: {target} cannot be written: {error.strerror or error}") from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
