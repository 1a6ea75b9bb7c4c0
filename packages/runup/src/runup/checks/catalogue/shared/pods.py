"""Declares how Pods are read for all checks: one list, and of each pod only what checks ask about.

A large cluster has hundreds of thousands. A pod takes a few hundred bytes: the requests of its containers are added up,
the reason why one of them waits is kept in words, and labels that many pods share are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from sys import intern

from msgspec.structs import replace

from kubekit.api import pod_parts
from kubekit.api.pod_parts import ListedPod, PlacedPod, PodOwner, PodTraits
from kubekit.lang.quantity import parse_quantity
from kubekit.rules.eviction_rules import ENDED, needs_eviction
from kubekit.rules.pod_requests import whole_number
from kubekit.rules.pod_rules import BROKEN_REASONS
from runup.checks.catalogue.shared.pod_security_levels import violations
from runup.checks.catalogue.shared.result_cache import cache_groups, cached_grouping
from runup.checks.decide.addon_images import CHART_LABEL, NAME_LABEL, is_addon, is_labelled, withdrawal
from runup.checks.writing import Slim, full_name


def _slim_pod(pod: ListedPod) -> PlacedPod:
    """Returns the pod with only the fields that checks use; pods of one workload share equal parts.

    Without its resourceVersion: the cache compares pods by value.
    """
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    owners, annotations = metadata.owner_references, metadata.annotations
    if annotations.mirror:
        # The annotation is a hash that no two pods share. Its meaning is kept: the node controls a static pod.
        annotations = pod_parts.PodAnnotations(scc=annotations.scc)
        owners = (PodOwner(kind="Node", name=spec.node_name, controller=True),)
    pending = _pending_reason(pod) if status.phase == "Pending" else ""
    # Init containers run first: a waiting one is the reason why the others do not run.
    waiting = _waiting_container(status.init_container_statuses) or _waiting_container(status.container_statuses)
    # What the pod shares of its node.
    on_node, claims, plugins = "", [], []
    # For hundreds of thousands of pods, loops take a third of the time of `any` and comprehensions.
    for volume in spec.volumes:
        if volume.host_path is not None:
            on_node = "hostPath volumes"
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        elif volume != _PLAIN and volume.plugin:
            plugins.append(volume.plugin)
    if spec.host_network or spec.host_pid or spec.host_ipc:
        on_node = "host namespaces"
    demands = _shared_demands(
        spec.containers,
        spec.init_containers,
        of_pod=spec.security_context,
        on_node=on_node,
        windows=spec.os.name == "windows",
    )
    if spec.resources is not None:
        demands = replace(demands, undeclared=())  # those of the whole pod suffice for a quota
    # An image of another name may still be of an add-on.
    labels = metadata.labels
    if not demands.addons and spec.containers and is_labelled(labels.get(NAME_LABEL, ""), labels.get(CHART_LABEL, "")):
        demands = replace(demands, addons=(spec.containers[0].image,))
    if claims or plugins:
        demands = replace(demands, claims=tuple(claims), plugins=tuple(plugins))
    ready = False
    for condition in status.conditions:
        if condition.type == "Ready":
            ready = condition.status == "True"
            break
    return PlacedPod(
        metadata=pod_parts.PodMeta(
            name=metadata.name,
            # Thousands of pods have the same namespace: one text for all.
            namespace=intern(metadata.namespace),
            owner_references=_shared_owners(owners),
            traits=_shared_traits(
                tuple(metadata.labels.items()),
                annotations,
                # Asked for only of those that have not started.
                metadata.creation_timestamp if pending else None,
                metadata.deletion_timestamp,
            ),
        ),
        spec=_shared_place(spec.node_name, spec.termination_grace_period_seconds),
        status=_shared_phase(status.phase, ready, waiting, pending),
        demands=demands,
    )


PODS = Slim(group="", version="v1", kind="Pod", plural="pods", namespaced=True, type=ListedPod, keep=_slim_pod)


# Most volumes, such as a ConfigMap or an emptyDir, have no field that is read.
_PLAIN = pod_parts.PodVolume()
_Pods = tuple[PlacedPod, ...]
_groups: Callable[[_Pods], tuple[Mapping[str, list[PlacedPod]], ...]] = cached_grouping(
    attrgetter("spec.node_name"), attrgetter("metadata.namespace")
)


def pods_by_node(pods: _Pods) -> Mapping[str, list[PlacedPod]]:
    """Returns the pods on each node, unordered; those without a node are under the empty name."""
    return _groups(pods)[0]


def pods_by_namespace(pods: _Pods) -> Mapping[str, list[PlacedPod]]:
    """Returns the pods of each namespace, unordered."""
    return _groups(pods)[1]


def select_pods(choose: Callable[[list[PlacedPod]], list[PlacedPod]]) -> Callable[[_Pods], list[PlacedPod]]:
    """Returns a function that takes a list of pods and returns those that `choose` chooses, by namespace and name.

    `choose` gets the pods of one namespace. It must not depend on the time, because its results are cached.
    """
    chosen_groups = cache_groups(choose)

    def found(pods: _Pods) -> list[PlacedPod]:
        return sorted(
            (pod for group_pods in chosen_groups(pods_by_namespace(pods)).values() for pod in group_pods), key=full_name
        )

    return found


def is_drained(pod: PlacedPod) -> bool:
    """Returns whether a drain of its node evicts the pod.

    A drain does not evict a pod that has ended or is being deleted, that a DaemonSet owns, or that is a static pod.
    """
    metadata = pod.metadata
    if not pod.spec.node_name or metadata.deletion_timestamp is not None:
        return False
    return needs_eviction(pod.status.phase, metadata.owner_references)


@cache_groups
def _drained_of_group(pods: list[PlacedPod]) -> list[PlacedPod]:
    return [pod for pod in pods if is_drained(pod)]


def drained_pods_by_namespace(pods: _Pods) -> Mapping[str, list[PlacedPod]]:
    """Returns the pods of each namespace that a drain of their nodes evicts, unordered; a list may be empty."""
    return _drained_of_group(pods_by_namespace(pods))


def is_broken(pod: PlacedPod, now: datetime, patience: timedelta) -> bool:
    """Returns whether the pod does not run and does not get there by waiting; `patience` is how long a start takes."""
    if pod.metadata.deletion_timestamp is not None or pod.status.phase in ENDED or pod.status.ready:
        return False
    created = pod.metadata.creation_timestamp
    is_late = created is not None and now - created >= patience
    return bool(pod.status.waiting) or (bool(pod.status.pending) and is_late)


@lru_cache(4096)
def quantity_or_none(quantity: str | float) -> Decimal | None:
    """Returns a quantity as a number, or None if it cannot be read: the API server would not have stored such a one."""
    try:
        return parse_quantity(str(quantity))
    except ValueError:
        return None


# One cache for all, since most of the time goes into the hash of the containers.
@lru_cache(4096)
def _shared_demands(
    containers: tuple[pod_parts.RequestingContainer, ...],
    init_containers: tuple[pod_parts.RequestingContainer, ...],
    of_pod: pod_parts.SecurityContext | None,
    on_node: str,
    windows: bool,
) -> pod_parts.PodDemands:
    """Returns what pods with these containers demand, without their claims."""
    requests = [container.resources.requests for container in containers]
    cpu_milli = sum(whole_number("cpu", request.cpu) for request in requests)
    memory_bytes = sum(whole_number("memory", request.memory) for request in requests)
    violated = violations((*init_containers, *containers), of_pod, on_node, windows=windows)
    addons = tuple(container.image for container in containers if is_addon(container.image))
    return pod_parts.PodDemands(
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        violations=violated,
        addons=addons,
        undeclared=_undeclared((*init_containers, *containers)),
        se_linux=_se_linux(containers, of_pod),
        withdrawn=tuple(each.image for each in (*init_containers, *containers) if withdrawal(each.image)),
    )


def _undeclared(containers: tuple[pod_parts.RequestingContainer, ...]) -> tuple[str, ...]:
    """Returns the amounts that some container does not declare; a limit is the default of a request."""
    missing = set()
    for container in containers:
        requests, limits = container.resources.requests, container.resources.limits
        for name in ("cpu", "memory"):
            if getattr(limits, name) is None:
                missing |= {f"limits.{name}"} | ({f"requests.{name}"} if getattr(requests, name) == 0 else set())
    return tuple(sorted(missing))


def _se_linux(containers: tuple[pod_parts.RequestingContainer, ...], of_pod: pod_parts.SecurityContext | None) -> str:
    """Returns the SELinux label with which volumes are mounted for a pod; it is empty if its files are relabelled.

    A container's own label counts instead of the pod's (kubelet, `pkg/volume/util/selinux.go`).
    """
    if of_pod is not None and of_pod.se_linux_change_policy == "Recursive":
        return ""
    labels = [context.se_linux_options for container in containers if (context := container.security_context)]
    own = next((label for label in labels if label is not None), None)
    label = own or (of_pod.se_linux_options if of_pod is not None else None)
    return ":".join((label.user, label.role, label.type, label.level)) if label is not None else ""


def _waiting_container(containers: tuple[pod_parts.WaitingContainer, ...]) -> str:
    """Returns the first container that waits for a reason in `BROKEN_REASONS`, with the reason, or an empty string."""
    for container in containers:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in BROKEN_REASONS:
            return intern(f"{container.name}: {waiting.reason}")
    return ""


def _pending_reason(pod: ListedPod) -> str:
    """Returns what a pod that has not started waits for, or an empty string if it is held back on purpose."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            # The controller that gated the pod has not released it yet (core/v1, PodReasonSchedulingGated).
            return "" if condition.reason == "SchedulingGated" else intern(condition.reason or "Unschedulable")
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if container.state.waiting is not None and container.state.waiting.reason:
            return intern(f"{container.name}: {container.state.waiting.reason}")
    return "Pending"


# Lists are sorted by name, so the pods of one workload are adjacent: a few thousand entries are enough.
@lru_cache(4096)
def _shared_traits(
    labels: tuple[tuple[str, str], ...],
    annotations: pod_parts.PodAnnotations,
    created: datetime | None,
    deleted: datetime | None,
) -> PodTraits:
    return PodTraits(
        labels=dict(labels), annotations=annotations, creation_timestamp=created, deletion_timestamp=deleted
    )


@lru_cache(4096)
def _shared_owners(owners: tuple[PodOwner, ...]) -> tuple[PodOwner, ...]:
    return tuple(PodOwner(kind=intern(owner.kind), name=owner.name, controller=owner.controller) for owner in owners)


# One entry for each node, because pods are not sorted by node.
@lru_cache(65_536)
def _shared_place(node: str, grace_s: int) -> pod_parts.PodPlace:
    return pod_parts.PodPlace(node_name=node, termination_grace_period_seconds=grace_s)


@lru_cache(1024)
def _shared_phase(phase: str, ready: bool, waiting: str, pending: str) -> pod_parts.PodPhase:
    return pod_parts.PodPhase(phase=phase, ready=ready, waiting=waiting, pending=pending)
