"""Images that a registry could offer to hurt whoever reads them, each with what must be said; for tests and the bench.

Every digest and size holds: what is wrong is inside. Nothing big is kept in memory: a layer is packed as it is made.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kubekit.oci import images
from kubekit.oci.images import Config, Descriptor, Manifest, RootFS
from kubekit.oci.layers import open_image, read_folders, unpack_image
from kubekit.oci.layout import Layout
from kubekit.oci.registry_errors import ImageNotFound, OciError
from kubekit.oci.tarstream import Budget, find_in_layer

GIB, MIB = 1 << 30, 1 << 20
FILE = "release-manifests/release-metadata"
_ZEROS = bytes(MIB)


@dataclass(frozen=True)
class Hostile:
    """`tar()` gives the unpacked layer in pieces; `said` is what a refusal says, by whoever reads or unpacks it."""

    name: str
    tar: Callable[[], Iterator[bytes]]
    said: str


def header(name: bytes, kind: bytes = b"0", size: int = 0, link: bytes = b"") -> bytes:
    """A ustar header with a checksum that holds, whatever its fields say."""
    octal = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    block = bytearray(512)
    for at, value in ((0, name[:100]), (100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"), (124, octal)):
        block[at : at + len(value)] = value
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[157 : 157 + len(link[:100])] = link[:100]
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _zeros(size: int) -> Iterator[bytes]:
    for _ in range(size // MIB):
        yield _ZEROS
    yield bytes(size % MIB)


def _with_header(kind: bytes, size: int, content: Callable[[int], Iterator[bytes]] = _zeros) -> Iterator[bytes]:
    yield header(b"././@LongLink", kind, size)
    yield from content(size)
    yield bytes(-size % 512)
    yield header(b"a") + bytes(1024)


def _record(size: int) -> Iterator[bytes]:
    """A pax header of `size` bytes that is one record."""
    head = b"%d comment=" % size
    yield head
    yield from _zeros(size - len(head) - 1)
    yield b"\n"


def _many(count: int, kind: bytes = b"0") -> Iterator[bytes]:
    # The same thousand names again and again: a second file of a name replaces the first, and is an entry all the same.
    thousand = b"".join(header(b"d/%03d" % number, kind) for number in range(1000))
    for _ in range(count // 1000):
        yield thousand
    yield bytes(1024)


def _deep(folders: int, count: int) -> Iterator[bytes]:
    """Files with so many folders above each, none of them another file's."""
    for number in range(count):
        name = b"%05d" % number + b"/d" * folders + b"\0"
        yield header(b"././@LongLink", b"L", len(name)) + name + bytes(-len(name) % 512) + header(b"a")
    yield bytes(1024)


def _file(size: int, name: bytes = b"big") -> Iterator[bytes]:
    yield header(name, size=size)
    yield from _zeros(size)
    yield bytes(-size % 512 + 1024)


def _chain(kind: bytes, count: int, body: bytes) -> Iterator[bytes]:
    block = header(b"PaxHeader", kind, len(body)) + body + bytes(-len(body) % 512)
    for _ in range(0, count, 100):
        yield block * 100
    yield header(b"a") + bytes(1024)


def _globals() -> Iterator[bytes]:
    for number in range(2000):
        value = (b"%06d" % number) * 5000
        body = b"comment%d=" % number + value + b"\n"
        size = len(body) + 6
        body = b"%d %s" % (size, body)
        yield header(b"pax_global_header", b"g", len(body)) + body + bytes(-len(body) % 512)
        yield header(b"f%d" % number)
    yield bytes(1024)


def _sparse() -> Iterator[bytes]:
    block = bytearray(header(b"s", b"S", 0))
    block[482] = 1  # "more follows", for ever
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    yield bytes(block)
    more = bytearray(512)
    more[504] = 1
    for _ in range(2000):
        yield bytes(more) * 1000


