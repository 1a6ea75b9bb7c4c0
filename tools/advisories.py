"""Looks up the packages of `requirements.lock` in a database of known vulnerabilities, without a network.

    curl -O https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip
    .venv/bin/python tools/advisories.py all.zip

The database is a zip of JSON documents in OSV's format (https://ossf.github.io/osv-schema/), such as OSV publishes for
PyPI. Its date is that of its newest change; one of more than LONGEST_DAYS ago is refused, since what came after it is
not known. Exits with 1 if an advisory concerns a pinned version, with 2 if the database cannot be judged by.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
LONGEST_DAYS = 14
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)

Advisory = dict[str, Any]


def pins(lock: str) -> dict[str, str]:
    """Returns the version of each package of a lock file's text."""
    return {canonicalize_name(name): version for name, version in _PIN.findall(lock)}


def advisories(database: Path) -> Iterator[Advisory]:
    """Yields every advisory of the zip. Raises OSError, BadZipFile or ValueError if it is not one."""
    with zipfile.ZipFile(database) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def concerns(advisory: Advisory, pinned: dict[str, str]) -> str:
    """Returns the first pinned package that an advisory concerns, as `name==version`; empty if it concerns none."""
    if advisory.get("withdrawn"):
        return ""
    for affected in advisory.get("affected", ()):
        package = affected.get("package", {})
        name = canonicalize_name(package.get("name", ""))
        if package.get("ecosystem") == "PyPI" and name in pinned and _is_affected(affected, pinned[name]):
            return f"{name}=={pinned[name]}"
    return ""


def _is_affected(affected: Advisory, version: str) -> bool:
    ranges = (each for each in affected.get("ranges", ()) if each.get("type") == "ECOSYSTEM")
    return version in affected.get("versions", ()) or any(_is_in(each.get("events", ()), version) for each in ranges)


def _is_in(events: list[dict[str, str]], version: str) -> bool:
    """Returns whether the last event up to `version` introduced the vulnerability. An unreadable bound counts as so."""
    found, here = False, Version(version)
    for event in events:
        kind, bound = next(iter(event.items()))
        try:
            at = Version("0" if bound == "0" else bound)
        except InvalidVersion:
            return True
        if kind == "introduced" and here >= at:
            found = True
        elif (kind == "fixed" and here >= at) or (kind == "last_affected" and here > at):
            found = False
    return found


def main(words: list[str], now: datetime) -> int:
    """Prints what was found; see the exit codes above."""
    parser = argparse.ArgumentParser(description="known vulnerabilities of what runup installs")
    parser.add_argument("database", type=Path)
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.lock")
    args = parser.parse_args(words)
    pinned = pins(args.lock.read_text(encoding="utf-8"))
    newest, found = "", []
    try:
        for advisory in advisories(args.database):
            newest = max(newest, advisory.get("modified", ""))
            if which := concerns(advisory, pinned):
                found.append(f"{which}: {advisory['id']} {advisory.get('summary', '')}".rstrip())
        as_of = datetime.fromisoformat(newest)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        print(f"error: {args.database} is not a zip of OSV's advisories: {error}", file=sys.stderr)
        return 2
    print(*sorted(found), sep="\n", end="\n" if found else "")
    print(f"{len(found)} advisories concern the {len(pinned)} packages of {args.lock.name}, as of {as_of:%Y-%m-%d}")
    if now - as_of > timedelta(days=LONGEST_DAYS):
        print(f"error: {args.database} is older than {LONGEST_DAYS} days: get a new one", file=sys.stderr)
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], datetime.now(UTC)))
