"""A live cluster as the rules of inclusion see it, and which of it could not be read.

In: ClusterVersion, FeatureGate, and the environment of the operator's Deployment, each perhaps unreadable. Out:
`Filters`, and for each rule that therefore cannot be asked the reason. What is absent differs from what may not be
read: an absent FeatureGate means the default set (seed 002), a forbidden one means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runup.api.config_v1 import ClusterVersion, FeatureGate
from runup.release.decide.capabilities import Capabilities, enabled
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates

PROFILE_VARIABLE = "CLUSTER_PROFILE"
EXCLUDE_VARIABLE = "EXCLUDE_MANIFESTS"
_FROM_GATE = ("feature set", "feature gates")
_FROM_OPERATOR = ("excluded identifier", "profile")


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was read. `environment` is that of the operator's container; `errors` is keyed by `gate`, `operator`."""

    cluster_version: ClusterVersion
    feature_gate: FeatureGate | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Described:
    """The cluster as filters. `unreadable` maps the name of a rule to why it cannot be asked."""

    filters: Filters
    unreadable: Mapping[str, str]


def describe(facts: ClusterFacts, *, major: int) -> Described:
    """The cluster for a release of `major`; gates are those of the version that the cluster works towards.

    An operator that loads another release goes by its own version's gates, too, until the other one has taken over.
    """
    version = facts.cluster_version
    feature_set, gates = feature_set_and_gates(facts.feature_gate, version.status.desired.version)
    unreadable: dict[str, str] = {}
    if why := facts.errors.get("gate"):
        unreadable |= dict.fromkeys(_FROM_GATE, f"FeatureGate cluster could not be read: {why}")
    if why := facts.errors.get("operator"):
        unreadable |= dict.fromkeys(_FROM_OPERATOR, f"the operator's Deployment could not be read: {why}")
    filters = Filters(
        exclude_identifier=facts.environment.get(EXCLUDE_VARIABLE) or None,
        feature_set=feature_set,
        gates=gates,
        major=major,
        profile=facts.environment.get(PROFILE_VARIABLE) or DEFAULT_PROFILE,
        capabilities=_capabilities(version, gates),
        overrides=version.spec.overrides,
    )
    return Described(filters, unreadable)


def _capabilities(version: ClusterVersion, gates: frozenset[str]) -> Capabilities:
    """What the status says is enabled, which is never turned off again, and what the spec asks for besides."""
    told = version.status.capabilities
    found = enabled(version.spec.capabilities, gates, keep=told.enabled_capabilities)
    return Capabilities(found.known | frozenset(told.known_capabilities), found.enabled, found.implicit)
