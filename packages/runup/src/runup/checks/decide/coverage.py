"""Finds updates that an earlier release's check covered and that a later release no longer covers.

A check belongs to the target release. Removing one from a later release, or narrowing its range, takes it away from
clusters that can still skip the release in between (the reviewers' question of September 2026).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kubekit.lang.version import Version
from runup.checks.decide.model import Check, Context

# Replaces `Context.now`, because no check's range depends on the time.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in coverage: `check` of release `had` covers updates from `source`.

    `lost` can be updated to from `source` as well, and has no such check.
    """

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
    """Yields every gap between a release and a later one; `edges` are the (source, target) pairs of offered updates."""
    # Sorted throughout, so that the same releases give the same gaps in the same order.
    for had in sorted(releases):
        for lost in sorted(version for version in releases if version > had):
            for check in releases[had]:
                for source in sorted(source for source, target in edges if target == lost):
                    if is_covered(check, source, had) and not any(
                        (
                            check.name == other.name
                            or (bool(check.unknown_risk) and check.unknown_risk == other.unknown_risk)
                        )
                        and is_covered(other, source, lost)
                        for other in releases[lost]
                    ):
                        yield Gap(check.name, had, lost, source)


def is_covered(check: Check, source: Version, target: Version) -> bool:
    """Returns whether the check applies to the update from `source` to `target`."""
    return source < target and check.applies_to(Context(source=source, target=target, now=NEVER))
