"""Limits for reading a dump, which is untrusted: whatever it holds, reading it takes less than 1 GiB of memory.

A file is refused before it is decoded, by its size and by the memory that decoding it would take: measured, decoding
takes six bytes for each of the text, and 180 for each mark that begins an item (a line, a comma, a colon, a bracket). A
list of objects in JSON that would take too much at once is decoded item by item (`large_lists`). A refused file is
named like a broken one, and the others count; a dump that is too deep, has too many files, or whose objects take too
much in all is refused as a whole.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

from kubekit.lang.files import MIB, read_limited
from kubekit.lang.text import printable
from runup.dump.dump_files import BadDump

MAX_FILE_BYTES = 128 * MIB
MAX_DECODING_BYTES = 512 * MIB
MAX_OBJECTS_BYTES = 448 * MIB
# Names below the dump's folder; must-gather's files have some nine.
MAX_DEPTH = 64
MAX_ENTRIES = 1_000_000

WAY_OUT = "give a dump of fewer namespaces"
_MARKS = (b"\n", b",", b":", b"[", b"{", b"- ")


class TooMuchToDecode(ValueError):
    """The text would take more memory than one file may, if it were decoded at once."""


def read_dump_file(file: Path) -> bytes:
    """Returns the bytes of a file. Raises OSError, and ValueError if it has too many."""
    try:
        return read_limited(file, MAX_FILE_BYTES)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ValueError(f"it holds more than {MAX_FILE_BYTES // MIB} MiB; {WAY_OUT}") from error


def decoding_bytes(data: bytes) -> int:
    """Returns the memory that decoding `data` takes at most."""
    return 6 * len(data) + 180 * sum(data.count(mark) for mark in _MARKS)


def text_of(data: bytes) -> str:
    """Returns the text of a file. Raises UnicodeDecodeError, and TooMuchToDecode."""
    if (needed_bytes := decoding_bytes(data)) > MAX_DECODING_BYTES:
        limit = f"more than the {MAX_DECODING_BYTES // MIB} MiB that one file may take"
        way_out = f"give it as a list in JSON, or {WAY_OUT}"
        raise TooMuchToDecode(f"decoding it would take {needed_bytes // MIB} MiB, {limit}; {way_out}")
    return data.decode("utf-8-sig")


def size_of(value: Any) -> int:
    """Returns the memory of a decoded value with all that it holds."""
    size, stack = 0, [value]
    while stack:
        member = stack.pop()
        size += sys.getsizeof(member)
        if isinstance(member, dict):
            stack += member
            stack += member.values()
        elif isinstance(member, list):
            stack += member
    return size


def check_folder(folder: Path) -> None:
    """Raises BadDump for a folder that is too deep, or has too many entries. Links are not followed."""
    remaining, waiting = MAX_ENTRIES, [(os.fspath(folder), 1)]
    while waiting:
        path, depth = waiting.pop()
        if depth > MAX_DEPTH:
            text = f"{folder} has more than {MAX_DEPTH} folders in one another; give the folder of a dump"
            raise BadDump(text, reason="DumpTooDeep")
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    remaining -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    if remaining < 0:
                        text = f"{folder} has more than {MAX_ENTRIES} entries; give the folder of one dump"
                        raise BadDump(text, reason="DumpTooLarge")
        except OSError:
            continue  # whoever reads it shows what cannot be read


class Memory:
    """The memory that a dump's objects may still take, and the part of each file in what they have taken."""

    def __init__(self, name: str, limit: int = MAX_OBJECTS_BYTES) -> None:
        self._name, self._limit, self._left = name, limit, limit
        self._by_file: dict[str, int] = {}

    def take(self, value: Any, file: str) -> None:
        """Counts an object of `file` with all that it holds. Raises BadDump, which names the file that takes most."""
        size = size_of(value)
        self._left -= size
        self._by_file[file] = self._by_file.get(file, 0) + size
        if self._left < 0:
            most = max(self._by_file, key=self._by_file.__getitem__)
            text = f"the objects of the dump {self._name} take more than {self._limit // MIB} MiB"
            text += f", the most of them {printable(most)} with {self._by_file[most] // MIB} MiB"
            raise BadDump(f"{text}; {WAY_OUT}, or collect what checks read: runup dump collect", reason="DumpTooLarge")
