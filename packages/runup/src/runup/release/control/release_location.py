"""Reads releases from a folder, a layout or a registry, as their place is typed."""

from __future__ import annotations

from pathlib import Path

from kubekit.oci.access import Access
from kubekit.oci.image_locations import LayoutLocation, Location, parse_location, read_folder_files, read_image_files
from kubekit.oci.reference import Reference
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
    files, digest = (
        (read_folder_files(location, FOLDERS), "")
        if isinstance(location, Path)
        else read_image_files(location, FOLDERS, access)
    )
    # A folder or layout has no pull spec, so its manifests name the release as it was typed.
    name = str(location.at(digest)) if isinstance(location, Reference) else image
    return load_payload(files, source=image, profile=profile, release_image=name, keep_going=keep_going), digest


def place_of_release(image: str) -> Path | Location:
    """Returns a folder of files, a layout or a registry, as typed; raises InvalidReference."""
    folder = Path(image)
    if folder.is_dir() and (folder / "oci-layout").is_file():
        return LayoutLocation(folder)
    return folder if folder.is_dir() or image.startswith((".", "/")) else parse_location(image)
