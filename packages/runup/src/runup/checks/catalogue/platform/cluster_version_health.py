"""What ClusterVersion says of itself: that it fails, that it is not upgradeable, that an update was left half done.

Failing and Upgradeable are the cluster-version operator's own summary (pkg/cvo/status.go, pkg/cvo/upgradeable.go):
Failing says that it cannot apply what it should, Upgradeable=False forbids minor and major updates; absent, it allows
them. A failure is critical once it has lasted half an hour (`DEGRADED_PATIENCE`), as long as the alert for
degraded operators waits; before that it is a warning.
"""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.model import Applies, Context, Finding, Snapshot
from runup.checks.decide.wording import (
    DEGRADED_PATIENCE,
    NO_REASONS,
    condition_text,
    minor_or_major,
    names,
    refer,
    severity_after,
    since_text,
)
from runup.checks.writing import Findings, declared

CHECK_NAME = "ClusterVersionHealth"
UNKNOWN = f"{CHECK_NAME}Unknown"
FAILING = "ClusterVersionFailing"
UPGRADEABLE = "ClusterVersionUpgradeable"
PARTIAL = "ClusterVersionPartialUpdate"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of ClusterVersion's conditions Failing and Upgradeable, and of abandoned updates."""
    cluster = snapshot.get(ClusterVersion, "version")
    if cluster is None:
        yield Finding(
            name=UNKNOWN,
            message=(
                "Whether the cluster's release is applied could not be told: there is no ClusterVersion named version."
            ),
            applies=Applies.UNKNOWN,
            reason="ClusterVersionMissing",
            remediation="See whether the cluster-version operator runs: it creates that object.",
        )
        return
    yield from _failing_findings(cluster, context)
    # Upgradeable=False does not stop updates within a minor version.
    if minor_or_major(context):
        yield from _upgradeable_findings(cluster)
    abandoned = {
        entry.version: entry for index, entry in enumerate(cluster.status.history) if _was_abandoned(cluster, index)
    }
    if not abandoned:
        return
    listing = names([f"{version} ({since_text(entry.started_time)})" for version, entry in abandoned.items()])
    subject, of = ("An update was", "that release") if len(abandoned) == 1 else ("Updates were", "those releases")
    yield Finding(
        name=PARTIAL,
        message=f"{subject} begun and left before the end: {listing}. Parts of the cluster may be of {of} still.",
        reason="PartialUpdate",
        resources=(refer(cluster),),
        remediation="Compare the versions that `oc get clusteroperators` shows with the cluster's own; an update to "
        "that release or a newer patch of it makes it good.",
    )


def _failing_findings(cluster: ClusterVersion, context: Context) -> Findings:
    """Yields the finding about Failing, if ClusterVersion does not report Failing=False."""
    failing = find(cluster.status.conditions, "Failing")
    if failing is not None and failing.status == "False":
        return
    if failing is not None and failing.status == "True":
        yield Finding(
            name=FAILING,
            message=f"The cluster-version operator fails to apply the cluster's release{condition_text(failing)}",
            reason=failing.reason,
            severity=severity_after(
                failing.last_transition_time,
                context.now,
                patience=DEGRADED_PATIENCE,
                before="warning",
                after="critical",
            ),
            resources=(refer(cluster),),
            remediation="Repair what its message names; `oc adm upgrade status` shows who holds it up.",
        )
        return
    words = condition_text(failing) if failing else ": ClusterVersion has no condition Failing."
    yield _unknown_finding(cluster, f"Whether the cluster-version operator fails could not be told{words}")


def _upgradeable_findings(cluster: ClusterVersion) -> Findings:
    """Yields the finding about Upgradeable, if it is False or Unknown."""
    condition = find(cluster.status.conditions, "Upgradeable")
    if condition is None or condition.status == "True":
        return
    if condition.status == "Unknown":
        yield _unknown_finding(
            cluster, f"Whether ClusterVersion forbids minor updates could not be told{condition_text(condition)}"
        )
        return
    explained = condition.reason not in NO_REASONS or condition.message
    yield Finding(
        name=UPGRADEABLE,
        message=f"ClusterVersion forbids updates to another minor version{condition_text(condition)}",
        reason=condition.reason,
        resources=(refer(cluster),),
        remediation="Do what its message asks for; `oc adm upgrade` shows the newest."
        if explained
        else "It does not say why: see which of the ClusterOperators are not Upgradeable, and the operator's log.",
    )


def _unknown_finding(cluster: ClusterVersion, message: str) -> Finding:
    """Returns the finding that a condition of ClusterVersion is not known."""
    return Finding(
        name=UNKNOWN,
        message=message,
        applies=Applies.UNKNOWN,
        reason="ConditionUnknown",
        resources=(refer(cluster),),
        remediation="Look at `oc get clusterversion version -o yaml`; the cluster-version operator may not be running.",
    )


def _was_abandoned(cluster: ClusterVersion, index: int) -> bool:
    """Returns whether the entry was left for an older release, or its minor version was passed and never completed.

    The newest is judged by the check of updates in progress. An entry without a version never got as far as its
    payload: nothing of it was applied.
    """
    history = cluster.status.history
    entry, newest_version, entry_version = history[index], parse(history[0].version), parse(history[index].version)
    if index == 0 or entry.state != "Partial" or entry_version is None or newest_version is None:
        return False
    completed = [
        (place, version)
        for place, other in enumerate(history)
        if other.state == "Completed"
        and (version := parse(other.version))
        and version.minor_version == entry_version.minor_version
    ]
    if newest_version < entry_version:
        return not any(place < index and version >= entry_version for place, version in completed)
    return entry_version.minor_version < newest_version.minor_version and not completed


CHECK = declared(
    run, CHECK_NAME, "cluster-version-operator", reads=(ClusterVersion,), by_hand=True, rank=50, severity="critical"
)