def _one(*blocks: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter((*blocks, bytes(1024)))


def _pax(records: bytes) -> bytes:
    return header(b"PaxHeader", b"x", len(records)) + records + bytes(-len(records) % 512)


IMAGES = (
    Hostile("a pax header of 3 GiB", lambda: _with_header(b"x", 3 * GIB, _record), "a header has 3221225472 bytes"),
    Hostile("a GNU long name of 3 GiB", lambda: _with_header(b"L", 3 * GIB), "a header has 3221225472 bytes"),
    Hostile("a GNU long link of 3 GiB", lambda: _with_header(b"K", 3 * GIB), "a header has 3221225472 bytes"),
    Hostile("a global header of 3 GiB", lambda: _with_header(b"g", 3 * GIB, _record), "a header has 3221225472 bytes"),
    Hostile("a header that claims 2 to the 80th bytes", _one(header(b"a", b"x", 1 << 80)), "a header has"),
    Hostile("a name of 100 KiB", lambda: _with_header(b"L", 100 << 10, lambda n: iter((b"x" * n,))), "a name has"),
    Hostile("a path of 1,900 names", lambda: _deep(1900, 1), "a path has 1901 names"),
    Hostile("800 paths of 800 names", lambda: _deep(800, 800), "a path has 801 names"),
    Hostile("20,000 paths of 250 names", lambda: _deep(249, 20_000), "has more than 100000 entries"),
    Hostile("1,000,000 empty files", lambda: _many(1_000_000), "has more than 100000 entries"),
    Hostile("1,000,000 folders", lambda: _many(1_000_000, b"5"), "has more than 100000 entries"),
    Hostile("a file of 3 GiB of zeros", lambda: _file(3 * GIB), "200 times"),
    Hostile("a file that claims 8 EiB", _one(header(b"big", size=1 << 63)), "unpacks to more than|ends in the middle"),
    Hostile("extended headers without end", lambda: _chain(b"x", 100_000, b"9 a=bcde\n"), "extended headers"),
    Hostile("long names without end", lambda: _chain(b"L", 100_000, b"name\0"), "extended headers"),
    Hostile("a sparse file whose map never ends", _sparse, "sparse"),
    Hostile("a pax sparse file", _one(_pax(b"22 GNU.sparse.major=1\n"), header(b"s")), "sparse"),
    Hostile("a pax size that is no number", _one(_pax(b"13 size=1e99\n"), header(b"a")), "size is"),
    Hostile("a pax record longer than its header", _one(_pax(b"99 path=a\n"), header(b"a")), "malformed"),
    Hostile("a pax record of no length", _one(_pax(b"0 path=a\n"), header(b"a")), "malformed"),
    Hostile("one path for all", _one(header(b"g", b"g", 10) + b"10 path=a\n" + bytes(502), header(b"a")), "global"),
    Hostile("a checksum that does not hold", _one(header(b"a").replace(b"ustar", b"usTar")), "checksum"),
    Hostile("random bytes", lambda: iter((hashlib.sha512(b"x").digest() * 64,)), "is broken"),
)
"""Layers that are refused, by whoever reads them."""

HARMLESS = (Hostile("global headers of 60 MB in all", _globals, ""),)
"""Layers that may be read: they cost time, and must cost no memory."""


def write(folder: Path, row: Hostile) -> tuple[Layout, str]:
    """An image with that one layer, in a layout of its own; gives its digest."""
    layout = Layout.create(folder)
    with layout.incoming() as writer:
        for piece in row.tar():
            writer.write(_packed(piece))
        size = writer.size
        blob = writer.commit()
    # Nobody gets so far with a hostile one as to notice, and 3 GiB take their time.
    diff_id = NOWHERE if row.said else _diff_id(row)
    return layout, image_of(layout, [(blob, size, diff_id)])


NOWHERE = "sha256:" + "0" * 64


def _diff_id(row: Hostile) -> str:
    unpacked = hashlib.sha256()
    for piece in row.tar():
        unpacked.update(piece)
    return f"sha256:{unpacked.hexdigest()}"


@functools.lru_cache(maxsize=4)
def _packed(piece: bytes) -> bytes:
    """A gzip member of its own, as the format allows: what repeats is packed once."""
    return gzip.compress(piece, compresslevel=6, mtime=0)


def image_of(layout: Layout, layers: list[tuple[str, int, str]]) -> str:
    """The digest of an image of these layers: digest, size, digest of what is unpacked."""
    config = msgspec.to_builtins(Config(architecture="amd64", os="linux", rootfs=RootFS()))
    config["rootfs"] = {"type": "layers", "diff_ids": [diff_id for _, _, diff_id in layers]}
    data = msgspec.json.encode(config)
    manifest = Manifest(
        schema_version=2,
        media_type=images.MANIFEST,
        config=Descriptor(media_type=images.CONFIG, digest=layout.add_blob(data), size=len(data)),
        layers=tuple(Descriptor(media_type=images.LAYER_GZIP, digest=blob, size=size) for blob, size, _ in layers),
    )
    return named(layout, msgspec.json.encode(manifest))


def named(layout: Layout, manifest: bytes) -> str:
    """Put a manifest, of whatever content, into the layout; gives its digest."""
    digest = layout.add_blob(manifest)
    layout.add_manifest(Descriptor(media_type=images.MANIFEST, digest=digest, size=len(manifest)), "1")
    return digest


def documents() -> Iterator[tuple[str, bytes]]:
    """Manifests of just under the size limit, that decode to as much as JSON can."""
    room = images.MAX_DOCUMENT_BYTES - 200
    head = json.dumps({"schemaVersion": 2, "mediaType": images.MANIFEST})[:-1].encode()
    for name, item in (
        ("empty objects", b"{},"),
        ("small objects", b'{"a":1},'),
        ("empty lists", b"[],"),
        ("nulls", b"null,"),
    ):
        yield name, head + b',"layers":[' + item * (room // len(item)) + b"null]}"
    size = room // 12
    yield "annotations", head + b',"annotations":{' + b",".join(b'"%07d":""' % n for n in range(size)) + b',"x":null}}'
    yield "brackets", b"[" * room


SLOW = ("1,000,000", "3 GiB of zeros")
"""Part of the names of rows that take seconds."""


def read(layout: Layout, digest: str) -> bytes:
    """A release's metadata, as the operator reads them: out of the blobs as they arrive; raises OciError."""
    manifest = images.decode_document(Manifest, layout.read(digest), digest)
    budget = Budget.of(digest)
    for layer in reversed(manifest.layers):
        with layout.open_blob(layer.digest) as blob:
            pieces = iter(lambda: blob.read(1 << 16), b"")
            found = find_in_layer(pieces, layer, FILE, limit=MIB, budget=budget)
        if isinstance(found, bytes):
            return found
    raise ImageNotFound(f"{digest}: the image has no file {FILE}")


def ways(layout: Layout, digest: str, row: Hostile) -> Iterator[tuple[str, str]]:
    """Each way to use the image, and what it was refused with (empty: it was not)."""
    yield "read", _outcome(lambda: read(layout, digest))
    if not any(part in row.name for part in SLOW):
        yield "listed", _outcome(lambda: read_folders(open_image(layout, digest), ("release-manifests",)))
    if "files" not in row.name and row.said:
        yield "unpacked", _outcome(lambda: unpack_image(open_image(layout, digest), layout.path / "out"))


def _outcome(use: Callable[[], object]) -> str:
    try:
        use()
    except ImageNotFound:
        return ""
    except OciError as error:
        return error.message
    return ""


def main() -> None:
    """Read every row in this process, and say what came of it and how much memory the process took at most, in KiB.

    No file of more than 8 MiB can be written from here: what would be unpacked first and refused then shows.
    """
    folder = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * MIB, 8 * MIB))
    for number, row in enumerate((*IMAGES, *HARMLESS)):
        layout, digest = write(folder / str(number), row)
        started = time.perf_counter()
        for way, said in ways(layout, digest, row):
            print(json.dumps([row.name, way, said]))
            print(json.dumps(["seconds", f"{row.name}: {way}", round(time.perf_counter() - started, 3)]))
            started = time.perf_counter()
    for number, (name, manifest) in enumerate(documents()):
        layout = Layout.create(folder / f"document-{number}")
        digest = layout.add_blob(manifest)
        print(json.dumps([name, "opened", _outcome(lambda: open_image(layout, digest))]))  # noqa: B023
    print(json.dumps(["peak", "", peak_kib()]))


def peak_kib() -> int:
    """The most memory that this process had.

    Linux counts in ru_maxrss what the process that started this one had before it, so it is the second choice.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
