"""Semantic versions of releases: strict, no leading `v`, build metadata ignored when comparing."""

from __future__ import annotations

from functools import total_ordering

from kubekit.lang.pattern import Pattern

# The regular expression of https://semver.org, for version 2.0.0.
_SEMVER = Pattern(
    r"(?P<major>0|[1-9][0-9]*)\.(?P<minor>0|[1-9][0-9]*)\.(?P<patch>0|[1-9][0-9]*)"
    r"(?:-(?P<prerelease>(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)

# Longer texts are refused: `int` refuses numbers of more than 4300 digits.
MAX_LENGTH = 4096


class VersionError(ValueError):
    """The text is not a semantic version."""


@total_ordering
class Version:
    """A semantic version that keeps its original text."""

    __slots__ = ("_key", "major", "minor", "patch", "prerelease", "text")

    def __init__(self, text: str) -> None:
        match = _SEMVER.fullmatch(text) if isinstance(text, str) and len(text) <= MAX_LENGTH else None
        if match is None:
            raise VersionError(f"{text!r} is not a semantic version such as 5.2.0 or 5.2.0-rc.1")
        self.major, self.minor, self.patch = (int(match[number]) for number in (1, 2, 3))
        self.text = text
        self.prerelease = match["prerelease"] or ""
        """The part between `-` and `+`, or an empty string."""
        # SemVer section 11: a prerelease comes before its release, and numeric identifiers come before others.
        parts = self.prerelease.split(".")
        identifiers = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        self._key = (self.major, self.minor, self.patch, not self.prerelease, identifiers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    # Equal versions may differ in build metadata, so that is not part of the hash.
    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def parse(text: str) -> Version | None:
    """Returns the version in `text`, or None if it is not one."""
    try:
        return Version(text)
    except VersionError:
        return None


def same_minor(first: Version, other: Version) -> bool:
    """Returns whether both are of one minor version: an update or a way back between them is within it."""
    return (first.major, first.minor) == (other.major, other.minor)


def leaves_minor(current: str, target: str) -> bool:
    """Returns whether an update leaves the minor version upwards; an unreadable version counts as leaving it."""
    current_version, target_version = parse(current), parse(target)
    # An unreadable version is treated like the riskier case.
    return current_version is None or target_version is None or is_minor_or_major(current_version, target_version)


def is_minor_or_major(current: Version, target: Version) -> bool:
    """Returns whether an update from `current` to `target` leaves the minor version upwards."""
    return (target.major, target.minor) > (current.major, current.minor)
