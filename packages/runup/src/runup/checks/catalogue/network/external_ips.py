"""Services use external IPs, which Kubernetes has deprecated.

Applies when the target is Kubernetes 1.36 or later, and a Service that is neither headless nor of type ExternalName has
`spec.externalIPs`.

Why it matters: a cluster may switch them off (AllowServiceExternalIPs), and a later version will no longer implement
them. This update changes nothing.

Remedy: plan a Service of type LoadBalancer, or a Gateway.

Accepting it is right for this update.

Source of the rule: kubernetes, `pkg/api/service/warnings.go` of 1.36 and `pkg/features/kube_features.go` of 1.37
(AllowServiceExternalIPs); <https://kep.k8s.io/5707>.
"""

from __future__ import annotations

from runup.api.platform_v1 import Service
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.writing import (
    Context,
    Findings,
    Snapshot,
    count,
    declared,
    full_name,
    names_of,
    resource_of,
    risk,
)

NAME = "ExternalIPsDeprecated"
_DEPRECATED_IN = 36
EXAMPLE = """
update: {from: 1.35.2, to: 1.36.0}
---
apiVersion: v1
kind: Service
metadata: {name: till, namespace: shop}
spec: {type: ClusterIP, selector: {app: till}, ports: [{port: 80}], externalIPs: [203.0.113.7]}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one finding (info) that names the Services."""
    if (target_minor(context) or 0) < _DEPRECATED_IN:
        return
    services = [
        service
        for service in snapshot.all(Service)
        if service.spec.external_ips and service.spec.type != "ExternalName" and service.spec.cluster_ip != "None"
    ]
    if services:
        services.sort(key=full_name)
        yield risk(
            NAME,
            f"{count(len(services), 'Service')} ({names_of(services)}) {'has' if len(services) == 1 else 'have'} "
            f"spec.externalIPs, which Kubernetes 1.{_DEPRECATED_IN} deprecates.",
            services,
            severity="info",
            fix="Nothing for this version; plan a Service of type LoadBalancer, or a Gateway.",
        )


CHECK = declared(
    run, NAME, "kube-proxy", reads=(resource_of(Service),), rank=627, severity="info", clusters="Kubernetes"
)
