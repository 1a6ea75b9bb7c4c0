"""Converts a live cluster into the input of the inclusion rules, and names what could not be read.

Takes ClusterVersion, FeatureGate, and the environment of the operator's Deployment, each perhaps unreadable; returns
`Filters`, and the reason for each rule that therefore cannot be evaluated. An absent object differs from one that may
not be read: an absent FeatureGate means the default set (docs/upstream-behaviour.md 2.4), a forbidden one means
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.release.decide.capabilities import Capabilities, enabled_capabilities
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates

PROFILE_VARIABLE = "CLUSTER_PROFILE"
EXCLUDE_VARIABLE = "EXCLUDE_MANIFESTS"
OPERATOR = "cluster-version-operator"
"""The name of the operator's Deployment, and of its container."""
_FROM_GATE = ("feature set", "feature gates")
_FROM_OPERATOR = ("excluded identifier", "profile")


def environment_of(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Returns the environment of the operator's container in its Deployment, without values from other objects."""
    containers: Any = deployment
    for key in ("spec", "template", "spec", "containers"):
        containers = containers.get(key) if isinstance(containers, Mapping) else None
    return {
        str(entry["name"]): str(entry["value"])
        for container in (containers if isinstance(containers, list) else ())
        if isinstance(container, dict) and container.get("name") == OPERATOR
        for entry in container.get("env") or ()
        if isinstance(entry, dict) and "value" in entry
    }


def profile_in(environment: Mapping[str, str]) -> str:
    """Returns the cluster profile that the operator's environment names, the default if it names none."""
    return environment.get(PROFILE_VARIABLE) or DEFAULT_PROFILE


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The objects that were read. `environment` is the operator container's; `errors` has keys `gate`, `operator`."""

    cluster_version: ClusterVersion
    feature_gate: FeatureGate | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """The cluster as filters. `unreadable` maps the name of a rule to the reason why it cannot be evaluated."""

    filters: Filters
    unreadable: Mapping[str, str]


def describe(facts: ClusterFacts, *, major: int) -> DescribedCluster:
    """Returns the cluster's filters for a release of `major`; gates are those of the desired version.

    An operator that loads another release also uses its own version's gates, until the other operator has taken over.
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
        profile=profile_in(facts.environment),
        capabilities=_capabilities(version, gates),
        overrides=version.spec.overrides,
    )
    return DescribedCluster(filters, unreadable)


def _capabilities(version: ClusterVersion, gates: frozenset[str]) -> Capabilities:
    """Returns the capabilities that the status says are enabled, never disabled again, and those that the spec adds."""
    reported = version.status.capabilities
    computed = enabled_capabilities(version.spec.capabilities, gates, keep=reported.enabled_capabilities)
    return Capabilities(computed.known | frozenset(reported.known_capabilities), computed.enabled, computed.implicit)
