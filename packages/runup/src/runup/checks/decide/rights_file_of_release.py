"""Adds the file that declares which rights a release's checks need (`READS_FILE`) to the release's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.api.preflight_reads_v1 import Right
from runup.checks.decide import rights
from runup.checks.decide.declarative import DeclarativeError, declared_check
from runup.release.decide.manifest import parse_manifests
from runup.release.decide.payload import CHECKS, is_cases


def with_rights_file(
    files: Mapping[str, bytes], release_rights: Iterable[Right], base: bytes | None = None
) -> dict[str, bytes]:
    """Returns a release's `files` with the file of rights; one that they already contain stays.

    `release_rights` are those of this release's Python checks. `base` is the file of the image below: if there is one,
    the rights of that image's Python checks count instead.
    Raises BadReads if `base` cannot be used.
    """
    if READS_FILE in files:
        return dict(files)
    python_rights = release_rights if base is None else rights.rights_of_file(base)[0]
    return {**files, READS_FILE: rights.to_file(python_rights, rights_of_files(files))}


def rights_of_files(files: Mapping[str, bytes]) -> tuple[Right, ...]:
    """Returns the rights that the declarative checks among `files` (path in the image -> bytes) need.

    An unusable check needs none. All checks of a release count, also those that the cluster does not get now: which
    checks it gets may change while the target runs.
    """
    checks = []
    for path, data in sorted(files.items()):
        if not path.startswith(f"{CHECKS}/") or path == READS_FILE or is_cases(path):
            continue
        text = data.decode("utf-8", errors="replace")
        for manifest in parse_manifests(path, text)[0]:
            try:
                checks.append(declared_check(manifest.object, file=path, text=text))
            except DeclarativeError:
                continue
    return rights.rights_of_checks(checks)
