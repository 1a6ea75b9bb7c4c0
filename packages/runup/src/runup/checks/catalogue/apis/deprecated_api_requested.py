"""Clients use API versions that the target still serves, and that one of the next three minor versions removes.

Applies when an APIRequestCount reports requests for a version within the last day by clients other than known scanners
and the platform, and the version is removed one to three minor versions of Kubernetes after that of the target. All
such versions are one risk.

Why it matters: this update does not break these clients, but one of the next three minor versions will, unless they are
changed before.

Remedy: plan the change of the clients that the finding names; `oc get apirequestcounts` shows which clients still use
these versions.

Accepting it is right for this update.

Source of the rule: openshift/api, `apiserver/v1`; the three minor versions are as far ahead as pluto and EKS look.
"""

from __future__ import annotations

from runup.api.apiserver_v1 import APIRequestCount
from runup.api.config_v1 import ClusterOperator
from runup.checks.catalogue.apis.shared.api_clients import removed_in, requests_affected_by_removal
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.decide.stored_manifests import MINORS_AHEAD
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk

NAME = "DeprecatedAPIRequested"
EXAMPLE = """
apiVersion: apiserver.openshift.io/v1
kind: APIRequestCount
metadata: {name: workloads.v1beta1.scheduling.k8s.io}
status:
  removedInRelease: "1.40"
  requestCount: 3
  last24h:
  - byNode:
    - byUser:
      - {username: deployer, userAgent: kubectl/v1.34, requestCount: 3, byVerb: [{verb: create, requestCount: 3}]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one finding (info) about APIs in use that go in a release after the target."""
    target = target_minor(context)
    counts = [
        count
        for count in snapshot.all_or_none(APIRequestCount)
        if (minor := removed_in(count)) is not None and (target is None or target < minor <= target + MINORS_AHEAD)
    ]
    used = {count.metadata.name: (count, by) for count, by in requests_affected_by_removal(snapshot, counts)}
    if target is None and used:
        yield target_unknown(NAME, [count for count, _ in used.values()])
        return
    if used:
        soon = [used[api] for api in sorted(used)]
        who = sorted({client or "clients that the server did not note" for _, by in soon for client in by})
        descriptions = [f"{count.metadata.name} (removed in 1.{removed_in(count)})" for count, _ in soon]
        yield risk(
            NAME,
            f"After {context.target} these APIs go, and they were asked for in the last day: {names(descriptions)}. "
            f"Who asked: {names(who)}.",
            [count for count, _ in soon],
            severity="info",
            fix="Nothing for this update; plan the change of these clients. `oc get apirequestcounts` shows who asks.",
        )


CHECK = declared(
    run, NAME, "kube-apiserver", reads=(APIRequestCount, ClusterOperator, DEFINITIONS), rank=250, severity="info"
)
