"""Lists the risks with which an update is not supported, so that no verdict offers to accept them.

Acceptance by name stays possible, as for any risk; the pages of these risks say why it is wrong.
"""

from __future__ import annotations

from runup.report.causes import family_of

# The family of a risk -> what becomes of an update with it, each from the page of the risk in docs/checks.
WHY = {
    "ArchitecturesMixed": "the other nodes cannot take it",
    "CRDStoredVersionDropped": "it stops at that definition",
    "CgroupV1": "the nodes do not come back",
    "ContainerRuntimeTooOld": "the nodes may not come back",
    "EtcdMembersUnhealthy": "another member less is the API's outage",
    "FeatureSetForbidsUpdates": "the feature set excludes it",
    "KubeletSkew": "such kubelets may not be used with its API server",
    "MaxUnavailableUnsafe": "etcd may lose its quorum",
    "NetworkTypeRemoved": "the target does not have that network",
    "PackageBasedNodes": "the target does not have such nodes",
    "RemovedAdmissionPlugin": "the API server may not start",
    "RemovedComponentSetting": "the component does not start",
    "RemovedFeatureGate": "the component may not start",
    "RemovedFlag": "the component may not start",
    "RemovedVolumePlugin": "the target cannot mount these volumes",
}


def why_not_acceptable(risk: str) -> str:
    """Returns what would happen to an update with the risk, or an empty string if it may sensibly be accepted."""
    return WHY.get(family_of(risk), "")
