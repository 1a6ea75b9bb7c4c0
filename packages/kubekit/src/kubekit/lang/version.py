"""Semantic versions of releases: strict, no leading `v`, build metadata ignored when comparing."""

from __future__ import annotations

from functools import total_ordering
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import semver


class VersionError(ValueError):
    """The text is not a semantic version."""


@total_ordering
class Version:
    """A semantic version that keeps its original text."""

    __slots__ = ("_parsed", "text")

    def __init__(self, text: str) -> None:
        from semver import Version as SemVer  # takes as long to import as half an interpreter to start

        try:
            self._parsed: semver.Version = SemVer.parse(text)
        except (ValueError, TypeError) as error:
            raise VersionError(f"{text!r} is not a semantic version such as 5.2.0 or 5.2.0-rc.1") from error
        self.text = text

    @property
    def major(self) -> int:
        """The major number."""
        return int(self._parsed.major)

    @property
    def minor(self) -> int:
        """The minor number."""
        return int(self._parsed.minor)

    @property
    def patch(self) -> int:
        """The patch number."""
        return int(self._parsed.patch)

    @property
    def prerelease(self) -> str:
        """The part between `-` and `+`, or an empty string."""
        return self._parsed.prerelease or ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._parsed.compare(other._parsed) == 0

    def __lt__(self, other: Version) -> bool:
        return bool(self._parsed.compare(other._parsed) < 0)

    # Equal versions may differ in build metadata, so that is not part of the hash.
    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))

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
