"""Semantic versions of releases: strict, no leading `v`, build metadata ignored when comparing."""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

import semver

# The numbers of a server, kubelet or tool, which may have a `v` before them and anything behind them.
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_TYPED = re.compile(r"[vV]\d")
# Longer texts are refused: `int` refuses numbers of more than 4300 digits.
MAX_LENGTH = 4096


class VersionError(ValueError):
    """The text is not a semantic version."""


@total_ordering
class Version:
    """A semantic version that keeps its original text."""

    __slots__ = ("_parsed", "major", "minor", "patch", "prerelease", "text")

    def __init__(self, text: str) -> None:
        try:
            if len(text) > MAX_LENGTH:
                raise ValueError("too long for a version")
            self._parsed = semver.Version.parse(text)
        except (ValueError, TypeError) as error:
            raise VersionError(f"{text!r} is not a semantic version such as 5.2.0 or 5.2.0-rc.1") from error
        self.major, self.minor, self.patch = self._parsed.major, self._parsed.minor, self._parsed.patch
        self.text = text
        self.prerelease = self._parsed.prerelease or ""
        """The part between `-` and `+`, or an empty string."""

    @property
    def minor_version(self) -> tuple[int, int]:
        """The major and the minor number."""
        return self.major, self.minor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._parsed == other._parsed

    def __lt__(self, other: Version) -> bool:
        return self._parsed < other._parsed

    # Equal versions may differ in build metadata, so that is not part of the hash.
    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


@lru_cache(256)
def leading_numbers(text: str) -> tuple[int, int, int] | None:
    """Returns the three numbers with which a version such as `v1.34.2+k3s1` begins, or None without them."""
    match = _NUMBERS.match(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def parse(text: str) -> Version | None:
    """Returns the version in `text`, or None if it is not one."""
    try:
        return Version(text)
    except VersionError:
        return None


def without_v(text: str) -> str:
    """Returns a version as a user typed it (`v5.1.0`) without the `v` and blanks around it; other texts unchanged."""
    stripped = text.strip()
    return stripped[1:] if _TYPED.match(stripped) else stripped


def same_minor(first: Version, other: Version) -> bool:
    """Returns whether both are of one minor version: an update or a way back between them is within it."""
    return first.minor_version == other.minor_version


def leaves_minor(current: str, target: str) -> bool:
    """Returns whether an update leaves the minor version upwards; an unreadable version counts as leaving it."""
    current_version, target_version = parse(current), parse(target)
    # An unreadable version is treated like the riskier case.
    return current_version is None or target_version is None or is_minor_or_major(current_version, target_version)


def is_minor_or_major(current: Version, target: Version) -> bool:
    """Returns whether an update from `current` to `target` leaves the minor version upwards."""
    return target.minor_version > current.minor_version
