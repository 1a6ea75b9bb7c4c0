"""A component that carries out updates is scaled to none, or none of its pods leads.

Applies when the Deployment of the cluster-version operator, the machine-config operator or its controller is scaled to
0 replicas, or when the Lease of such a component, or of the controllers of the control plane, has not been renewed for
longer than it lasts and five minutes. Each component is a separate risk.

Why it matters: without the cluster-version operator no component is updated, without the machine-config operator no
node is, and without kube-controller-manager evicted pods do not come back. The update begins and does not finish, or
does not begin.

Remedy: scale the Deployment to 1 again, and remove an entry of `spec.overrides` in ClusterVersion that keeps it scaled
down. If nobody leads, see the pods of the component and their logs.

Accepting it means that the update stops where it needs this component.

Source of the rule: the manifests of openshift/cluster-version-operator and openshift/machine-config-operator (names,
leases); `k8s.io/client-go/tools/leaderelection` (a lease that is not renewed is lost).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, DeploymentSpec, Lease
from runup.checks.catalogue.shared.workload_reads import DEPLOYMENTS
from runup.checks.writing import Context, Findings, Slim, Snapshot, declared, risk
from runup.rules.update_components import DEPLOYED_IN, LEASES, component_troubles

NAME = "UpdateComponentStopped"
_LEASE = resource_of(Lease)
_LEASES = tuple(
    Slim(
        group=_LEASE.group,
        version=_LEASE.version,
        kind=_LEASE.kind,
        plural=_LEASE.plural,
        namespaced=True,
        type=Lease,
        namespace=namespace,
    )
    for namespace in dict.fromkeys(namespace for namespace, _ in LEASES)
)
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: machine-config-controller, namespace: openshift-machine-config-operator}
spec: {replicas: 0}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: machine-config, namespace: openshift-machine-config-operator}
spec: {holderIdentity: operator-1, leaseDurationSeconds: 137, renewTime: "2025-11-20T08:00:00.000000Z"}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each component that nobody runs or leads."""
    # Pods that fail are those of SystemPodsFailing.
    scaled = [
        Deployment(metadata=each.metadata, spec=DeploymentSpec(replicas=0))
        for each in snapshot.listed(DEPLOYMENTS)
        if each.metadata.namespace in DEPLOYED_IN and each.spec.replicas == 0
    ]
    yield from _risks(scaled, (), context)
    leases = [lease for read in _LEASES for lease in snapshot.listed(read)]
    known = {(each.metadata.namespace, each.metadata.name) for each in scaled}
    yield from _risks((), leases, context, known)


def _risks(
    deployments: Sequence[Deployment],
    leases: Sequence[Lease],
    context: Context,
    known: Collection[tuple[str, str]] = (),
) -> Findings:
    for trouble in component_troubles((), deployments, leases, context.now):
        component, namespace = trouble.component, trouble.namespace
        if (namespace, component.name) in known:
            continue
        objects: list[Object] = [each for each in deployments if each.metadata.name == component.name] or [
            lease for lease in leases if (lease.metadata.namespace, lease.metadata.name) in component.leases
        ]
        yield risk(
            f"{NAME}-{component.name}",
            f"{component.name} cannot act, so {component.effect}: {trouble.why}.",
            objects,
            fix="Scale the Deployment to 1 replica, or see why its pods do not lead: "
            f"`oc get deployments,pods,leases -n {namespace}`.",
            severity="critical",
            kind=DEPLOYMENTS if deployments else _LEASE,
        )


CHECK = declared(
    run,
    NAME,
    "cluster-version-operator",
    reads=(DEPLOYMENTS, *_LEASES),
    rank=582,
    severity="critical",
    clusters="OpenShift",
)
