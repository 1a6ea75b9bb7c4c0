"""Names of a node's assessments and phases during an update, for writers and readers of reports."""

from __future__ import annotations

CONTROL_PLANE_POOL = "master"
WORKER_POOL = "worker"

DEGRADED, UNAVAILABLE, PROGRESSING, EXCLUDED, OUTDATED, COMPLETED = (
    "Degraded", "Unavailable", "Progressing", "Excluded", "Outdated", "Completed",
)  # fmt: skip
ASSESSMENTS = (DEGRADED, UNAVAILABLE, PROGRESSING, EXCLUDED, OUTDATED, COMPLETED)
"""In the order in which rows are printed."""

DRAINING, UPDATING, REBOOTING, PAUSED, PENDING, UPDATED = (
    "Draining", "Updating", "Rebooting", "Paused", "Pending", "Updated",
)  # fmt: skip
PHASES = (DRAINING, UPDATING, REBOOTING, PAUSED, PENDING, UPDATED)
"""In the order in which rows of one assessment are printed."""
