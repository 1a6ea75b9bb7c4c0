"""The files of kernel modules: their names (modprobe(8), depmod(8)), and what their ELF header says.

modprobe treats `-` and `_` as equal, and reads files that are compressed with gzip, xz or zstd. A kernel module is a
relocatable ELF file of the kernel's machine (elf(5)).
"""

from __future__ import annotations

import lzma
import zlib
from typing import Literal

SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")


def module_of(filename: str) -> str:
    """Returns the name of the module in `filename`, with underscores; empty for any other file."""
    stem = next((filename.removesuffix(suffix) for suffix in SUFFIXES if filename.endswith(suffix)), "")
    return kernel_spelling(stem)


def kernel_of(path: str) -> str:
    """Returns the kernel in whose folder of modules `path` is; empty if it is in none."""
    folders = f"/{path}".rpartition("/")[0]
    return folders.partition("/lib/modules/")[2].partition("/")[0]


def kernel_spelling(module: str) -> str:
    """Returns a module's name as the kernel spells it, with underscores."""
    return module.replace("-", "_")


# ELF: the magic, 64 bits, then type and machine at 16 and 18, in the byte order that byte 5 says.
_MAGIC, _64_BITS, _HEAD = b"\x7fELF", 2, 20
_ORDERS: dict[int, Literal["little", "big"]] = {1: "little", 2: "big"}
_RELOCATABLE = 1
_MACHINES = {"amd64": (62, "little"), "arm64": (183, "little"), "ppc64le": (21, "little"), "s390x": (22, "big")}
# More than the dictionary that the kernel's own build lets xz use.
_MOST_XZ_BYTES = 128 * 1024 * 1024
_MOST_ZSTD_WINDOW = 128 * 1024 * 1024


def why_not_a_module(path: str, head: bytes, architecture: str) -> str:
    """Returns why the file at `path` that begins with `head` is not a kernel module for `architecture` (empty: any)."""
    if not head:
        return "is empty"
    try:
        plain = _unpack_head(path, head)
    except (zlib.error, lzma.LZMAError, EOFError, ValueError) as error:
        return f"cannot be unpacked: {error}"
    if len(plain) < _HEAD or not plain.startswith(_MAGIC) or plain[4] != _64_BITS or plain[5] not in _ORDERS:
        return "is not a 64-bit ELF file"
    order = _ORDERS[plain[5]]
    # e_type and e_machine of the ELF header, which is alike for 32 and 64 bits up to there.
    kind, machine = (int.from_bytes(plain[at : at + 2], order) for at in (16, 18))
    if kind != _RELOCATABLE:
        return "is an ELF file, but not a kernel module, which is relocatable"
    if architecture in _MACHINES and (machine, order) != _MACHINES[architecture]:
        machine_name = next(
            (name for name, known_machine in _MACHINES.items() if known_machine == (machine, order)),
            f"machine {machine}",
        )
        return f"is a kernel module for {machine_name}, not for {architecture}"
    return ""


def _unpack_head(path: str, head: bytes) -> bytes:
    """Returns the first bytes of a file's unpacked content. Raises an error of its unpacker, or ValueError."""
    if path.endswith(".gz"):
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD)
    if path.endswith(".xz"):
        return lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES).decompress(head, _HEAD)
    if path.endswith(".zst"):
        import zstandard  # few images need it

        try:
            unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_ZSTD_WINDOW)
            return unpacker.stream_reader(head).read(_HEAD)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
    return head
