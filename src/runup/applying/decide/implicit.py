"""Capabilities that an update turns on without being asked: of objects that the cluster has, and has to keep.

Where a new release puts an object of the running one into a capability that is not enabled, the capability is enabled,
or the object would be left behind (cvo-behaviour section 3). What is new in the release enables nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from runup.release.decide.inclusion import Filters, Included, capabilities_of, include
from runup.release.decide.manifest import Manifest


def implicit(new: Iterable[Manifest], running: Iterable[Manifest], filters: Filters, major: int) -> frozenset[str]:
    """What the update from `running` to `new`, a release of that `major`, turns on; `filters` are the running ones."""
    if filters.capabilities is None:
        return frozenset()
    of_new = replace(filters, major=major, unknown_capabilities_allowed=True)
    have = {manifest.identity: manifest for manifest in running if isinstance(include(manifest, filters), Included)}
    found: set[str] = set()
    for manifest in new:
        before = have.get(manifest.identity)
        if before is None or isinstance(include(manifest, of_new), Included):
            continue
        found |= set(capabilities_of(manifest.annotations)) - set(capabilities_of(before.annotations))
    return frozenset(found - filters.capabilities.enabled)
