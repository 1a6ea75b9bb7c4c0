"""The ReplicaSet controller: keeps the number of pods that the spec asks for. Caches in, calls out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.whole_v1 import WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.controllers.controller_loop import Attempt, Requeue
from kubesandbox.controllers.owned_pods import (
    JSON,
    REPLICA_SETS,
    Expectations,
    controlled_by,
    delete_pod,
    is_active,
    is_ready,
    pod_of,
    ready_since,
    status_of,
    warning_event,
)

REPLICA_FAILURE, FAILED_CREATE = "ReplicaFailure", "FailedCreate"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_BY_PHASE = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """The controller that keeps the desired number of pods."""

    name = "replicaset"

    def __init__(self, replica_sets: Cache[WholeReplicaSet], pods: Cache[WholePod], clock: Clock) -> None:
        self._replica_sets, self._pods, self._clock = replica_sets, pods, clock
        self._asked = Expectations(pods, clock)

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue | Attempt]:
        """Yields the calls for the ReplicaSet of `key`."""
        replica_set = self._replica_sets.get(key)
        if replica_set is None:
            self._asked.forget(key)
            return
        active = [pod for pod in controlled_by(replica_set, self._pods) if is_active(pod)]
        refused = None
        if replica_set.metadata.deletion_timestamp is None:
            refused = yield from self._to_size(key, replica_set, active)
        now = self._clock.now()
        status = _replica_set_status(replica_set, active, now) | {
            "conditions": codec.to_dict(_updated_conditions(replica_set, refused, now))
        }
        if refused is not None and _failure_condition(replica_set) is None:
            words = f"Error creating: {refused.message}"
            yield warning_event(
                replica_set, REPLICA_SETS, FAILED_CREATE, words, component="replicaset-controller", now=now
            )
        if status != status_of(replica_set):
            yield calls.merge_patch(REPLICA_SETS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        waits = [wait for pod in active if (wait := unavailable_for_s(pod, replica_set.spec.min_ready_seconds, now))]
        if waits:
            yield Requeue(min(waits))

    def _to_size(
        self, key: NamespacedName, whole: WholeReplicaSet, active: list[WholePod]
    ) -> Generator[Call[Any] | Attempt, None, KubeError | None]:
        """Yields the calls to the desired size; stops at the first error and returns it, else None."""
        missing = whole.spec.replicas - len(active) - self._asked.pending(key)
        if missing > 0:
            return (yield from self._asked.create_all(key, pod_of(whole, REPLICA_SETS, whole.spec.template), missing))
        for pod in sorted(active, key=deletion_rank)[: max(0, -missing)]:
            yield delete_pod(pod)
        return None


def _failure_condition(whole: WholeReplicaSet) -> Condition | None:
    return find(whole.status.conditions, REPLICA_FAILURE)


def _updated_conditions(whole: WholeReplicaSet, refused: KubeError | None, now: datetime) -> list[Condition]:
    """Returns the conditions, with ReplicaFailure and its first message until a pod is created.

    The rule is that of pkg/controller/replicaset.
    """
    failure = _failure_condition(whole)
    other_conditions = [condition for condition in whole.status.conditions if condition is not failure]
    if refused is None:
        return other_conditions
    new = Condition(REPLICA_FAILURE, "True", FAILED_CREATE, refused.message, last_transition_time=now)
    return [*other_conditions, failure or new]


def deletion_rank(pod: WholePod) -> tuple[Any, ...]:
    """Returns the sort key of pods to delete: the lowest goes first (pkg/controller `ActivePodsWithRanks`)."""
    never = datetime(1970, 1, 1, tzinfo=UTC)
    restarts = max(
        (
            int(container_status.get("restartCount") or 0)
            for container_status in pod.status.get("containerStatuses") or ()
        ),
        default=0,
    )
    return (
        bool(pod.spec.get("nodeName")),
        _BY_PHASE.get(pod.status.get("phase") or "Pending", 0),
        is_ready(pod),
        _deletion_cost(pod),
        # Pods that are ready the longest, restarted the least and are the oldest stay.
        -(ready_since(pod) or never).timestamp(),
        -restarts,
        -(pod.metadata.creation_timestamp or never).timestamp(),
        pod.metadata.name,
    )


def _deletion_cost(pod: WholePod) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0


def unavailable_for_s(pod: WholePod, min_ready_s: int, now: datetime) -> float:
    """Returns the seconds until a ready pod counts as available; 0 if it does already, or is not ready."""
    since = ready_since(pod)
    if since is None or not min_ready_s:
        return 0.0
    return max(0.0, min_ready_s - (now - since).total_seconds())


def _replica_set_status(whole: WholeReplicaSet, active: Sequence[WholePod], now: datetime) -> JSON:
    """Returns the numbers of a ReplicaSet's status."""
    template_labels = whole.spec.template.get("metadata", {}).get("labels") or {}
    ready = [pod for pod in active if is_ready(pod)]
    minimum = whole.spec.min_ready_seconds
    return {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template_labels.items() <= pod.metadata.labels.items() for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(not unavailable_for_s(pod, minimum, now) for pod in ready),
        "observedGeneration": whole.metadata.generation,
    }
