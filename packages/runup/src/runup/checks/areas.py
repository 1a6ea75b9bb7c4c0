"""Returns the area of a risk: the folder of the catalogue that has its check."""

from __future__ import annotations

from functools import cache

# Families of risks that are named like no check, by the area of the check that reports them.
_OTHERS = {
    "apis": ("DeprecatedAPIInManifest", "RemovedAPIInHelmRelease", "RemovedAPIInManifest", "RemovedAPIInUse"),
    "nodes": (
        "MachineConfigPoolDegraded",
        "MachineConfigPoolUpdating",
        "NodeCordoned",
        "NodeInNoPool",
        "NodeInSeveralPools",
        "NodeNotReady",
        "SlowNodeDrain",
    ),
    "olm": ("OperatorDeprecatedInTarget",),
    "platform": (
        "ClusterOperatorDegraded",
        "ClusterOperatorNotAvailable",
        "ClusterVersionFailing",
        "ClusterVersionGiantHop",
        "ClusterVersionPartialUpdate",
        "ClusterVersionRollback",
        "ClusterVersionUpgradeable",
        "ReleaseSignatureNotVerified",
        "UpdatePathNotOffered",
    ),
    "workloads": (
        "PodDisruptionBudgetAtLimit",
        "PodDisruptionBudgetPodsUnready",
        "PodDisruptionBudgetSpent",
        "PodDisruptionBudgetsOverlap",
        "ResourceDeletionInProgress",
    ),
}
# The area of every other risk, such as one that a release or an administrator declares.
OTHER = "other"


@cache
def _areas() -> dict[str, str]:
    from runup.checks.catalogue import CHECKS

    areas = {name: area for area, names in _OTHERS.items() for name in names}
    for check in CHECKS:
        area = check.run.__module__.split(".")[-2]
        areas |= dict.fromkeys({check.name, check.unknown_risk} - {""}, area)
    return areas


def area_of(risk: str) -> str:
    """Returns the area of a risk such as `MachineConfigPoolPaused-worker`."""
    family = risk.partition("-")[0]
    return _areas().get(family) or _areas().get(family.removesuffix("Unknown"), OTHER)


def areas() -> tuple[str, ...]:
    """Returns all areas, in the order of the alphabet, `other` last."""
    return (*sorted(set(_areas().values())), OTHER)
