"""Capabilities that an update enables implicitly, because the cluster already has objects of them.

If a new release moves an object of the running release into a capability that is not enabled, the capability is
enabled, or the object would be left behind (docs/reference/upstream.md 3). Objects new in the release enable nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from runup.release.decide.inclusion import Filters, Included, capabilities_of, include
from runup.release.decide.manifest import Manifest


def implicit_capabilities_of(
    new: Iterable[Manifest], running: Iterable[Manifest], filters: Filters, major: int
) -> frozenset[str]:
    """Returns the capabilities that the update from `running` to `new` enables.

    `filters` are those of the running release, `major` is the major version of the new one.
    """
    if filters.capabilities is None:
        return frozenset()
    # The new release may define capabilities that the running one does not know.
    of_new = replace(filters, major=major, unknown_capabilities_allowed=True)
    existing = {manifest.identity: manifest for manifest in running if isinstance(include(manifest, filters), Included)}
    capabilities: set[str] = set()
    for manifest in new:
        before = existing.get(manifest.identity)
        if before is None or isinstance(include(manifest, of_new), Included):
            continue
        capabilities |= set(capabilities_of(manifest.annotations)) - set(capabilities_of(before.annotations))
    return frozenset(capabilities - filters.capabilities.enabled)
