"""Names of the cluster's own risks, for code that reads a stored ClusterVersion and evaluates nothing."""

from __future__ import annotations

UPDATING = "ClusterVersionUpdating"
OVERRIDES = "ClusterVersionOverrides"
DELETION = "ResourceDeletionInProgress"
ADMIN_ACK = "AdminAck-"
ADMIN_ACK_UNKNOWN = "AdminAckUnknown"
OPERATOR = "ClusterOperatorUpgradeable-"
OPERATORS_UNKNOWN = "ClusterOperatorUpgradeableUnknown"
# The condition that is False while one of these applies.
UPGRADEABLE = "Upgradeable"


def forbids_minor(name: str) -> bool:
    """Returns whether a risk of this name, if it applies, makes Upgradeable False."""
    # What could not be read may forbid the update, so it does.
    exact = (UPDATING, OVERRIDES, DELETION, ADMIN_ACK_UNKNOWN, OPERATORS_UNKNOWN)
    return name in exact or name.startswith((OPERATOR, ADMIN_ACK))
