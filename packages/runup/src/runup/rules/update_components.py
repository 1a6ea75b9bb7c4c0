"""Decides which components that carry out an update cannot act: their pods fail, none is wanted, or none leads.

Sources: the manifests of openshift/cluster-version-operator, openshift/machine-config-operator and the operators of the
control plane (names, namespaces, leases); `k8s.io/client-go/tools/leaderelection` (a lease that is not renewed is
lost).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Pod
from kubekit.api.workloads_v1 import Deployment, Lease
from kubekit.rules.eviction_rules import ENDED
from kubekit.rules.pod_rules import BROKEN_REASONS, PATIENCE, PodTrouble, trouble_of, waiting_reason
from runup.api.config_v1 import ClusterOperator
from runup.rules.platform_namespaces import is_system

MACHINE_CONFIG_NAMESPACE = "openshift-machine-config-operator"
DAEMON = "machine-config-daemon"
# The namespace of the release's operator, and that of an operator which takes its place.
_VERSION_NAMESPACES = ("openshift-cluster-version", "openshift-cluster-version-operator")


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A component that an update needs, in one of `namespaces`. `leases` are the namespaces and names of its Leases.

    With `quorum`, it cannot act unless more than half of its pods can. `pod_prefix` begins the names of its pods if
    these are not named after it.
    """

    name: str
    pod_prefix: str = ""
    namespaces: tuple[str, ...]
    effect: str
    quorum: bool = False
    leases: tuple[tuple[str, str], ...] = ()


COMPONENTS = (
    Component(
        name="cluster-version-operator",
        namespaces=_VERSION_NAMESPACES,
        effect="no component is updated",
        leases=tuple((namespace, "version") for namespace in _VERSION_NAMESPACES),
    ),
    Component(
        name="machine-config-operator",
        namespaces=(MACHINE_CONFIG_NAMESPACE,),
        effect="the machine config pools do not get the new release",
        leases=((MACHINE_CONFIG_NAMESPACE, "machine-config"),),
    ),
    Component(
        name="machine-config-controller",
        namespaces=(MACHINE_CONFIG_NAMESPACE,),
        effect="no node is given its new configuration",
        leases=((MACHINE_CONFIG_NAMESPACE, "machine-config-controller"),),
    ),
    Component(name="etcd", namespaces=("openshift-etcd",), effect="the API stores nothing", quorum=True),
    Component(name="kube-apiserver", namespaces=("openshift-kube-apiserver",), effect="nothing can be read or written"),
    Component(
        name="kube-controller-manager",
        namespaces=("openshift-kube-controller-manager",),
        effect="pods and nodes are not replaced, and evicted pods do not come back",
        leases=(("kube-system", "kube-controller-manager"),),
    ),
    Component(
        name="kube-scheduler",
        pod_prefix="openshift-kube-scheduler",
        namespaces=("openshift-kube-scheduler",),
        effect="evicted pods are placed on no node",
        leases=(("openshift-kube-scheduler", "kube-scheduler"),),
    ),
)
NAMESPACES = tuple(dict.fromkeys(namespace for component in COMPONENTS for namespace in component.namespaces))
DEPLOYED_IN = (*_VERSION_NAMESPACES, MACHINE_CONFIG_NAMESPACE)
"""The namespaces of the components that are Deployments; the others are static pods."""
LEASES = tuple(lease for component in COMPONENTS for lease in component.leases)


# So many namespaces of operators are read at most, and never the pods that run on every node.
_NAMESPACES_AT_MOST = 12
NOT_OF_DAEMON_SETS = "!pod-template-generation"


def further_namespaces(operators: Iterable[ClusterOperator], version: str) -> tuple[str, ...]:
    """Returns the platform's namespaces of the ClusterOperators that need attention, those that are not well first.

    An operator needs it if it is not well, or is on its way to `version`.
    """
    ranked = []
    for operator in operators:
        conditions = {each.type: each.status for each in operator.status.conditions}
        well = conditions.get("Available") == "True" and conditions.get("Degraded") != "True"
        done = any(each.name == "operator" and each.version == version for each in operator.status.versions)
        if not well or not done:
            ranked.append((well, conditions.get("Progressing") != "True", operator.metadata.name, operator))
    ranked.sort(key=lambda each: each[:3])
    found = dict.fromkeys(
        related.name
        for *_, operator in ranked
        for related in operator.status.related_objects
        if related.resource == "namespaces" and is_system(related.name) and related.name not in NAMESPACES
    )
    return tuple(found)[:_NAMESPACES_AT_MOST]


class ComponentTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """A component that cannot act: why, since when if known, and its pods in trouble; not `stopped` if others can."""

    component: Component
    namespace: str
    why: str
    since: datetime | None
    stopped: bool
    pods: tuple[Pod, ...] = ()


def is_pod_of(pod: Pod, name: str, namespace: str) -> bool:
    """Returns whether a pod runs the component: it is named after it, and neither guards nor installs it."""
    own, of_pod = pod.metadata.name, pod.metadata.namespace
    return (
        of_pod == namespace and own.startswith(f"{name}-") and not own.startswith((f"{name}-guard", f"{name}-operator"))
    )


