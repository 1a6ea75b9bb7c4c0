"""An aggregated API does not answer.

Applies when an APIService that a Service answers for has Available=False. The result is Unknown if the condition is
missing or Unknown.

Why it matters: discovery is incomplete: namespaces are not deleted, garbage is not collected, and clients that look at
all APIs (the operators of the release among them) fail or are slow.

Remedy: start the pods of its Service. If the Service was deleted, delete the APIService or reinstall the component
that it belongs to. `oc get apiservices` shows it available.

Accepting it means that discovery stays incomplete during the update.

Source of the rule: the condition Available of apiregistration.k8s.io/v1 (kube-aggregator).
"""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.api.extension_v1 import APIService
from runup.checks.writing import Context, Findings, Snapshot, condition_text, count, declared, names_of, risk, unknown

NAME = "APIServiceUnavailable"
EXAMPLE = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec: {service: {namespace: metrics, name: adapter}, group: custom.metrics.k8s.io, version: v1beta1}
status:
  conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: no address behind service/adapter}]
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each aggregated API that is not Available, and an Unknown one for those that do not say."""
    silent = []
    for api in sorted(snapshot.all(APIService), key=lambda api_service: api_service.metadata.name):
        available = find(api.status.conditions, "Available")
        if api.spec.service is None:
            continue
        if available is None or available.status == "Unknown":
            silent.append(api)
        elif available.status == "False":
            # What is gone has no pods to bring up (kube-aggregator, pkg/controllers/status).
            gone = available.reason == "ServiceNotFound"
            yield risk(
                NAME,
                f"Aggregated API {api.metadata.name} does not answer{condition_text(available)}",
                [api],
                fix=f"Delete APIService {api.metadata.name} if what it belonged to is gone, or install that again."
                if gone
                else f"Bring up what answers it in namespace {api.spec.service.namespace}; `oc get apiservices` shows "
                "it.",
            )
    if silent:
        why = f"the condition Available of {count(len(silent), 'APIService')} is not known: {names_of(silent)}"
        yield unknown(NAME, why, silent, fix="See `oc get apiservices`, and the logs of kube-apiserver.")


CHECK = declared(run, NAME, "kube-apiserver", reads=(APIService,), rank=330)
