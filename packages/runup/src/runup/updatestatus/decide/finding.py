"""The result of one health rule before it becomes a health insight, with the names that rules share."""

from __future__ import annotations

from datetime import datetime

import msgspec

from runup.api.update_v1alpha1 import ResourceRef

UNKNOWN, INFO, WARNING, ERROR, CRITICAL = "Unknown", "Info", "Warning", "Error", "Critical"
LEVELS = (UNKNOWN, INFO, WARNING, ERROR, CRITICAL)
"""From low to high. Unknown means that something could not be determined; it is never left out."""

NO_IMPACT = "None"
UNKNOWN_IMPACT = "Unknown"
API_AVAILABILITY = "API Availability"
UPDATE_SPEED = "Update Speed"
UPDATE_STALLED = "Update Stalled"

SCOPE_CONTROL_PLANE, SCOPE_WORKER_POOL, SCOPE_CLUSTER = "ControlPlane", "WorkerPool", "Cluster"

NODE_UNAVAILABLE, NODE_DEGRADED, POOL_PAUSED = "NodeUnavailable", "NodeDegraded", "MachineConfigPoolPaused"
ALERT_FIRING = "AlertFiring"
UNREADABLE, INCOMPLETE = "InputUnreadable", "InputIncomplete"
NO_RUNBOOK = "<alert does not have a runbook_url annotation>"

DOCS = "https://docs.runup.example/update-status#"
CONFIG_GROUP = "config.openshift.io"
MACHINE_CONFIG_GROUP = "machineconfiguration.openshift.io"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that needs attention.

    `check` names the rule; `check`, `resources` and `identity` (for findings about the same objects) identify the
    finding in the next pass, however its text changes. `pool` is the worker pool that it is reported under, or empty
    for the control plane. `since` is None if it is not known.
    """

    check: str
    level: str
    impact: str
    summary: str
    description: str = ""
    reference: str = ""
    since: datetime | None = None
    scope: str = SCOPE_CONTROL_PLANE
    resources: tuple[ResourceRef, ...] = ()
    identity: str = ""
    pool: str = ""


def node_ref(name: str) -> ResourceRef:
    """Returns a reference to a Node."""
    return ResourceRef(resource="nodes", name=name)


def pool_ref(name: str) -> ResourceRef:
    """Returns a reference to a MachineConfigPool."""
    return ResourceRef(group=MACHINE_CONFIG_GROUP, resource="machineconfigpools", name=name)


def operator_ref(name: str) -> ResourceRef:
    """Returns a reference to a ClusterOperator."""
    return ResourceRef(group=CONFIG_GROUP, resource="clusteroperators", name=name)


def cluster_version_ref(name: str) -> ResourceRef:
    """Returns a reference to the ClusterVersion."""
    return ResourceRef(group=CONFIG_GROUP, resource="clusterversions", name=name)
