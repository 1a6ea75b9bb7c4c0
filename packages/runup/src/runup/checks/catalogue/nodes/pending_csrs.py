"""Kubelets wait for certificates that are not signed.

Applies when CertificateSigningRequests of kubelets (client or serving) have been open for ten minutes or more: neither
approved nor denied.

Why it matters: the machine approver signs such requests within seconds. Where it does not, nodes that the update
restarts do not come back, or their logs and metrics cannot be read.

Remedy: see the requestors (`oc get csr`), and approve the legitimate requests: `oc adm certificate approve NAME`.

Accepting it means that these nodes may become NotReady.

Source of the rule: openshift/cluster-machine-approver; kubernetes, `certificates.k8s.io/v1` signer names.
"""

from __future__ import annotations

from runup.api.platform_v1 import CertificateSigningRequest
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, risk, since_text
from runup.rules.certificate_requests import unanswered

NAME = "CertificateRequestsPending"
EXAMPLE = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: csr-7x2vl, creationTimestamp: "2026-01-14T08:00:00Z"}
spec: {signerName: kubernetes.io/kubelet-serving, username: "system:node:worker-0"}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the unanswered certificate requests of kubelets."""
    waiting = unanswered(snapshot.all(CertificateSigningRequest), context.now)
    if waiting:
        oldest = min(request.metadata.creation_timestamp for request in waiting if request.metadata.creation_timestamp)
        who = names(sorted({request.spec.username or request.metadata.name for request in waiting}))
        yield risk(
            NAME,
            f"{count(len(waiting), 'certificate request')} of kubelets {'waits' if len(waiting) == 1 else 'wait'} for "
            f"an answer ({since_text(oldest)}): {who}.",
            waiting,
            fix="Look at them with `oc get csr`, and approve what is right: `oc adm certificate approve NAME`.",
        )


CHECK = declared(run, NAME, "machine-approver", reads=(CertificateSigningRequest,), rank=170)
