"""For which platforms a compiled file is, by its first bytes: ELF as Linux has it, Mach-O as macOS has it."""

from __future__ import annotations

import struct
from pathlib import Path

_SUFFIXES = (".so", ".dylib", ".pyd", ".dll")
_HEAD = 256
_ELF = {62: "linux-amd64", 183: "linux-arm64"}
_MACH = {0x01000007: "darwin-amd64", 0x0100000C: "darwin-arm64"}
_OF_MANY = b"\xca\xfe\xba\xbe"


def platforms(head: bytes) -> frozenset[str]:
    """By krew's names (`os-arch`), of a file that begins with `head`; several if it is universal, none if unknown."""
    if head.startswith(b"\x7fELF") and len(head) >= 20:
        return frozenset(filter(None, [_ELF.get(struct.unpack_from("<H", head, 18)[0])]))
    if head.startswith(b"\xcf\xfa\xed\xfe") and len(head) >= 8:
        return frozenset(filter(None, [_MACH.get(struct.unpack_from("<I", head, 4)[0])]))
    if head.startswith(_OF_MANY) and len(head) >= 8:
        count = struct.unpack_from(">I", head, 4)[0]
        places = range(8, min(8 + 20 * count, len(head) - 3), 20)
        return frozenset(filter(None, (_MACH.get(struct.unpack_from(">I", head, place)[0]) for place in places)))
    return frozenset()


def files(folder: Path) -> dict[Path, frozenset[str]]:
    """Every compiled file below `folder`, and its platforms."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                its = platforms(file.read(_HEAD))
            if its or path.suffix in _SUFFIXES:
                found[path] = its
    return found
