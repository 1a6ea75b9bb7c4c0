"""`status.history`: newest first, one entry for each release that the cluster was updated to."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from runup.api.config_v1 import Release, UpdateHistory

MAX_ENTRIES = 100
Entries = tuple[UpdateHistory, ...]


def begin_entry(
    entries: Entries,
    release: Release,
    *,
    now: datetime,
    verified: bool = False,
    accepted_risks: str = "",
    state: Literal["Completed", "Partial"] = "Partial",
) -> Entries:
    """Returns `entries` with `release` as the newest: merged if it is that already, otherwise added."""
    # The API requires an image in every entry.
    if not release.image:
        return entries
    if entries and _is_same_release(entries[0], release):
        newest = replace(
            entries[0],
            version=entries[0].version or release.version,
            image=entries[0].image or release.image,
            verified=entries[0].verified or verified,
            accepted_risks=accepted_risks or entries[0].accepted_risks,
        )
        return (newest, *entries[1:])
    new = UpdateHistory(
        state=state,
        started_time=now,
        completion_time=now if state == "Completed" else None,
        version=release.version,
        image=release.image,
        verified=verified,
        accepted_risks=accepted_risks,
    )
    # Only the newest entry may be without a completionTime.
    if entries and entries[0].completion_time is None:
        entries = (replace(entries[0], completion_time=now), *entries[1:])
    return prune((new, *entries))


def prune(entries: Entries) -> Entries:
    """Returns at most `MAX_ENTRIES` entries; the one removed is ranked least informative.

    Source: docs/upstream-behaviour.md 6.3.
    """
    if len(entries) <= MAX_ENTRIES:
        return entries
    completed = next((i for i, entry in enumerate(entries) if entry.state == "Completed"), -1)
    ranked = [(_pruning_rank(entries, i, completed), i) for i in range(len(entries))]
    removed = min(ranked)[1]
    return (*entries[:removed], *entries[removed + 1 :])


def _is_same_release(entry: UpdateHistory, release: Release) -> bool:
    if entry.image and entry.image == release.image:
        return not entry.version or not release.version or entry.version == release.version
    return bool(entry.version) and entry.version == release.version and not entry.image


def _pruning_rank(entries: Entries, index: int, latest_completed: int) -> float:
    """Returns the weight of an entry when the history is pruned: the lowest goes first."""
    # The weights are upstream's (openshift/cluster-version-operator pkg/cvo/status_history.go).
    age = 1.01 * index
    if index == len(entries) - 1 or index < 5 or index == latest_completed:
        return 1000 - age
    if entries[index].state == "Completed":
        return (30 if _ends_a_minor(entries, index) else 0) - age
    around = _completed_around(entries, index)
    if around is None:
        return -age
    newer, older = around
    if _minor_part(newer.version) != _minor_part(older.version):
        return 20 - age
    return (-20 if newer.version != older.version else 0) - age


def _ends_a_minor(entries: Entries, index: int) -> bool:
    minor = _minor_part(entries[index].version)
    same = [i for i, e in enumerate(entries) if e.state == "Completed" and _minor_part(e.version) == minor]
    return index in (same[0], same[-1])


def _completed_around(entries: Entries, index: int) -> tuple[UpdateHistory, UpdateHistory] | None:
    newer = next((e for e in reversed(entries[:index]) if e.state == "Completed"), None)
    older = next((e for e in entries[index + 1 :] if e.state == "Completed"), None)
    return (newer, older) if newer and older else None


def _minor_part(version: str) -> str:
    # Upstream ignores the major version here, so that 4.1 and 5.1 count as one minor.
    parts = version.split(".")
    return parts[1] if len(parts) > 1 else ""
