"""Which manifests and checks of a release a described cluster would get, and what is wrong with the description.

No cluster is asked: feature set, gates, profile, capabilities and major version are given, as text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from runup.domain.errors import Terminal
from runup.domain.release.capabilities import KNOWN, Capabilities
from runup.domain.release.inclusion import (
    DEFAULT_FEATURE_SET,
    DEFAULT_PROFILE,
    FEATURE_SETS,
    Excluded,
    Filters,
    include,
)
from runup.domain.release.payload import Payload

BAD_CLUSTER = "BadCluster"


@dataclass(frozen=True, slots=True)
class Row:
    """A manifest or check, in the order in which they are applied; `reason` says why it is out."""

    object: str
    file: str
    included: bool
    reason: str = ""


def rows(payload: Payload, filters: Filters) -> tuple[Row, ...]:
    """What a cluster as `filters` describe it gets of `payload`, and what not."""
    found = []
    for manifest in (*payload.manifests, *payload.checks):
        decision = include(manifest, filters)
        reason = decision.reason if isinstance(decision, Excluded) else ""
        found.append(Row(str(manifest.identity), manifest.file, not isinstance(decision, Excluded), reason))
    return tuple(found)


def filters_of(
    *,
    major: int,
    feature_set: str = "",
    gates: Collection[str] = (),
    profile: str = DEFAULT_PROFILE,
    capabilities: Collection[str] | None = None,
) -> Filters:
    """The cluster that is described; raises Terminal naming the word that nobody knows, and those that are known.

    An empty feature set is the default one; without `capabilities` they do not filter.
    """
    named = feature_set or DEFAULT_FEATURE_SET
    if named not in FEATURE_SETS:
        raise _unknown("feature set", [feature_set], FEATURE_SETS)
    if capabilities is not None and (odd := sorted(set(capabilities) - set(KNOWN))):
        raise _unknown("capabilities", odd, KNOWN)
    if not profile:
        raise Terminal(f"the profile is empty; the usual one is {DEFAULT_PROFILE}", reason=BAD_CLUSTER)
    if major < 0:
        raise Terminal(f"major version {major} is below 0", reason=BAD_CLUSTER)
    return Filters(
        feature_set="" if named == DEFAULT_FEATURE_SET else named,
        gates=frozenset(gates),
        major=major,
        profile=profile,
        capabilities=None if capabilities is None else Capabilities(frozenset(KNOWN), frozenset(capabilities)),
    )


def _unknown(what: str, odd: Collection[str], known: Collection[str]) -> Terminal:
    return Terminal(f"unknown {what} {', '.join(odd)}; known are {', '.join(known)}", reason=BAD_CLUSTER)
