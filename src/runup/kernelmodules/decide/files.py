"""The file of a kernel module: which names it may have (modprobe(8), depmod(8)).

modprobe takes `-` and `_` for the same, and reads what is packed with gzip, xz or zstd.
"""

from __future__ import annotations

SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")


def module_of(filename: str) -> str:
    """The module that a file's name says it is, in modprobe's own spelling; empty for another file."""
    stem = next((filename.removesuffix(suffix) for suffix in SUFFIXES if filename.endswith(suffix)), "")
    return spelled(stem)


def spelled(module: str) -> str:
    """A module's name as the kernel has it."""
    return module.replace("-", "_")