def version_pod_trouble(pods: Iterable[Pod], now: datetime) -> tuple[Pod, PodTrouble] | None:
    """Returns the newest pod that fetches a release and why it fails, or None if it does not.

    The operator makes such a pod for each attempt (cluster-version-operator, pkg/cvo/updatepayload.go).
    """
    attempts = [
        pod
        for pod in pods
        if pod.metadata.namespace in _VERSION_NAMESPACES and pod.metadata.name.startswith("version-")
    ]
    if not attempts:
        return None
    newest = max(attempts, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name))
    status = newest.status
    if status.phase == "Succeeded":
        return None
    reason, message = waiting_reason(newest)
    ended = [
        state.terminated
        for each in (*status.init_container_statuses, *status.container_statuses)
        for state in (each.state, each.last_state)
        if state.terminated is not None and state.terminated.exit_code
    ]
    text = ": ".join(part for part in (reason, message) if part)
    if status.phase == "Failed" or (ended and reason in BROKEN_REASONS):
        # Not its message, which may hold anything that a program prints.
        end = f"exit code {ended[0].exit_code}" if ended else ""
        why = "; ".join(part for part in (status.reason, status.message, text, end) if part)
        return newest, PodTrouble(f"failed ({why or 'no reason given'})", newest.metadata.creation_timestamp)
    if reason in BROKEN_REASONS:
        return newest, PodTrouble(f"cannot start ({text})", newest.metadata.creation_timestamp)
    trouble = trouble_of(newest, now)
    return (newest, trouble) if trouble is not None else None


def component_troubles(
    pods: Iterable[Pod], deployments: Iterable[Deployment], leases: Iterable[Lease], now: datetime
) -> Iterator[ComponentTrouble]:
    """Yields the components that cannot act; a component whose objects are not among these counts as able to."""
    pods = [pod for pod in pods if pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is None]
    wanted = {(each.metadata.namespace, each.metadata.name): each for each in deployments}
    known_leases = [(lease.metadata.namespace, lease.metadata.name, lease) for lease in leases]
    for component in COMPONENTS:
        own_leases = [lease for space, name, lease in known_leases if (space, name) in component.leases]
        for namespace in component.namespaces:
            own = [pod for pod in pods if is_pod_of(pod, component.pod_prefix or component.name, namespace)]
            deployment = wanted.get((namespace, component.name))
            # A component may have had its lease in another namespace before.
            lease = next((lease for lease in own_leases if lease.metadata.namespace == namespace), None)
            lease = lease or (own_leases[0] if len(component.namespaces) == 1 and own_leases else None)
            if (trouble := _trouble(component, namespace, own, deployment, lease=lease, now=now)) is not None:
                yield trouble


def _trouble(
    component: Component,
    namespace: str,
    pods: Sequence[Pod],
    deployment: Deployment | None,
    *,
    lease: Lease | None,
    now: datetime,
) -> ComponentTrouble | None:
    """Returns why the component cannot act, the most certain reason first."""
    trouble = partial(ComponentTrouble, component=component, namespace=namespace)
    failing = [(pod, why) for pod in pods if (why := trouble_of(pod, now)) is not None]
    in_part = None
    if failing:
        in_part = trouble(
            why="; ".join(f"pod {pod.metadata.name} {why.why}" for pod, why in failing[:5]),
            since=min((why.since for _, why in failing if why.since), default=None),
            stopped=2 * len(failing) >= len(pods) if component.quorum else len(failing) == len(pods),
            pods=tuple(pod for pod, _ in failing),
        )
        if in_part.stopped:
            return in_part
    found = _lacking(deployment, pods, now) if deployment is not None else None
    found = found or (_leaderless(lease, now) if lease is not None else None)
    return trouble(why=found.why, since=found.since, stopped=True) if found is not None else in_part


def _lacking(deployment: Deployment, pods: Sequence[Pod], now: datetime) -> PodTrouble | None:
    """Returns why a Deployment has no pod that could act: it is scaled to none, or none is made."""
    name = deployment.metadata.name
    if deployment.spec.replicas == 0:
        return PodTrouble(f"Deployment {name} is scaled to 0 replicas")
    available = find(deployment.status.conditions, "Available")
    if pods or (available is not None and available.status == "True"):
        return None
    # A Deployment without conditions is one that its controller has not seen yet.
    since = available.last_transition_time if available is not None else deployment.metadata.creation_timestamp
    if (since is None and available is None) or (since is not None and now - since < PATIENCE):
        return None
    failure = find(deployment.status.conditions, "ReplicaFailure")
    message = available.message if available is not None else ""
    if failure is not None and failure.status == "True":
        message = failure.message
    return PodTrouble(f"Deployment {name} has no pod{f' ({message})' if message else ''}", since)


def _leaderless(lease: Lease, now: datetime) -> PodTrouble | None:
    """Returns why nobody leads: the lease is not renewed for longer than it lasts, and some minutes."""
    renewed = lease.spec.renew_time or lease.spec.acquire_time
    # Any client may write a Lease: no elector asks for more than an hour.
    lasts = timedelta(seconds=min(max(lease.spec.lease_duration_seconds, 0), 3600))
    if renewed is None or now - renewed < max(lasts, PATIENCE):
        return None
    name, holder = f"Lease {lease.metadata.namespace}/{lease.metadata.name}", lease.spec.holder_identity
    held = f"held by {holder}" if holder else "held by nobody"
    return PodTrouble(f"it has no leader: {name}, {held}, was last renewed at {renewed:%Y-%m-%dT%H:%M:%SZ}", renewed)
