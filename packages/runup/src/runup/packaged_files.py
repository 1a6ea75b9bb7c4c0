"""Finds the folders that are packaged with runup, such as `deploy/manifests`, in an installation or in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
# An installation first: its own folder. In a checkout, the files are at the root of the repository.
_ROOTS = (_PACKAGE, *_PACKAGE.parents[3:4])


def packaged_files(folder: str, pattern: str) -> list[Path]:
    """Returns the files of `folder` that match `pattern`, sorted; an empty list if the folder is missing."""
    return next((files for root in _ROOTS if (files := sorted((root / folder).glob(pattern)))), [])
