"""Parses `release-metadata` and `image-references`: a release's name, its previous versions, and its images.

Rules: docs/reference/upstream.md 1.1. An error that makes a release unusable raises; a minor one (an invalid URL) is
collected.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from kubekit.lang import yaml as kyaml
from kubekit.lang.formats import parse_url
from kubekit.lang.version import Version, VersionError
from runup.report import documentation

KIND = "cincinnati-metadata-v0"
ARCHITECTURE_KEY = "release.openshift.io/architecture"
CHANNELS_KEY = "io.openshift.upgrades.graph.release.channels"


class MetadataError(ValueError):
    """The release cannot be used; the message says what is missing or wrong."""


class ReleaseMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `release-metadata`; `architecture` is `Multi` or empty, `problems` what was ignored and why."""

    version: str
    previous: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    metadata: tuple[tuple[str, Any], ...] = ()
    url: str = ""
    architecture: str = ""
    channels: tuple[str, ...] = ()
    documentation_base: str = ""
    problems: tuple[str, ...] = ()

    @property
    def semver(self) -> Version:
        """The version, which was validated by parsing."""
        return Version(self.version)


class ImageReferences(msgspec.Struct, frozen=True):
    """The content of `image-references`: the release's name, and the pull spec of each short image name."""

    name: str
    images: Mapping[str, str]
    created: datetime | None = None


def parse_release_metadata(data: bytes) -> ReleaseMetadata:
    """Parses the file `release-metadata`; raises MetadataError."""
    document = _parse_object(data, "release-metadata")
    if document.get("kind") != KIND:
        raise MetadataError(f"release-metadata: unrecognized kind {document.get('kind')!r}, expected {KIND!r}")
    version = document.get("version")
    if not isinstance(version, str) or not version:
        raise MetadataError("release-metadata: has no version")
    try:
        Version(version)
    except VersionError as error:
        raise MetadataError(f"release-metadata: {error}") from error
    details = _or_empty(document.get("metadata"), {})
    if not isinstance(details, dict):
        raise MetadataError("release-metadata: metadata is not a map")
    problems: list[str] = []
    url = _text_in(details, "url", "metadata.url", problems)
    try:
        parse_url(url)
    except ValueError as error:
        problems.append(f"metadata.url {url!r} is not a URL: {error}")
        url = ""
    architecture = details.get(ARCHITECTURE_KEY)
    if architecture not in (None, "multi"):
        problems.append(f"metadata[{ARCHITECTURE_KEY}] is {architecture!r}, expected 'multi'")
    channels = _text_in(details, CHANNELS_KEY, f"metadata[{CHANNELS_KEY}]", problems)
    base = _text_in(details, documentation.KEY, f"metadata[{documentation.KEY}]", problems)
    try:
        base = documentation.read_base(base) if base else ""
    except documentation.BadBase as error:
        problems.append(f"metadata[{documentation.KEY}] {base!r} {error}")
        base = ""
    return ReleaseMetadata(
        version=version,
        previous=_text_tuple(document, "previous"),
        next=_text_tuple(document, "next"),
        metadata=tuple(sorted(details.items())),
        url=url,
        architecture="Multi" if architecture == "multi" else "",
        channels=tuple(sorted(channel for channel in channels.split(",") if channel)),
        documentation_base=base,
        problems=tuple(problems),
    )


def parse_image_references(data: bytes) -> ImageReferences:
    """Parses the file `image-references`, JSON or YAML; raises MetadataError."""
    document = _image_stream(data)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        raise MetadataError("image-references: has no metadata.name")
    created = None
    with suppress(KeyError, ValueError, TypeError):
        created = datetime.fromisoformat(metadata["creationTimestamp"])
    return ImageReferences(name, _images(document), created)


def named_images(data: bytes) -> Mapping[str, str]:
    """Returns the pull specs in a component's own `image-references`, which has no name; raises MetadataError."""
    return _images(_image_stream(data))


def check_same_version(metadata: ReleaseMetadata, references: ImageReferences) -> None:
    """Raises MetadataError if the two files are not of the same release."""
    if metadata.version != references.name:
        raise MetadataError(
            f"version from image-references ({references.name}) differs from release-metadata ({metadata.version})"
        )


def _image_stream(data: bytes) -> dict[str, Any]:
    """Returns the ImageStream of `image-references`. Raises MetadataError."""
    document = _parse_object(data, "image-references")
    if document.get("kind") != "ImageStream" or document.get("apiVersion") not in {"image.openshift.io/v1", "v1"}:
        kind_and_version = f"{document.get('kind')} of {document.get('apiVersion')}"
        raise MetadataError(
            f"image-references: is {kind_and_version}, expected an ImageStream of image.openshift.io/v1"
        )
    return document


def _parse_object(data: bytes, name: str) -> dict[str, Any]:
    """Returns a YAML or JSON object. Raises MetadataError, which names the file."""
    try:
        document = kyaml.load(data, name=name)
    except kyaml.YamlError as error:
        raise MetadataError(str(error)) from error
    if not isinstance(document, dict):
        raise MetadataError(f"{name}: is not an object")
    return document


def _or_empty(value: Any, empty: Any) -> Any:
    """Returns `empty` for null, which counts as absent; an empty value of another type is not replaced."""
    return empty if value is None else value


def _text_in(details: dict[str, Any], key: str, name: str, problems: list[str]) -> str:
    """Returns the text below `key`; empty, with a problem that has `name`, if the value is not text."""
    value = details.get(key, "")
    if not isinstance(value, str):
        problems.append(f"{name} is not text")
        return ""
    return value


def _text_tuple(document: dict[str, Any], key: str) -> tuple[str, ...]:
    value = _or_empty(document.get(key), [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise MetadataError(f"release-metadata: {key} is not a list of versions")
    return tuple(value)


def _images(document: dict[str, Any]) -> dict[str, str]:
    """Returns the pull specs of a release's images by name, from its image-references."""
    spec = document.get("spec")
    tags = spec.get("tags") if isinstance(spec, dict) else None
    pullspecs: dict[str, str] = {}
    for tag in tags if isinstance(tags, list) else []:
        source = tag.get("from") if isinstance(tag, dict) else None
        if isinstance(source, dict) and source.get("kind") == "DockerImage" and isinstance(source.get("name"), str):
            pullspecs[str(tag.get("name", ""))] = source["name"]
    return pullspecs
