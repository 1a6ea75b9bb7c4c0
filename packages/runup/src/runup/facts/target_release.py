"""Reads what a separate preflight knows release: the image's folders in; version, Kubernetes version and checks out.

Reads files and entry points only. A release that does not say which Kubernetes it ships is not an error: the check that
needs it is Unknown.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.error_types import InputError, Terminal
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import parse
from kubekit.oci.access import Access
from runup.checks.decide import target_manifests as manifests
from runup.checks.decide.declared_checks import unusable_check
from runup.checks.decide.model import Check
from runup.checks.decide.target_manifests import ReleaseObjects
from runup.process.steps import step
from runup.release.decide.manifest import Manifest
from runup.release.decide.release_metadata import MetadataError, parse_image_references, parse_release_metadata

ENTRY_POINTS = "runup.preflight_checks"
CHECKS_FOLDER = "preflight-checks"
RELEASE = "release-manifests"
FOLDERS = ("manifests", RELEASE)
IMAGE_FOLDERS = (*FOLDERS, CHECKS_FOLDER)
_MAX_SHOWN_NAME = 120
SUFFIXES = (".yaml", ".yml", ".json")
# Annotation in which release tooling writes the versions of an image's components (openshift/oc, `adm release new`).
BUILD_VERSIONS = "io.openshift.build.versions"
_OPENSHIFT_4 = 4
_KUBERNETES = re.compile(r"(?:^|,)\s*kubernetes=v?([^,\s]+)")


class TargetRelease(msgspec.Struct, frozen=True, kw_only=True):
    """The release whose image this process runs in. `check_files` maps paths to their text."""

    version: str = ""
    kubernetes: str = ""
    check_files: Mapping[str, str] = msgspec.field(default_factory=dict)
    documentation_base: str = ""
    # None if the release has no manifests, or they cannot be read.
    manifests: tuple[Manifest, ...] | None = None
    objects: ReleaseObjects | None = None
    # Name in image-references -> pull spec; empty if they cannot be read.
    images: Mapping[str, str] = msgspec.field(default_factory=dict)


def load_release(folder: Path) -> TargetRelease:
    """Returns the release in `folder`, which has the layout of the image's root.

    Raises Terminal for unreadable metadata.
    """
    folder_of = folder / RELEASE
    release_manifests, objects = _manifests(folder)
    try:
        metadata = parse_release_metadata((folder_of / "release-metadata").read_bytes())
    except FileNotFoundError:
        return TargetRelease(check_files=_check_files(folder), manifests=release_manifests, objects=objects)
    except (OSError, MetadataError) as error:
        raise Terminal(f"{folder_of / 'release-metadata'} cannot be used: {error}", reason="ReleaseInvalid") from error
    declared = dict(metadata.metadata).get(BUILD_VERSIONS)
    # release-metadata may name the version; otherwise image-references has it per image.
    kubernetes = _kubernetes_version([declared]) or _kubernetes_version(_build_versions(folder_of / "image-references"))
    images: Mapping[str, str] = {}
    with suppress(OSError, MetadataError):
        images = parse_image_references((folder_of / "image-references").read_bytes()).images
    return TargetRelease(
        version=metadata.version,
        kubernetes=kubernetes,
        check_files=_check_files(folder),
        documentation_base=metadata.documentation_base,
        manifests=release_manifests,
        objects=objects,
        images=images,
    )


def with_kubernetes(release: TargetRelease, target: str) -> TargetRelease:
    """Returns the release with the Kubernetes version that it ships, if it does not say: 4.y has 1.(y+13).

    For other major versions it stays unknown.
    """
    version = parse(target)
    if release.kubernetes or version is None or version.major != _OPENSHIFT_4:
        return release
    return replace(release, kubernetes=f"1.{version.minor + 13}.0")


def python_checks(
    entry_points: Iterable[importlib.metadata.EntryPoint] | None = None,
) -> tuple[Check, ...]:
    """Returns the checks that packages in the image offer: an entry point names a `Check` or an iterable of them.

    One that cannot be loaded is always Unknown.
    """
    points = _installed_entry_points() if entry_points is None else entry_points
    offered: list[Check] = []
    for point in sorted(points, key=lambda point: point.name):
        try:
            loaded = point.load()
            checks = (loaded,) if isinstance(loaded, Check) else tuple(loaded)
        except Exception as error:  # noqa: BLE001 - a package that cannot be imported is one check's trouble
            problem = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
            checks = (unusable_check(point.name, problem),)
        wrong = next((check for check in checks if not isinstance(check, Check)), None)
        if wrong is not None:
            checks = (unusable_check(point.name, f"{point.value} offers a {type(wrong).__name__}, not a Check"),)
        offered += checks
    return tuple(offered)


@cache
def _installed_entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Returns the entry points of the installed packages; reading their metadata takes as long as a small dump."""
    return tuple(importlib.metadata.entry_points(group=ENTRY_POINTS))


