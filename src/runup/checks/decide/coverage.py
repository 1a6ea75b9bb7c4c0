"""Whether a check that covered a source version is still there in every release that can be updated to from it.

A check belongs to the target release. Whoever removes one from a later release, or makes its range narrower, takes it
away from clusters that still skip over the release in between (the reviewers' question of September 2026).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kubekit.lang.version import Version
from runup.checks.decide.model import Check, Context

# No check's range depends on the time.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Gap:
    """`check` of release `had` covers `source`; `lost` can be updated to from there, and has no such check."""

    check: str
    had: Version
    lost: Version
    source: Version

    def __str__(self) -> str:
        return (
            f"{self.check} of {self.had} covers updates from {self.source}; {self.lost} can be updated to from "
            f"{self.source} and does not cover it"
        )


def gaps(releases: Mapping[Version, Sequence[Check]], edges: Collection[tuple[Version, Version]]) -> Iterator[Gap]:
    """Every gap between a release and a later one; `edges` are (source, target) of the updates that are offered."""
    for had in sorted(releases):
        for lost in sorted(version for version in releases if version > had):
            for check in releases[had]:
                for source in sorted(source for source, target in edges if target == lost):
                    if covers(check, source, had) and not any(
                        _same(check, other) and covers(other, source, lost) for other in releases[lost]
                    ):
                        yield Gap(check.name, had, lost, source)


def covers(check: Check, source: Version, target: Version) -> bool:
    """Whether the check is for that update."""
    return source < target and check.applies_to(Context(source, target, NEVER))


def _same(check: Check, other: Check) -> bool:
    """The same check: by its name, or by the risk that administrators accept."""
    return check.name == other.name or (bool(check.unknown_risk) and check.unknown_risk == other.unknown_risk)
