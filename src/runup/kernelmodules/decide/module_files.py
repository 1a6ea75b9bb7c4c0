"""The file names of kernel modules (modprobe(8), depmod(8)).

modprobe treats `-` and `_` as equal, and reads files that are compressed with gzip, xz or zstd.
"""

from __future__ import annotations

SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")


def module_of(filename: str) -> str:
    """Returns the name of the module in `filename`, with underscores; empty for any other file."""
    stem = next((filename.removesuffix(suffix) for suffix in SUFFIXES if filename.endswith(suffix)), "")
    return spelled(stem)


def spelled(module: str) -> str:
    """Returns a module's name as the kernel spells it, with underscores."""
    return module.replace("-", "_")