def _check_files(folder: Path) -> dict[str, str]:
    """Returns the texts of the release's check files by path; none without the folder. Raises Terminal."""
    checks = folder / CHECKS_FOLDER
    try:
        paths = sorted(path for path in checks.iterdir() if path.suffix in SUFFIXES)
        return {f"{CHECKS_FOLDER}/{path.name}": path.read_text(encoding="utf-8", errors="replace") for path in paths}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Terminal(f"{checks} cannot be read: {os.strerror(error.errno or 0)}", reason="ReleaseInvalid") from error


def _manifests(folder: Path) -> tuple[tuple[Manifest, ...] | None, ReleaseObjects | None]:
    """Returns the release's manifests that checks compare with, and its objects; None if it has none that are readable.

    Templates are left out.
    """
    paths = [path for name in FOLDERS for path in sorted((folder / name).glob("*")) if path.suffix in SUFFIXES]
    if not paths:
        return None, None
    try:
        texts = [(str(path.relative_to(folder)), path.read_text(encoding="utf-8", errors="replace")) for path in paths]
        files = [(path, text) for path, text in texts if "{{" not in text or path.startswith(RELEASE)]
        return manifests.manifests_of_files(files), ReleaseObjects(files)
    except (OSError, manifests.BadManifests):
        return None, None


def _build_versions(references: Path) -> list[Any]:
    """Returns the values of the build versions' annotation, in an image-references file and in its tags."""
    try:
        document = kyaml.load(references.read_bytes(), name=references.name)
    except (OSError, kyaml.YamlError):
        return []
    spec = document.get("spec") if isinstance(document, dict) else None
    tags = spec.get("tags") if isinstance(spec, dict) else None
    holders = [document.get("metadata")] if isinstance(document, dict) else []
    holders += tags if isinstance(tags, list) else []
    annotations = [holder.get("annotations") for holder in holders if isinstance(holder, dict)]
    return [annotation_map.get(BUILD_VERSIONS) for annotation_map in annotations if isinstance(annotation_map, dict)]


def _kubernetes_version(texts: Iterable[Any]) -> str:
    matches = (_KUBERNETES.search(text) for text in texts if isinstance(text, str))
    return next((match[1] for match in matches if match), "")


def release_of(release_dir: str, image: str, access: Access) -> TargetRelease:
    """Returns the release in a folder or an image; without either, an empty one, so that only the built-in checks run.

    Raises Terminal if the release cannot be read, and InputError if the folder does not exist or has no release.
    """
    if release_dir:
        return load_release(folder_of_release(release_dir))
    if not image:
        return TargetRelease()
    from kubekit.oci.image_locations import parse_location, read_image_files

    with step(f"Reading image {image}"):
        files = read_image_files(parse_location(image), IMAGE_FOLDERS, access)[0]
    return release_in(files)


def folder_of_release(release_dir: str) -> Path:
    """Returns the folder of option `--release-dir`. Raises InputError if it does not exist or has no release in it.

    Without its release, a preflight would skip what depends on it and say nothing about the folder.
    """
    folder = Path(release_dir)
    if not folder.is_dir():
        raise InputError(f"--release-dir {release_dir}: there is no such folder")
    if not any(path.is_file() for name in IMAGE_FOLDERS for path in (folder / name).rglob("*")):
        names = ", ".join(f"{name}/" for name in IMAGE_FOLDERS)
        way_out = "give the folder to which `runup release extract` wrote a release"
        raise InputError(f"--release-dir {release_dir}: there is no file in {names} of it; {way_out}")
    return folder


def release_in(files: Mapping[str, bytes]) -> TargetRelease:
    """Returns the release in the files of an image, by their paths. Raises Terminal if it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="runup-release-") as scratch:
        for name, data in files.items():
            # `load_release` reads only what is directly in a folder.
            if name.count("/") > 1:
                continue
            path = Path(scratch) / name
            path.parent.mkdir(exist_ok=True)
            try:
                path.write_bytes(data)
            except OSError as error:
                text = f"file {name[:_MAX_SHOWN_NAME]} of the release cannot be read: {error.strerror}"
                raise Terminal(text, reason="ReleaseInvalid") from error
        return load_release(Path(scratch))
