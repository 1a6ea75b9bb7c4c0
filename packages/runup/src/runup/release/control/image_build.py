"""Builds images from files, reproducibly (sorted, no times, no owners): the same input gives the same digest.

`build_release` builds a release image, for the sandbox and `runup release new`: one layer with the payload's folders
and the operator, a config with the entrypoint, and the two metadata files if the caller has none.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.oci import images, reference, registry_errors
from kubekit.oci.layers import Image
from kubekit.oci.layout import Layout

OPERATOR_PATH = "usr/bin/cluster-version-operator"
METADATA_PATH = "release-manifests/release-metadata"
IMAGE_REFERENCES_PATH = "release-manifests/image-references"
# A fixed time of creation, so that the digest is reproducible.
EPOCH = "1970-01-01T00:00:00Z"

THIN_OPERATOR = b"""#!/usr/bin/env python3
import sys

from runup.cli.operator.entry import main

if __name__ == "__main__":
    sys.exit(main())
"""
"""The operator of a thin image: the node that runs it supplies the Python interpreter and runup."""


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image in a layout; `digest` is its manifest's, `tag` its name there."""

    layout: Path
    digest: str
    tag: str

    def pullspec(self, repository: str) -> str:
        """Returns the pull spec by digest of the image in `registry/repository`."""
        return f"{repository}@{self.digest}"


def build_release(
    layout: Path,
    *,
    version: str,
    files: Mapping[str, bytes],
    previous: Sequence[str] = (),
    following: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    image_references: Mapping[str, str] | None = None,
    operator: bytes | None = THIN_OPERATOR,
    base: Image | None = None,
    tag: str = "",
    created: str = EPOCH,
    architecture: str = "amd64",
    labels: Mapping[str, str] | None = None,
) -> BuiltImage:
    """Writes a release image into `layout` (created if needed) and tags it `tag`, by default its version.

    `files` maps paths in the image (`manifests/...`, `release-manifests/...`, `preflight-checks/...`) to their bytes;
    release-metadata and image-references are written unless they are among them. `operator` is the content of
    /usr/bin/cluster-version-operator, None for an image without one. `base` is an image to build upon, which then
    supplies the operator and the architecture. Raises CannotWrite, BadImage.
    """
    tags = [
        {"name": name, "from": {"kind": "DockerImage", "name": image}}
        for name, image in sorted((image_references or {}).items())
    ]
    content = {
        METADATA_PATH: release_metadata(version, previous, following, metadata or {}),
        IMAGE_REFERENCES_PATH: _pretty_json(
            {
                "kind": "ImageStream",
                "apiVersion": "image.openshift.io/v1",
                "metadata": {"name": version, "creationTimestamp": created},
                "spec": {"lookupPolicy": {"local": False}, "tags": tags},
            }
        ),
        **files,
    }
    executables = frozenset({OPERATOR_PATH})
    if operator is not None and base is None:
        content.setdefault(OPERATOR_PATH, operator)
    thin = {images.THIN_LABEL: "thin"} if base is None else {}
    upon = base.config.config if base is not None else images.Execution()
    return build_image(
        layout,
        [layer_of(content, executables)],
        tag=tag or version,
        config=replace(
            upon,
            entrypoint=(f"/{OPERATOR_PATH}",),
            cmd=(),
            labels={**upon.labels, images.RELEASE_LABEL: version, **thin, **(labels or {})},
        ),
        created=created,
        architecture=(base.config.architecture if base is not None else "") or architecture,
        base=base,
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """A gzipped tar, with the digest of the uncompressed tar."""

    data: bytes
    diff_id: str


def layer_of(files: Mapping[str, bytes], executables: frozenset[str] = frozenset()) -> Layer:
    """Returns a layer with `files` and their parent folders, identical for the same input.

    Another zlib implementation may compress differently, so digests are compared only within one machine's Python.
    Raises BadImage for a path outside, or a file that is a folder, too.
    """
    folders: set[str] = set()
    for name in files:
        parts = name.split("/")
        if name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
            raise registry_errors.BadImage(f"{name!r} is not a path inside an image")
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    if clash := folders & set(files):
        raise registry_errors.BadImage(f"{min(clash)!r} would be a file and a folder")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted({*files, *folders}):
            entry = tarfile.TarInfo(name)
            if name in files:
                entry.size = len(files[name])
                entry.mode = 0o755 if name in executables else 0o644
                archive.addfile(entry, io.BytesIO(files[name]))
            else:
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o755
                archive.addfile(entry)
    return Layer(gzip.compress(tar.getvalue(), compresslevel=6, mtime=0), reference.sha256(tar.getvalue()))


def build_image(
    layout: Path,
    layers: Sequence[Layer],
    *,
    tag: str,
    config: images.Execution,
    created: str = EPOCH,
    architecture: str = "amd64",
    base: Image | None = None,
) -> BuiltImage:
    """Writes an image of `layers` (the lowest first), upon `base`, into `layout`; blobs first, then the tag."""
    target = Layout.create(layout)
    under: tuple[images.Descriptor, ...] = ()
    if base is not None:
        under = base.manifest.layers
        for layer in under:
            base.layout.copy_blob(layer.digest, target)
    below = base.config.rootfs.diff_ids if base is not None else ()
    rootfs = images.RootFS(type="layers", diff_ids=(*below, *(each.diff_id for each in layers)))
    described = images.Config(architecture=architecture, os="linux", created=created, config=config, rootfs=rootfs)
    # The image spec requires `type`, which msgspec would omit like every other default.
    document = msgspec.to_builtins(described)
    document["rootfs"] = {"type": "layers", "diff_ids": list(rootfs.diff_ids)}
    manifest = images.Manifest(
        schema_version=2,
        media_type=images.MANIFEST,
        config=_add(target, images.CONFIG, msgspec.json.encode(document, order="sorted")),
        layers=(*under, *(_add(target, images.LAYER_GZIP, each.data) for each in layers)),
    )
    descriptor = _add(target, images.MANIFEST, msgspec.json.encode(manifest))
    target.add_manifest(descriptor, tag)
    return BuiltImage(layout, descriptor.digest, tag)


def release_metadata(
    version: str, previous: Sequence[str], following: Sequence[str], metadata: Mapping[str, Any]
) -> bytes:
    """Returns the file `release-metadata` (docs/reference/upstream.md 1.1)."""
    document: dict[str, Any] = {"kind": "cincinnati-metadata-v0", "version": version, "previous": sorted(previous)}
    if following:
        document["next"] = sorted(following)
    if metadata:
        document["metadata"] = dict(metadata)
    return _pretty_json(document)


def _pretty_json(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _add(layout: Layout, media_type: str, data: bytes) -> images.Descriptor:
    return images.Descriptor(media_type=media_type, digest=layout.add_blob(data), size=len(data))
