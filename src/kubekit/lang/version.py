"""SemVer, as releases use it: strict, no leading `v`, build metadata ignored when comparing."""

from __future__ import annotations

from functools import total_ordering
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import semver


class VersionError(ValueError):
    """The text is no semantic version."""


@total_ordering
class Version:
    """A semantic version that remembers how it was written."""

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
        """The first number."""
        return int(self._parsed.major)

    @property
    def minor(self) -> int:
        """The second number."""
        return int(self._parsed.minor)

    @property
    def patch(self) -> int:
        """The third number."""
        return int(self._parsed.patch)

    @property
    def prerelease(self) -> str:
        """What stands between `-` and `+`, or nothing."""
        return self._parsed.prerelease or ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._parsed.compare(other._parsed) == 0

    def __lt__(self, other: Version) -> bool:
        return bool(self._parsed.compare(other._parsed) < 0)

    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def parse(text: str) -> Version | None:
    """The version that `text` is, or None where it is none."""
    try:
        return Version(text)
    except VersionError:
        return None


def is_minor_or_major(current: Version, target: Version) -> bool:
    """Whether going from `current` to `target` leaves the minor version upwards."""
    return (target.major, target.minor) > (current.major, current.minor)
