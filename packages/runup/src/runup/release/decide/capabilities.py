"""Computes the optional parts of a release that a cluster knows, requests and keeps (docs/reference/upstream.md 3).

A capability that was enabled once can never be disabled again; one that is kept without being requested is "implicit".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from runup.api.config_v1 import CapabilitiesSpec

KNOWN: tuple[str, ...] = (
    "baremetal", "Console", "Insights", "marketplace", "Storage", "openshift-samples", "CSISnapshot", "NodeTuning",
    "MachineAPI", "Build", "DeploymentConfig", "ImageRegistry", "OperatorLifecycleManager",
    "OperatorLifecycleManagerV1", "CloudCredential", "Ingress", "CloudControllerManager", "CompatibilityRequirements",
    "ClusterAPI", "UpdateStatus",
)  # fmt: skip

GATED: dict[str, frozenset[str]] = {
    "CompatibilityRequirements": frozenset({"CRDCompatibilityRequirementOperator", "ClusterAPIMachineManagement"}),
    "ClusterAPI": frozenset({"ClusterAPIMachineManagement"}),
}
"""Capabilities that exist only while one of these gates is enabled."""

DEFAULT_BASELINE = "vCurrent"

# The capabilities that each baseline set adds to the one before it.
_ADDED: dict[str, tuple[str, ...]] = {
    "None": (),
    "v4.11": ("baremetal", "marketplace", "openshift-samples", "MachineAPI"),
    "v4.12": ("Console", "Insights", "Storage", "CSISnapshot"),
    "v4.13": ("NodeTuning",),
    "v4.14": ("Build", "DeploymentConfig", "ImageRegistry"),
    "v4.15": ("OperatorLifecycleManager", "CloudCredential"),
    "v4.16": ("Ingress", "CloudControllerManager"),
    "v4.17": (),
    "v4.18": ("OperatorLifecycleManagerV1",),
    # UpdateStatus is on unless the administrator opts out, at installation or update time.
    "vCurrent": ("CompatibilityRequirements", "ClusterAPI", "UpdateStatus"),
}


_names = tuple(_ADDED)
BASELINES: dict[str, frozenset[str]] = {
    name: frozenset().union(*(_ADDED[earlier] for earlier in _names[: index + 1])) for index, name in enumerate(_names)
}
"""Each capability set with all that the sets before it have."""


class Capabilities(msgspec.Struct, frozen=True):
    """A cluster's known and enabled capabilities; `implicit` are the enabled ones that its spec does not request."""

    known: frozenset[str]
    enabled: frozenset[str]
    implicit: frozenset[str] = frozenset()


def available(gates: Collection[str]) -> frozenset[str]:
    """Returns the capabilities that exist with `gates` enabled."""
    return frozenset(name for name in KNOWN if name not in GATED or GATED[name] & frozenset(gates))


def enabled_capabilities(
    spec: CapabilitiesSpec | None, gates: Collection[str], keep: Iterable[str] = ()
) -> Capabilities:
    """Returns the capabilities of a cluster with this `spec` (None: all); those in `keep` are never disabled.

    An unknown baseline set contributes nothing; the API server does not admit one.
    """
    known_capabilities = available(gates)
    baseline = (spec.baseline_capability_set if spec else "") or DEFAULT_BASELINE
    requested = BASELINES.get(baseline, frozenset()) | frozenset(spec.additional_enabled_capabilities if spec else ())
    gated_off = frozenset(GATED) - known_capabilities
    kept_capabilities = frozenset(keep) - gated_off
    return Capabilities(known_capabilities, (requested | kept_capabilities) - gated_off, kept_capabilities - requested)
