"""Pods, as all checks share them: one list, and of each pod only what is asked about it.

A large cluster has hundreds of thousands. What is kept of one is a few hundred bytes: what its containers ask for is
added up, why one waits is kept in words, and labels that many pods share are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from sys import intern

from kubekit.api.core_v1 import (
    PlacedPod,
    PodCondition,
    PodMeta,
    PodOwner,
    PodPhase,
    PodPlace,
    RequestingContainer,
    WaitingContainer,
)
from kubekit.lang.quantity import parse_quantity
from runup.checks.catalogue.declaring import named
from runup.checks.catalogue.shared.of_last import grouped, of_groups
from runup.checks.decide.reads import Slim

# Why a container does not run, where waiting does not help (kubelet, pkg/kubelet/images and kuberuntime).
BROKEN = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
ENDED = ("Succeeded", "Failed")
_STAY = ("DaemonSet", "Node")


def _slim(pod: PlacedPod) -> PlacedPod:
    """What checks look at; what pods of one workload have in common is one object."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    cpu_milli, memory_bytes = _requested(spec.containers)
    return PlacedPod(
        metadata=PodMeta(
            name=metadata.name,
            namespace=intern(metadata.namespace),
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            deletion_timestamp=metadata.deletion_timestamp,
            labels=_labels(tuple(metadata.labels.items())),
            owner_references=_owners(metadata.owner_references),
        ),
        spec=_place(spec.node_name, spec.termination_grace_period_seconds),
        status=_phase(status.phase),
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        ready=_is_ready(status.conditions),
        waiting=_waiting(status.init_container_statuses) or _waiting(status.container_statuses),
    )


PODS = Slim("", "v1", "Pod", "pods", namespaced=True, type=PlacedPod, keep=_slim)


_Pods = tuple[PlacedPod, ...]
_groups: Callable[[_Pods], tuple[Mapping[str, list[PlacedPod]], ...]] = grouped(
    attrgetter("spec.node_name"), attrgetter("metadata.namespace")
)


def by_node(pods: _Pods) -> Mapping[str, list[PlacedPod]]:
    """The pods on each node in no order, those on none under the empty name."""
    return _groups(pods)[0]


def by_namespace(pods: _Pods) -> Mapping[str, list[PlacedPod]]:
    """The pods of each namespace in no order."""
    return _groups(pods)[1]


def those(choose: Callable[[list[PlacedPod]], list[PlacedPod]]) -> Callable[[_Pods], list[PlacedPod]]:
    """What `choose` takes of each namespace's pods, whatever the time is, by namespace and name."""
    chosen = of_groups(choose)

    def found(pods: _Pods) -> list[PlacedPod]:
        return sorted((pod for some in chosen(by_namespace(pods)).values() for pod in some), key=named)

    return found


def drained(pod: PlacedPod) -> bool:
    """Whether a drain of its node evicts the pod: it has not ended, and is neither a DaemonSet's nor the node's own."""
    return (
        bool(pod.spec.node_name)
        and pod.status.phase not in ENDED
        and pod.metadata.deletion_timestamp is None
        and not stays(pod)
    )


def stays(pod: PlacedPod) -> bool:
    """Whether no drain moves it: it is a DaemonSet's, or the node's own."""
    # Asked of hundreds of thousands: a loop takes a third of what `any` does.
    for owner in pod.metadata.owner_references:  # noqa: SIM110
        if owner.kind in _STAY:
            return True
    return False


def selected(pods: Iterable[PlacedPod], namespace: str, labels: Mapping[str, str]) -> list[PlacedPod]:
    """The pods of a namespace that have all of `labels`."""
    return [
        pod
        for pod in pods
        if pod.metadata.namespace == namespace
        and all(pod.metadata.labels.get(key) == value for key, value in labels.items())
    ]


@lru_cache(4096)
def _requested(containers: tuple[RequestingContainer, ...]) -> tuple[int, int]:
    """Milli-cores and bytes that containers ask for together."""
    asked = [container.resources.requests for container in containers]
    return int(sum(_amount(each.cpu) for each in asked) * 1000), int(sum(_amount(each.memory) for each in asked))


@lru_cache(4096)
def _amount(quantity: str | float) -> Decimal:
    """A quantity; one that cannot be read asks for nothing, as no pod with it would have been admitted."""
    try:
        return parse_quantity(str(quantity))
    except ValueError:
        return Decimal(0)


def _is_ready(conditions: tuple[PodCondition, ...]) -> bool:
    # Asked of hundreds of thousands, as `stays`.
    for condition in conditions:
        if condition.type == "Ready":
            return condition.status == "True"
    return False


def _waiting(containers: tuple[WaitingContainer, ...]) -> str:
    for container in containers:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in BROKEN:
            return intern(f"{container.name}: {waiting.reason}")
    return ""


# Lists come sorted by name, pods of one workload beside each other: a few thousand are enough to share what they share.
@lru_cache(4096)
def _labels(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(items)


@lru_cache(4096)
def _owners(owners: tuple[PodOwner, ...]) -> tuple[PodOwner, ...]:
    return owners


# One for each node, which pods do not come sorted by.
@lru_cache(65_536)
def _place(node: str, grace_s: int) -> PodPlace:
    return PodPlace(node_name=node, termination_grace_period_seconds=grace_s)


@lru_cache(16)
def _phase(phase: str) -> PodPhase:
    return PodPhase(phase=phase)
