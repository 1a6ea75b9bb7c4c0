"""The documents that make up an image (OCI image-spec 1.1, and Docker's equivalents), as far as they are read."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kubekit.oci.registry_errors import BadImage

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
# The types of configs that name the machine; other artifacts have other ones.
CONFIGS = frozenset({CONFIG, "application/vnd.docker.container.image.v1+json"})
LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

INDEXES = frozenset({INDEX, DOCKER_LIST})
MANIFESTS = frozenset({MANIFEST, DOCKER_MANIFEST})
LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"
LAYERS = {
    LAYER_GZIP: "gzip",
    "application/vnd.docker.image.rootfs.diff.tar.gzip": "gzip",
    LAYER_ZSTD: "zstd",
    "application/vnd.docker.image.rootfs.diff.tar.zstd": "zstd",
    "application/vnd.oci.image.layer.v1.tar": "",
    "application/vnd.docker.image.rootfs.diff.tar": "",
}
"""Layer media types and their compression, including those that buildah writes with `--compression-format zstd`."""

REF_NAME = "org.opencontainers.image.ref.name"
THIN_LABEL = "io.runup.image"
RELEASE_LABEL = "io.openshift.release"

# Maximum size of a manifest, index or config: a release's have 1 to 50 KB, and up to 40 times that decoded.
MAX_DOCUMENT_BYTES = 1024 * 1024
T = TypeVar("T", bound="_Document")


class _Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of the documents: unknown fields are ignored, defaults are left out."""


class Platform(_Document, frozen=True):
    """The machine type for which an image of an index is built."""

    architecture: str = ""
    os: str = ""


class Descriptor(_Document, frozen=True, kw_only=True):
    """A reference to a blob: its media type, its digest and its size in bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}
    platform: Platform | None = None


class Index(_Document, frozen=True):
    """Several images behind one name, or a layout's `index.json`."""

    schema_version: int = 0
    media_type: str = ""
    manifests: tuple[Descriptor, ...] = ()
    annotations: dict[str, str] = {}


class Manifest(_Document, frozen=True, kw_only=True):
    """A image: its config and its layers, the lowest first."""

    config: Descriptor
    schema_version: int = 0
    media_type: str = ""
    layers: tuple[Descriptor, ...] = ()
    annotations: dict[str, str] = {}


class RootFS(_Document, frozen=True):
    """Digests of the uncompressed layers."""

    type: str = "layers"
    diff_ids: tuple[str, ...] = msgspec.field(default=(), name="diff_ids")


class Execution(_Document, frozen=True, rename="pascal", kw_only=True):
    """The settings with which a container of the image starts."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    working_dir: str = ""
    user: str = ""
    labels: dict[str, str] = {}


class Config(_Document, frozen=True, kw_only=True):
    """An image's configuration."""

    architecture: str = ""
    os: str = ""
    created: str = ""
    config: Execution = Execution()
    rootfs: RootFS = RootFS()


def decode_document(kind: type[T], data: bytes, subject: str) -> T:
    """Returns `data` as a `kind`; nulls, which Go writes, are absent. Raises BadImage, which names `subject`."""
    try:
        try:
            return msgspec.json.decode(data, type=kind)
        # Go writes null for empty slices and maps.
        except msgspec.ValidationError:
            if b"null" not in data:
                raise
        document = msgspec.json.decode(data)
        _drop_nulls(document)
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadImage(f"{subject} is not a valid {kind.__name__.lower()}: {error}") from error


def _drop_nulls(value: object) -> None:
    """Removes the members that are null, at any depth, from `value` itself."""
    if isinstance(value, dict):
        for key in [key for key, member in value.items() if member is None]:
            del value[key]
        for member in value.values():
            _drop_nulls(member)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item)
