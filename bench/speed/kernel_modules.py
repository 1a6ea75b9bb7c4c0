"""The image stage in bytes and memory: a huge layer whose module comes first, or not at all, and fifty images at once.

Each case is a process of its own against the sandbox's registry, so that what it keeps is its own. `megabytes` is how
large the huge layer is.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench import measure
from bench.speed.kernel_modules_look import KERNEL
from kubekit.oci import images
from kubekit.oci.images import Config, Descriptor, Manifest, RootFS
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.kernelmodules.control.module_check import MAX_CONCURRENT_IMAGES
from runup.sandbox.processes.services import Registry

KO = f"opt/lib/modules/{KERNEL}/bench.ko"
PLAIN = "application/vnd.oci.image.layer.v1.tar"
MIB = 1024 * 1024
FIFTY = 50


def run(megabytes: int = 2048, each: int = 16) -> dict[str, Any]:
    """Bytes fetched, peak memory and time of each case; of fifty images a layer has `each` mebibytes."""
    with tempfile.TemporaryDirectory(prefix="runup-bench-") as scratch:
        folder = Path(scratch)
        layout = Layout.create(folder / "layout")
        first = put(layout, [(KO, 1), ("tail", megabytes)])
        last = put(layout, [("head", megabytes)])
        many = [put(layout, [(f"head-{at}", each), (KO, 1)]) for at in range(FIFTY)]
        with serving(layout.path) as host:
            return {
                "layer_mib": megabytes,
                "none": looked(folder, host, []),
                "module_first": looked(folder, host, [first]),
                "module_absent": looked(folder, host, [last]),
                "fifty_at_once": {"each_mib": each, "at_once": MAX_CONCURRENT_IMAGES, **looked(folder, host, many)},
            }


def looked(folder: Path, host: str, digests: Sequence[str]) -> dict[str, Any]:
    """What one process needs to look for the module in these images."""
    outcome = folder / "outcome.json"
    job = {"images": [f"{host}/bench/kmods@{digest}" for digest in digests], "outcome": str(outcome)}
    ran = measure.process([sys.executable, "-m", "bench.speed.kernel_modules_look", json.dumps(job)])
    assert ran.code == 0, "the process failed"
    found = json.loads(outcome.read_text())
    return {**found, "seconds": round(ran.seconds, 2), "peak_mib": round(ran.peak_mib, 1)}


def put(layout: Layout, files: Sequence[tuple[str, int]]) -> str:
    """An image of one layer with files of so many mebibytes; its digest."""
    digest, size = put_layer(layout, files)
    config = msgspec.json.encode(Config(architecture="amd64", os="linux", rootfs=RootFS(diff_ids=(digest,))))
    layout.add_blob(config)
    manifest = Manifest(
        schema_version=2,
        media_type=images.MANIFEST,
        config=Descriptor(media_type=images.CONFIG, digest=sha256(config), size=len(config)),
        layers=(Descriptor(media_type=PLAIN, digest=digest, size=size),),
    )
    data = msgspec.json.encode(manifest)
    layout.add_blob(data)
    found = Descriptor(media_type=images.MANIFEST, digest=sha256(data), size=len(data))
    layout.add_manifest(found)
    return found.digest


def put_layer(layout: Layout, files: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """A layer that is written as it is made: it may be larger than the memory."""
    # Each file begins as a kernel module for x86-64 does (elf(5)), and is random otherwise, so that it does not pack.
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00\x3e\x00"
    block = head + os.urandom(MIB - len(head))
    hashed = hashlib.sha256()
    with layout.incoming() as writer:
        size = 0
        for piece in pieces(files, block):
            writer.write(piece)
            hashed.update(piece)
            size += len(piece)
        digest = f"sha256:{hashed.hexdigest()}"
        writer.commit(digest)
    return digest, size


def pieces(files: Sequence[tuple[str, int]], block: bytes) -> Iterator[bytes]:
    """An archive, a mebibyte at a time."""
    for name, mebibytes in files:
        header = tarfile.TarInfo(name)
        header.size = mebibytes * MIB
        yield header.tobuf()
        for _ in range(mebibytes):
            yield block
    yield io.BytesIO(bytes(2 * tarfile.BLOCKSIZE)).getvalue()


@contextmanager
def serving(layout: Path) -> Iterator[str]:
    """`host:port` of a registry with these images."""
    started = threading.Event()
    told: list[Any] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with Registry(layout) as registry:
            end: Callable[[], object] = lambda: loop.call_soon_threadsafe(stop.set)  # noqa: E731
            told.extend((registry.host, end))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(90)
        yield told[0]
    finally:
        told[1]()
        thread.join(90)
