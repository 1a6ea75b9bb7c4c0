"""The origin of a risk in ClusterVersion: names and reasons that only preflights use.

Advice removes such risks from a stored status, preflights write them. Both take the names from here.
"""

from __future__ import annotations

from runup.api.config_v1 import ConditionalUpdateRisk

IN_PROGRESS = "PreflightInProgress"
INCOMPLETE = "PreflightIncomplete"
NOT_OFFERED = "UpdatePathNotOffered"
VALIDATION = "PreflightValidation"
RUNNING = "PreflightRunning"
FAILED = "PreflightFailed"
PARTIAL = "PreflightPartial"
OUTDATED = "PreflightOutdated"
STALE = "ReportStale"
# It applies, and describes the failure that an update within the minor version may repair: it holds nothing up.
REPAIRED = "PreflightInforms"
REASONS = frozenset({VALIDATION, RUNNING, FAILED, PARTIAL, OUTDATED, STALE, REPAIRED})


def is_preflights(risk: ConditionalUpdateRisk) -> bool:
    """Returns whether a risk in a stored status came from a preflight, which its verdict's reason or its name shows."""
    return any(condition.reason in REASONS for condition in risk.conditions) or risk.name in (
        IN_PROGRESS,
        INCOMPLETE,
        NOT_OFFERED,
    )
