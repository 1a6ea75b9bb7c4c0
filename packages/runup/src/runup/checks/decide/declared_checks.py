"""Reads the checks that a release declares in its folder `/preflight-checks`.

In: the files of that folder, as text. Out: checks. A file that is not a valid check does not stop the others: it
becomes a check that is Unknown and says why, because an unread check is not a clear one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runup.checks.decide.declarative import DeclarativeError, declared_check
from runup.checks.decide.model import Check, CheckFailure, Context, Finding, Snapshot
from runup.release.decide.inclusion import INCLUDE_PREFIX, Excluded, Filters, include
from runup.release.decide.manifest import parse_manifests
from runup.release.decide.payload import is_cases

_FOR_NO_PROFILE = (
    f'metadata.annotations names no profile, so no cluster would run it: add {INCLUDE_PREFIX}<profile>: "true", '
    f"usually {INCLUDE_PREFIX}self-managed-high-availability"
)


class UnusableCheck(CheckFailure):
    """Error raised by a check of the release that cannot be run."""


def declared_checks(files: Mapping[str, str], filters: Filters) -> tuple[Check, ...]:
    """Returns every check of `files` (path -> text) that the cluster gets, in the order of the paths.

    An error in a file becomes an unusable check.
    """
    checks: list[Check] = []
    for path, text in sorted(files.items()):
        if is_cases(path):
            continue
        manifests, errors = parse_manifests(path, text)
        checks += [unusable_check(path, str(error)) for error in errors]
        for manifest in manifests:
            if not any(key.startswith(INCLUDE_PREFIX) for key in manifest.annotations or ()):
                # No cluster would run this check, which nobody intends. If it were left out, it would look like a check
                # that found nothing.
                checks.append(unusable_check(manifest.identity.name, f"{path}: {_FOR_NO_PROFILE}"))
            elif not isinstance(include(manifest, filters), Excluded):
                try:
                    checks.append(declared_check(manifest.object, file=manifest.file, text=text))
                except DeclarativeError as error:
                    checks.append(unusable_check(manifest.identity.name, str(error)))
    return tuple(checks)


def unusable_check(name: str, why: str) -> Check:
    """Returns a check that is always Unknown, in place of a check that could not be loaded."""

    def run(_snapshot: Snapshot, _context: Context) -> Iterable[Finding]:
        raise UnusableCheck(why)

    # The name as in the file, so that users can search for it; a risk's name may have no other characters.
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name.rpartition("/")[2])
    return Check(
        name=name, component="release", reads=(), run=run, unknown_risk=f"PreflightCheckUnusable-{plain}"[:256]
    )
