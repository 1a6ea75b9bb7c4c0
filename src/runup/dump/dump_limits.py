"""Limits of what is read of a dump, which somebody else made: whatever it holds, reading it takes less than 1 GiB.

A file is refused before it is decoded, by its size and by what it would take: measured, decoding takes six bytes for
each of the text, and 180 for each mark that begins an item (a line, a comma, a colon, a bracket). A refused file is
named like a broken one, and the others count; a dump that is too deep, has too many files, or whose objects take too
much in all is refused as a whole.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kubekit.lang.files import MIB, contents
from runup.dump.dump_files import BadDump

MAX_FILE_BYTES = 128 * MIB
MAX_DECODING_BYTES = 512 * MIB
MAX_OBJECTS_BYTES = 448 * MIB
# Names below the dump's folder; must-gather's files have some nine.
MAX_DEPTH = 64
MAX_ENTRIES = 1_000_000

_MARKS = (b"\n", b",", b":", b"[", b"{", b"- ")


def text_of(file: Path) -> str:
    """Returns the text of a file. Raises OSError and UnicodeDecodeError, and ValueError if it would take too much."""
    data = contents(file, MAX_FILE_BYTES)
    if (wanted := 6 * len(data) + 180 * sum(data.count(mark) for mark in _MARKS)) > MAX_DECODING_BYTES:
        limit = f"more than the {MAX_DECODING_BYTES // MIB} MiB that one file may take"
        raise ValueError(f"decoding it would take {wanted // MIB} MiB, {limit}; give a dump of fewer objects")
    return data.decode("utf-8-sig")


def check_folder(folder: Path) -> None:
    """Raises BadDump for a folder that is too deep, or has too many entries. Links are not followed."""
    left, waiting = MAX_ENTRIES, [(os.fspath(folder), 1)]
    while waiting:
        path, depth = waiting.pop()
        if depth > MAX_DEPTH:
            text = f"{folder} has more than {MAX_DEPTH} folders in one another; give the folder of a dump"
            raise BadDump(text, reason="DumpTooDeep")
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    if left < 0:
                        text = f"{folder} has more than {MAX_ENTRIES} entries; give the folder of one dump"
                        raise BadDump(text, reason="DumpTooLarge")
        except OSError:
            continue  # whoever reads it tells what cannot be read


class Memory:
    """The memory that a dump's objects may still take."""

    def __init__(self, name: str, limit: int = MAX_OBJECTS_BYTES) -> None:
        self._name, self._limit, self._left = name, limit, limit

    def take(self, value: Any) -> None:
        """Counts an object with all that it holds. Raises BadDump."""
        stack = [value]
        while stack:
            each = stack.pop()
            self._left -= sys.getsizeof(each)
            if isinstance(each, dict):
                stack += each
                stack += each.values()
            elif isinstance(each, list):
                stack += each
        if self._left < 0:
            text = f"the objects of the dump {self._name} take more than {self._limit // MIB} MiB"
            raise BadDump(f"{text}; give a dump of fewer kinds or namespaces", reason="DumpTooLarge")
