"""Images for tests, layer by layer: what is in them is said as a table, how they are packed is chosen."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import zstandard

from kubekit.oci import images
from kubekit.oci.images import Config, Descriptor, Manifest, RootFS
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256

PLAIN = "application/vnd.oci.image.layer.v1.tar"
PACKED = {
    images.LAYER_GZIP: gzip.compress,
    images.LAYER_ZSTD: lambda data: zstandard.ZstdCompressor().compress(data),
    PLAIN: bytes,
}


UNSAID = b"no content was given"


@dataclass(frozen=True)
class Made:
    """An entry of a layer; a file unless it says otherwise."""

    name: str
    data: bytes = UNSAID
    type: bytes = tarfile.REGTYPE
    link: str = ""

    def __post_init__(self) -> None:
        """Files that are given no content have some, and kernel modules that of one for x86-64."""
        if self.data == UNSAID:
            object.__setattr__(self, "data", packed(self.name, elf()) if ".ko" in self.name else b"x")


def elf(machine: int = 62, kind: int = 1, *, bits: int = 2, big: bool = False) -> bytes:
    """The head of a relocatable ELF file (elf(5)), by default of x86-64."""
    order = ">" if big else "<"
    return (
        b"\x7fELF" + bytes([bits, 2 if big else 1, 1]) + bytes(9) + struct.pack(f"{order}HH", kind, machine) + bytes(44)
    )


def packed(name: str, data: bytes) -> bytes:
    """As the name of a kernel module's file says that it is packed."""
    pack = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
    return pack.get(name.rpartition(".")[2], bytes)(data)


def folder(name: str) -> Made:
    """A folder."""
    return Made(name, b"", tarfile.DIRTYPE)


def symlink(name: str, to: str) -> Made:
    """A symbolic link."""
    return Made(name, b"", tarfile.SYMTYPE, to)


def hardlink(name: str, to: str) -> Made:
    """A hard link."""
    return Made(name, b"", tarfile.LNKTYPE, to)


def tar(entries: Sequence[Made]) -> bytes:
    """An archive, byte by byte the names that are given."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.size = entry.type, entry.link, len(entry.data)
            archive.addfile(info, io.BytesIO(entry.data))
    return stream.getvalue()


def put_image(
    layout: Layout,
    *layers: Sequence[Made] | bytes,
    name: str = "",
    media_type: str = images.LAYER_GZIP,
    manifest_type: str = images.MANIFEST,
    architecture: str = "amd64",
) -> Descriptor:
    """An image of these layers, the lowest first (bytes: a tar as it is), named in the layout if a name is given."""
    tars = [layer if isinstance(layer, bytes) else tar(layer) for layer in layers]
    blobs = [PACKED[media_type](data) for data in tars]
    for blob in blobs:
        layout.add_blob(blob)
    rootfs = RootFS(diff_ids=tuple(sha256(data) for data in tars))
    config = msgspec.json.encode(Config(architecture=architecture, os="linux", rootfs=rootfs))
    layout.add_blob(config)
    manifest = Manifest(
        schema_version=2,
        media_type=manifest_type,
        config=Descriptor(media_type=images.CONFIG, digest=sha256(config), size=len(config)),
        layers=tuple(Descriptor(media_type=media_type, digest=sha256(blob), size=len(blob)) for blob in blobs),
    )
    return put_document(
        layout, msgspec.json.encode(manifest), media_type=images.MANIFEST, name=name, architecture=architecture
    )


def put_index(layout: Layout, *entries: Descriptor, name: str = "", media_type: str = images.INDEX) -> Descriptor:
    """An index of images."""
    data = msgspec.json.encode(images.Index(schema_version=2, media_type=media_type, manifests=entries))
    return put_document(layout, data, images.INDEX, name)


def put_document(layout: Layout, data: bytes, media_type: str, name: str = "", architecture: str = "") -> Descriptor:
    """A manifest or index, and how it is pointed at."""
    layout.add_blob(data)
    platform = images.Platform(architecture=architecture, os="linux") if architecture else None
    found = Descriptor(media_type=media_type, digest=sha256(data), size=len(data), platform=platform)
    layout.add_manifest(msgspec.structs.replace(found, platform=None), name)
    return found


def layout_in(folder: Path) -> Layout:
    """An empty layout."""
    return Layout.create(folder / "layout")
