"""Names of the cluster's own risks, for code that reads a stored ClusterVersion and evaluates nothing."""

from __future__ import annotations

UPDATING = "ClusterVersionUpdating"
OVERRIDES = "ClusterVersionOverrides"
DELETION = "ResourceDeletionInProgress"
ADMIN_ACK = "AdminAck-"
OPERATOR = "ClusterOperatorUpgradeable-"
# The condition that is False while one of these applies.
UPGRADEABLE = "Upgradeable"


def forbids_minor(name: str) -> bool:
    """Returns whether a risk of this name, if it applies, makes Upgradeable False."""
    return name in (UPDATING, OVERRIDES, DELETION) or name.startswith((OPERATOR, ADMIN_ACK))
