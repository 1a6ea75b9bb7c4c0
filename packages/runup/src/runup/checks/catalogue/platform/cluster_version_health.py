"""ClusterVersion reports that it fails, that it is not upgradeable, or that an update is incomplete.

Failing and Upgradeable are the cluster-version operator's own summary (pkg/cvo/status.go, pkg/cvo/upgradeable.go):
Failing says that it cannot apply what it should, Upgradeable=False forbids minor and major updates; absent, it allows
them. A failure is critical once it has lasted half an hour (`DEGRADED_PATIENCE`), as long as the alert for
degraded operators waits; before that it is a warning.
"""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersion
from runup.checks import writing
from runup.checks.decide.model import Applies, Context, Finding, Snapshot
from runup.checks.decide.wording import minor_or_major, names
from runup.checks.writing import NO_REASONS, Findings, condition_text, declared, risk, since_text

CHECK_NAME = "ClusterVersionHealth"
UNKNOWN = f"{CHECK_NAME}Unknown"
FAILING = "ClusterVersionFailing"
UPGRADEABLE = "ClusterVersionUpgradeable"
PARTIAL = "ClusterVersionPartialUpdate"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of ClusterVersion's conditions Failing and Upgradeable, and of abandoned updates."""
    cluster = snapshot.get(ClusterVersion, "version")
    if cluster is None:
        yield risk(
            UNKNOWN,
            "Whether the cluster's release is applied is unknown: there is no ClusterVersion named version.",
            fix="See whether the cluster-version operator runs: it creates that object.",
            reason="ClusterVersionMissing",
            applies=Applies.UNKNOWN,
        )
        return
    failing = find(cluster.status.conditions, "Failing")
    if failing is not None and failing.status == "True":
        since = failing.last_transition_time
        yield risk(
            FAILING,
            f"The cluster-version operator fails to apply the cluster's release{condition_text(failing)}",
            [cluster],
            severity=writing.severity_after(
                since, context.now, patience=writing.DEGRADED_PATIENCE, before="warning", after="critical"
            ),
            fix="Repair what its message names; `oc adm upgrade status` shows who holds it up.",
            reason=failing.reason,
        )
    elif failing is None or failing.status != "False":
        words = condition_text(failing) if failing else ": ClusterVersion has no condition Failing."
        yield _unknown_finding(cluster, f"Whether the cluster-version operator fails is unknown{words}")
    # Upgradeable=False does not stop updates within a minor version.
    upgradeable = find(cluster.status.conditions, "Upgradeable") if minor_or_major(context) else None
    if upgradeable is not None and upgradeable.status == "Unknown":
        words = condition_text(upgradeable)
        yield _unknown_finding(cluster, f"Whether ClusterVersion forbids minor updates is unknown{words}")
    elif upgradeable is not None and upgradeable.status != "True":
        explained = upgradeable.reason not in NO_REASONS or upgradeable.message
        yield risk(
            UPGRADEABLE,
            f"ClusterVersion forbids updates to another minor version{condition_text(upgradeable)}",
            [cluster],
            severity="critical",
            fix="Do what its message asks for; `oc adm upgrade` shows the newest."
            if explained
            else "It does not say why: see which of the ClusterOperators are not Upgradeable, and the operator's log.",
            reason=upgradeable.reason,
        )
    abandoned = {
        entry.version: entry for index, entry in enumerate(cluster.status.history) if _was_abandoned(cluster, index)
    }
    if not abandoned:
        return
    listing = names([f"{version} ({since_text(entry.started_time)})" for version, entry in abandoned.items()])
    subject, of = ("An update was", "that release") if len(abandoned) == 1 else ("Updates were", "those releases")
    yield risk(
        PARTIAL,
        f"{subject} begun and left before the end: {listing}. Parts of the cluster may be of {of} still.",
        [cluster],
        fix="Compare the versions that `oc get clusteroperators` shows with the cluster's own; an update to "
        "that release or a newer patch of it makes it good.",
        reason="PartialUpdate",
    )


def _unknown_finding(cluster: ClusterVersion, message: str) -> Finding:
    """Returns the finding that a condition of ClusterVersion is not known."""
    fix = "Look at `oc get clusterversion version -o yaml`; the cluster-version operator may not be running."
    return risk(UNKNOWN, message, [cluster], fix=fix, reason="ConditionUnknown", applies=Applies.UNKNOWN)


def _was_abandoned(cluster: ClusterVersion, index: int) -> bool:
    """Returns whether the entry was left for an older release, or its minor version was passed and never completed.

    The newest is evaluated by the check of updates in progress. An entry without a version never got as far as its
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
