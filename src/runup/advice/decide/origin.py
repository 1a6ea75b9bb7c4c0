"""Where a risk in ClusterVersion comes from: names and reasons that only preflights give.

Advice takes them off a stored status again, preflights write them; both know them from here.
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
REASONS = frozenset({VALIDATION, RUNNING, FAILED, PARTIAL, OUTDATED, STALE})


def is_preflights(risk: ConditionalUpdateRisk) -> bool:
    """Whether a risk found in a stored status came from a preflight (its verdict's reason says so)."""
    return any(condition.reason in REASONS for condition in risk.conditions) or risk.name in (
        IN_PROGRESS,
        INCOMPLETE,
        NOT_OFFERED,
    )
