"""Pods, as all checks share them: one list, and of each pod only what is asked about it.

A large cluster has hundreds of thousands. What is kept of one is a few hundred bytes: what its containers ask for is
added up, why one waits is kept in words, and labels that many pods share are kept once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache

from runup.api.core_v1 import PlacedPod, PodPhase, PodPlace, RequestingContainer, WaitingContainer
from runup.api.meta_v1 import ObjectMeta, OwnerReference
from runup.domain.checks.reads import Slim
from runup.domain.conditions import status_of
from runup.lang.quantity import parse_quantity

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
    """What checks look at; the labels and owners that pods of one workload share are one object."""
    metadata = pod.metadata
    return PlacedPod(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=_text(metadata.namespace),
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            labels=_labels(tuple(metadata.labels.items())),
            deletion_timestamp=metadata.deletion_timestamp,
            owner_references=_owners(tuple((owner.kind, owner.name) for owner in metadata.owner_references)),
        ),
        spec=_place(_text(pod.spec.node_name), pod.spec.termination_grace_period_seconds),
        status=_phase(_text(pod.status.phase)),
        cpu_milli=_number(int(_requested(pod.spec.containers, "cpu") * 1000)),
        memory_bytes=_number(int(_requested(pod.spec.containers, "memory"))),
        ready=status_of(pod.status.conditions, "Ready") == "True",
        waiting=_waiting((*pod.status.init_container_statuses, *pod.status.container_statuses)),
    )


PODS = Slim("", "v1", "Pod", "pods", namespaced=True, type=PlacedPod, keep=_slim)


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


def _requested(containers: Iterable[RequestingContainer], what: str) -> Decimal:
    return sum((_amount(container.resources.requests.get(what, 0)) for container in containers), start=Decimal(0))


@lru_cache(4096)
def _amount(quantity: str | float) -> Decimal:
    """A quantity; one that cannot be read asks for nothing, as no pod with it would have been admitted."""
    try:
        return parse_quantity(str(quantity))
    except ValueError:
        return Decimal(0)


def _waiting(containers: Iterable[WaitingContainer]) -> str:
    for container in containers:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in BROKEN:
            return _text(f"{container.name}: {waiting.reason}")
    return ""


@lru_cache(65_536)
def _labels(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(items)


@lru_cache(65_536)
def _owners(owners: tuple[tuple[str, str], ...]) -> tuple[OwnerReference, ...]:
    return tuple(OwnerReference(kind=kind, name=name) for kind, name in owners)


@lru_cache(65_536)
def _place(node: str, grace_s: int) -> PodPlace:
    return PodPlace(node_name=node, termination_grace_period_seconds=grace_s)


@lru_cache(16)
def _phase(phase: str) -> PodPhase:
    return PodPhase(phase=phase)


@lru_cache(65_536)
def _number(number: int) -> int:
    """The same number as one object: pods ask for a few amounts."""
    return number


@lru_cache(65_536)
def _text(text: str) -> str:
    return text
