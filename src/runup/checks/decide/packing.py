"""A release's files in, the same with the file that says what its checks read (`rights`) out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runup.checks.decide import rights
from runup.checks.decide.declarative import DeclarativeError, declared_check
from runup.preflight.decide.accounts import Right
from runup.release.decide.manifest import parse_manifests
from runup.release.decide.payload import CHECKS, is_cases


def with_reads(files: Mapping[str, bytes], own: Iterable[Right], base: bytes | None = None) -> dict[str, bytes]:
    """A release's `files` with the file of reads; one that they bring stays. `own` is what the checks of this release's
    Python read, `base` the file of the image below, whose Python counts in its place.

    Raises BadReads for a base's that cannot be used.
    """
    if rights.FILE in files:
        return dict(files)
    python = own if base is None else rights.of_file(base)[0]
    return {**files, rights.FILE: rights.to_file(python, of_files(files))}


def of_files(files: Mapping[str, bytes]) -> tuple[Right, ...]:
    """What the declarative checks among `files` (path in the image -> bytes) read; one that is unusable reads nothing.

    All that a release carries count, also those that a cluster may not get: which it gets changes while it runs.
    """
    found = []
    for path, data in sorted(files.items()):
        if not path.startswith(f"{CHECKS}/") or path == rights.FILE or is_cases(path):
            continue
        text = data.decode("utf-8", errors="replace")
        for manifest in parse_manifests(path, text)[0]:
            try:
                found.append(declared_check(manifest.object, file=path, text=text))
            except DeclarativeError:
                continue
    return rights.of_checks(found)
