"""Fuzzed layers of images: how they are packed, what is in them, and the documents that name them; for `bench.fuzz`."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import zstandard

from bench.fuzz.changes import changed_bytes, changed_document, encoded
from bench.fuzz.outcomes import ACCEPTED, FOLDER, Wrong, check_text
from bench.hostile.images import FILE, header, image_of
from kubekit.lang.files import remove_tree
from kubekit.oci import images
from kubekit.oci.file_search import FileQuery, Search
from kubekit.oci.images import Descriptor
from kubekit.oci.layers import open_image, read_folders, unpack_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from kubekit.oci.registry_errors import OciError
from kubekit.oci.tarstream import Budget, Pieces, checked_entries, find_in_layer, open_layer

_MIB = 1 << 20
_FOUND, _SEARCHED, _LISTED, _UNPACKED, _DOCUMENT = range(5)

_KINDS = (b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"x", b"g", b"L", b"K", b"S", b"V", b"\xff")
_NAMES = (
    *(b"release-manifests/release-metadata", b"release-manifests", b"a", b"a/b", b"./a", b"/a", b"../a", b"a/../../b"),
    *(b".wh.a", b"a/.wh..wh..opq", b".wh.", b".wh...", b"a//b", b"", b".", b"a\nb", b"\xff\xfe", b"d/" * 40 + b"f"),
)
_LINKS = (b"a", b"/a", b"../../etc/passwd", b"/", b"", b".", b"release-manifests", b"a/b/../..", b"\xff")
_RECORDS = (
    *(b"path=release-manifests/release-metadata", b"path=../x", b"linkpath=/etc", b"size=3", b"size=99999999999"),
    *(b"size=-1", b"GNU.sparse.major=1", b"path=", b"mtime=nan", b"=", b"path=a\0b", b"path=" + b"d/" * 300),
)
_TYPES = (images.LAYER_GZIP, *sorted(images.LAYERS), "application/x-other")


def _tar(drawn: random.Random) -> bytes:
    parts = []
    for _ in range(drawn.randint(1, 12)):
        kind = drawn.choice(_KINDS if drawn.random() < 0.5 else (b"0", b"5", b"2", b"1"))
        body = _body(drawn, kind)
        size = drawn.choice((len(body), len(body), len(body), 1 << 40, drawn.randrange(2000)))
        parts.append(header(drawn.choice(_NAMES), kind, size, drawn.choice(_LINKS)) + body + bytes(-len(body) % 512))
    return b"".join(parts) + bytes(drawn.choice((0, 512, 1024, 4096)))


def _body(drawn: random.Random, kind: bytes) -> bytes:
    if kind in (b"x", b"g"):
        return b"".join(_record(drawn.choice(_RECORDS), drawn) for _ in range(drawn.randint(1, 3)))
    if kind in (b"L", b"K"):
        return drawn.choice((drawn.choice(_NAMES) + b"\0", b"n/" * drawn.choice((10, 200, 3000))))
    return bytes(drawn.choice((0, 0, 5, 513))) if kind in (b"0", b"\0") else b""


def _record(text: bytes, drawn: random.Random) -> bytes:
    size = len(text) + 3 + (len(text) + 4 > 9) + (len(text) + 5 > 99)
    return b"%d %s\n" % (size if drawn.random() < 0.9 else drawn.randrange(200), text)


def make(drawn: random.Random) -> bytes:
    """Returns a byte for the type, one for the way to read, then the packed layer, or a document of an image."""
    kind, way = drawn.randrange(len(_TYPES)), drawn.randrange(5)
    if way == _DOCUMENT:
        return bytes([kind, way]) + _document(drawn)
    tar = _tar(drawn)
    if drawn.random() < 0.4:
        tar = changed_bytes(drawn, tar, (header(b"a"), bytes(512), b"\x80"), 4 * _MIB)
    packed = _packed(_TYPES[kind], tar)
    return bytes([kind, way]) + (changed_bytes(drawn, packed, (b"\x1f\x8b\x08",)) if drawn.random() < 0.3 else packed)


def _packed(media_type: str, tar: bytes) -> bytes:
    packing = images.LAYERS.get(media_type, "")
    if packing == "gzip":
        return gzip.compress(tar, compresslevel=1, mtime=0)
    return zstandard.ZstdCompressor().compress(tar) if packing == "zstd" else tar


def _document(drawn: random.Random) -> bytes:
    layer = {"mediaType": images.LAYER_GZIP, "digest": sha256(b"a"), "size": 1, "annotations": {"a": "b"}}
    platform = {"platform": {"os": "linux", "architecture": "amd64"}}
    document = drawn.choice(
        (
            {"schemaVersion": 2, "mediaType": images.MANIFEST, "config": layer, "layers": [layer] * 3},
            {"schemaVersion": 2, "mediaType": images.MANIFEST, "manifests": [layer | platform] * 3},
            {"architecture": "amd64", "os": "linux", "config": {"Labels": {"a": "b"}}, "rootfs": {"diff_ids": ["a"]}},
        )
    )
    data = encoded(changed_document(drawn, document))[: images.MAX_DOCUMENT_BYTES]
    words = (b"null", b"[", b'{"a":')
    return data if drawn.random() < 0.5 else changed_bytes(drawn, data, words, images.MAX_DOCUMENT_BYTES)


def read(data: bytes) -> str:
    """Returns what came of such an input."""
    media_type, way, packed = _TYPES[data[0]], data[1], data[2:]
    try:
        if way == _DOCUMENT:
            for kind in (images.Manifest, images.Index, images.Config):
                images.decode_document(kind, packed, "it")
        elif way == _FOUND:
            find_in_layer(_pieces(packed), _blob(packed, media_type), FILE, limit=_MIB, budget=Budget.of("it"))
        elif way == _SEARCHED:
            _search(packed, media_type)
        else:
            _use_image(packed, way)
    except OciError as error:
        return check_text(str(error))
    return ACCEPTED


def _blob(packed: bytes, media_type: str) -> Descriptor:
    return Descriptor(media_type=media_type, digest=sha256(packed), size=len(packed))


def _pieces(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + 65536] for at in range(0, len(packed), 65536))


def _search(packed: bytes, media_type: str) -> None:
    query = FileQuery(folder="release-manifests", wanted=frozenset({"release-metadata"}), key=os.path.basename)
    search, budget = Search("it", query), Budget.of("it")
    with open_layer(Pieces(_pieces(packed)), _blob(packed, media_type), budget) as (archive, _):
        search.layer(checked_entries(archive, budget), archive.pieces)


def _use_image(packed: bytes, way: int) -> None:
    folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="fuzz-"))
    try:
        layout = Layout.create(folder / "inner" / "layout")
        blob = layout.add_blob(packed)
        digest = image_of(layout, [(blob, len(packed), _unpacked_digest(packed))])
        if way == _LISTED:
            read_folders(open_image(layout, digest), ("release-manifests",))
            return
        unpack_image(open_image(layout, digest), folder / "inner" / "out" / "image")
        beside = [each.name for place in (folder, folder / "inner") for each in place.iterdir()]
        if sorted(beside) != ["inner", "layout", "out"]:
            raise Wrong("something was written outside of the image's folder")
        if outside := next(_links_outside(folder / "inner" / "out" / "image"), ""):
            raise Wrong(f"{outside} leads outside of the image's folder")
    finally:
        remove_tree(folder)


def _unpacked_digest(packed: bytes) -> str:
    digest = hashlib.sha256()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            # In pieces: what this takes would be counted as the reader's.
            while piece := file.read(_MIB):
                digest.update(piece)
    except (OSError, EOFError, zlib.error):
        return sha256(packed)
    return f"sha256:{digest.hexdigest()}"


def _links_outside(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.islink(path):  # noqa: PTH114
                target = os.path.normpath(os.path.join(folder, os.readlink(path)))  # noqa: PTH115, PTH118
                if not f"{target}/".startswith(f"{root}/"):
                    yield path
