"""Selects the certificate requests of kubelets that wait for an answer.

Sources: openshift/cluster-machine-approver; kubernetes, `certificates.k8s.io/v1` signer names.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from runup.api.platform_v1 import CertificateSigningRequest

SIGNERS = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")
ANSWERS = ("Approved", "Denied", "Failed")
# The machine approver answers within seconds.
PATIENCE = timedelta(minutes=10)


def unanswered(requests: Iterable[CertificateSigningRequest], now: datetime) -> list[CertificateSigningRequest]:
    """Returns the requests of kubelets that have been neither approved nor denied for `PATIENCE`, by name."""
    waiting = [
        request
        for request in requests
        if request.spec.signer_name in SIGNERS
        and not any(condition.type in ANSWERS for condition in request.status.conditions)
        and request.metadata.creation_timestamp is not None
        and now - request.metadata.creation_timestamp >= PATIENCE
    ]
    return sorted(waiting, key=lambda request: request.metadata.name)
