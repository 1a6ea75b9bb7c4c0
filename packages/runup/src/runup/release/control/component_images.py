"""Reads component images for `runup release new`: their manifests, and the pull specs that the release records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubekit.error_types import InputError
from kubekit.oci.access import Access
from kubekit.oci.image_locations import LayoutLocation, parse_location, read_image_files
from kubekit.oci.registry_errors import BadImage
from runup.release.decide.components import FOLDERS, Component, check_name, gather_files


@dataclass(frozen=True, slots=True)
class Gathered:
    """The files for the release, and all its images by name."""

    files: dict[str, bytes]
    images: dict[str, str]


def gather_components(
    wanted_images: Mapping[str, str], references: Mapping[str, str], version: str, access: Access
) -> Gathered:
    """Returns what the images `wanted_images` (name -> image) contribute; `references` are other images by name.

    Raises OciError, InputError for a layout that no cluster could pull from, ComponentError for a conflict.
    """
    for name in wanted_images:
        check_name(name)
    components = tuple(
        _read_component(name, image, references.get(name, ""), access) for name, image in sorted(wanted_images.items())
    )
    images = {**references, **{component.name: component.pullspec for component in components}}
    return Gathered(gather_files(components, images, version), images)


def _read_component(name: str, image: str, reference: str, access: Access) -> Component:
    """Reads the manifests and files that one component's image contributes. Raises InputError or BadImage."""
    place = parse_location(image)
    if isinstance(place, LayoutLocation) and not reference:
        raise InputError(
            f"--component: {name}={image}: no cluster pulls from a layout; say where it will be pulled from, "
            f"--image-reference {name}=HOST/REPOSITORY@sha256:..."
        )
    files, digest = read_image_files(place, FOLDERS, access)
    if not any(path.startswith("manifests/") for path in files):
        raise BadImage(f"component {name}: {image} has no /manifests; one that is only named is an --image-reference")
    return Component(name, reference or str(place if isinstance(place, LayoutLocation) else place.at(digest)), files)
