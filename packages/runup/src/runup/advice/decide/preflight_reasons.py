"""The origin of a risk in ClusterVersion: names and reasons that only preflights use.

Advice removes such risks from a stored status, preflights write them. Both take the names from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runup.api.config_v1 import ConditionalUpdateRisk

IN_PROGRESS = "PreflightInProgress"
INCOMPLETE = "PreflightIncomplete"
NOT_OFFERED = "UpdatePathNotOffered"
SIGNATURE = "ReleaseSignatureNotVerified"
# Preconditions that can block an update, by the names that their objections and risks share.
ROLLBACK, GIANT_HOP, UPGRADEABLE = "ClusterVersionRollback", "ClusterVersionGiantHop", "ClusterVersionUpgradeable"
# Begins the list of releases in the message of a target that cannot be reached at once.
BY_WAY = "It is reached by way of"
# Risks that only the operator names, and that acceptance never lifts.
NEVER_ACCEPTED = frozenset({NOT_OFFERED, SIGNATURE, ROLLBACK, GIANT_HOP})
VALIDATION = "PreflightValidation"
RUNNING = "PreflightRunning"
FAILED = "PreflightFailed"
PARTIAL = "PreflightPartial"
OUTDATED = "PreflightOutdated"
STALE = "ReportStale"
# It applies, and describes the failure that an update within the minor version may repair: it holds nothing up.
REPAIRED = "PreflightInforms"
# The update's own guard refuses the target whatever is accepted (docs/decisions/0075).
PRECONDITION = "UpdatePrecondition"
REASONS = frozenset({VALIDATION, RUNNING, FAILED, PARTIAL, OUTDATED, STALE, REPAIRED, PRECONDITION})


def is_preflights(risk: ConditionalUpdateRisk) -> bool:
    """Returns whether a risk in a stored status came from a preflight, which its verdict's reason or its name shows."""
    is_named = risk.name in NEVER_ACCEPTED or risk.name in (IN_PROGRESS, INCOMPLETE)
    return is_named or any(condition.reason in REASONS for condition in risk.conditions)
