"""An update that is still in progress, or was never finished, under the name that the cluster-version operator gives
it.

Upstream holds back minor and major updates alone, because a patch may be what gets a stuck update moving; here the same
fact is information for a patch."""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.model import Applies, Context, Snapshot
from runup.checks.writing import OWN_NAME, Findings, cause, condition_text, declared, minor_or_major, risk, since_text

NAME = "ClusterVersionUpdating"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding if an update is in progress, and Unknown if ClusterVersion does not show it."""
    cluster = snapshot.get(ClusterVersion, "version")
    if cluster is None:
        yield risk(
            NAME,
            "Whether an update is in progress is unknown: the cluster has no ClusterVersion named version.",
            fix="See whether the cluster-version operator runs: it creates that object.",
            reason="ClusterVersionMissing",
            applies=Applies.UNKNOWN,
        )
        return
    progressing = find(cluster.status.conditions, "Progressing")
    # The history has the newest update first (openshift/api, config/v1).
    newest = next(iter(cluster.status.history), None)
    if newest is not None and newest.state == "Partial":
        why = cause(progressing) if progressing and progressing.status == "True" else ""
        began = since_text(newest.started_time)
        update = f"The update to {newest.version or newest.image} is not finished"
        message = f"{update}{': ' if why else ''}{why} (it has been running {began})."
    elif progressing is not None and progressing.status == "True":
        message = f"The cluster is progressing{condition_text(progressing)}"
    elif newest is not None and progressing is not None and progressing.status == "False":
        return
    else:
        yield risk(
            NAME,
            "Whether an update is in progress is unknown: ClusterVersion lacks its history, or does not say "
            "whether it is progressing.",
            [cluster],
            fix="Look at `oc get clusterversion version -o yaml`; the cluster-version operator may not be running.",
            reason="ProgressUnknown",
            applies=Applies.UNKNOWN,
        )
        return
    yield risk(
        NAME,
        message,
        [cluster],
        severity="critical" if minor_or_major(context) else "info",
        fix="Find the cause with `oc adm upgrade status`; the update does not continue by itself."
        if status_of(cluster.status.conditions, "Failing") == "True"
        else "Let the update finish, or find out with `oc adm upgrade status` what holds it up.",
        reason="UpdateInProgress",
    )


CHECK = declared(
    run,
    NAME,
    "cluster-version-operator",
    reads=(ClusterVersion,),
    by_hand=True,
    rank=40,
    unknown_risk=OWN_NAME,
    severity="critical",
)
