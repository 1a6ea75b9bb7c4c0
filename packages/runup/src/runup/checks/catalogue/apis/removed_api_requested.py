"""Clients use API versions that the target's API server no longer serves.

Applies when clients requested a version that a Kubernetes release up to the target's removes. On OpenShift, an
APIRequestCount shows the clients of the last day. Scanners that list every kind do not count, and neither does the
platform: the control plane, kubelets, and service accounts in namespaces of ClusterOperators. If the APIRequestCount
does not name the release that removes its version, the table of removed versions does. With `--api-metrics` the metric
`apiserver_requested_deprecated_apis` shows requests since the API server started. An old annotation is not evidence of
a request.

Why it matters: once the API server is updated, the client gets 404 and can no longer manage its objects.

Remedy: update or reconfigure these clients. The audit log names them (annotation `k8s.io/removed-release`). On
OpenShift `oc get apirequestcounts NAME -o yaml` shows the requests of the last hours.

Accepting it means that these clients may fail.

Source of the rule: k8s.io/apiserver, `pkg/endpoints/metrics` (apiserver_requested_deprecated_apis); openshift/api,
`apiserver/v1`, and the KubeAPIServer's APIRequestCount controller; who does not count is listed with its sources in
`data/read-only-clients.yaml`, removed versions in `data/removed-apis.yaml`.
"""

from __future__ import annotations

from runup.api.apiserver_v1 import APIRequestCount
from runup.api.config_v1 import ClusterOperator
from runup.checks.catalogue.apis.shared.api_clients import removed_in, requests_affected_by_removal
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk

NAME = "RemovedAPIRequested"
EXAMPLE = """
apiVersion: apiserver.openshift.io/v1
kind: APIRequestCount
metadata: {name: flowschemas.v1beta3.flowcontrol.apiserver.k8s.io}
status:
  removedInRelease: "1.32"
  requestCount: 12
  last24h:
  - byNode:
    - byUser:
      - username: system:serviceaccount:shop:operator
        userAgent: shop-operator/v0.9
        requestCount: 12
        byVerb: [{verb: update, requestCount: 12}]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each API that was requested in the last day and that the target no longer serves."""
    target = target_minor(context)
    counts = [
        count
        for count in snapshot.all_or_none(APIRequestCount)
        if (minor := removed_in(count)) is not None and (target is None or minor <= target)
    ]
    used = requests_affected_by_removal(snapshot, counts)
    if target is None and used:
        yield target_unknown(NAME, [count for count, _ in used])
        return
    for count, by in sorted(used, key=lambda pair: pair[0].metadata.name):
        who = [
            f"{client or 'clients that the server did not note'}, {times} times" for client, times in by.most_common()
        ]
        api = count.metadata.name
        yield risk(
            f"{NAME}-{api}",
            f"{api} was asked for in the last day and is removed in Kubernetes 1.{removed_in(count)}; "
            f"{context.target} ships {context.target_kubernetes}. Who asked: {names(who)}.",
            [count],
            severity="critical",
            fix=f"Move these clients to a version that is served; `oc get apirequestcounts {api} -o yaml` shows them.",
        )


CHECK = declared(
    run, NAME, "kube-apiserver", reads=(APIRequestCount, ClusterOperator, DEFINITIONS), rank=230, severity="critical"
)
