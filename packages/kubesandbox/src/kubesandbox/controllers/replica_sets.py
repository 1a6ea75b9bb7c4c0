"""The ReplicaSet controller: keeps the number of pods that the spec asks for. Caches in, calls out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.whole_v1 import WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.controllers import owned_pods
from kubesandbox.controllers.controller_loop import Attempt, Requeue
from kubesandbox.controllers.owned_pods import REPLICA_SETS, is_ready, ready_since

REPLICA_FAILURE, FAILED_CREATE = "ReplicaFailure", "FailedCreate"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_BY_PHASE = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """The controller that keeps the desired number of pods."""

    name = "replicaset"

    def __init__(self, replica_sets: Cache[WholeReplicaSet], pods: Cache[WholePod], clock: Clock) -> None:
        self._replica_sets, self._pods, self._clock = replica_sets, pods, clock
        self._asked = owned_pods.Expectations(pods, clock)

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue | Attempt]:
        """Yields the calls for the ReplicaSet of `key`."""
        whole = self._replica_sets.get(key)
        if whole is None:
            self._asked.forget(key)
            return
        spec = whole.spec
        active = [pod for pod in owned_pods.controlled_by(whole, self._pods) if owned_pods.is_active(pod)]
        refused = None
        if whole.metadata.deletion_timestamp is None:
            missing = spec.replicas - len(active) - self._asked.pending(key)
            if missing > 0:
                new_pod = owned_pods.pod_of(whole, REPLICA_SETS, spec.template)
                refused = yield from self._asked.create_all(key, new_pod, missing)
            else:
                for pod in sorted(active, key=deletion_rank)[:-missing]:
                    yield owned_pods.delete_pod(pod)
        now = self._clock.now()
        # ReplicaFailure keeps its first message until a pod is created (pkg/controller/replicaset).
        failure = find(whole.status.conditions, REPLICA_FAILURE)
        conditions = [condition for condition in whole.status.conditions if condition is not failure]
        if refused is not None:
            conditions.append(
                failure
                or Condition(
                    type=REPLICA_FAILURE,
                    status="True",
                    reason=FAILED_CREATE,
                    message=refused.message,
                    last_transition_time=now,
                )
            )
            if failure is None:
                words = f"Error creating: {refused.message}"
                component = "replicaset-controller"
                yield owned_pods.warning_event(whole, REPLICA_SETS, FAILED_CREATE, words, component=component, now=now)
        template_labels = spec.template.get("metadata", {}).get("labels") or {}
        ready = [pod for pod in active if is_ready(pod)]
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(template_labels.items() <= pod.metadata.labels.items() for pod in active),
            "readyReplicas": len(ready),
            "availableReplicas": sum(not unavailable_for_s(pod, spec.min_ready_seconds, now) for pod in ready),
            "observedGeneration": whole.metadata.generation,
            "conditions": codec.to_dict(conditions),
        }
        if status != owned_pods.status_of(whole):
            yield calls.merge_patch(REPLICA_SETS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        waits = [wait for pod in active if (wait := unavailable_for_s(pod, spec.min_ready_seconds, now))]
        if waits:
            yield Requeue(min(waits))


def deletion_rank(pod: WholePod) -> tuple[Any, ...]:
    """Returns the sort key of pods to delete: the lowest goes first (pkg/controller `ActivePodsWithRanks`)."""
    never, cost = datetime(1970, 1, 1, tzinfo=UTC), 0
    with suppress(ValueError):
        cost = int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    restarts = [int(one.get("restartCount") or 0) for one in pod.status.get("containerStatuses") or ()]
    return (
        bool(pod.spec.get("nodeName")),
        _BY_PHASE.get(pod.status.get("phase") or "Pending", 0),
        is_ready(pod),
        cost,
        # Pods that are ready the longest, restarted the least and are the oldest stay.
        -(ready_since(pod) or never).timestamp(),
        -max(restarts, default=0),
        -(pod.metadata.creation_timestamp or never).timestamp(),
        pod.metadata.name,
    )


def unavailable_for_s(pod: WholePod, min_ready_s: int, now: datetime) -> float:
    """Returns the seconds until a ready pod counts as available; 0 if it does already, or is not ready."""
    since = ready_since(pod)
    if since is None or not min_ready_s:
        return 0.0
    return max(0.0, min_ready_s - (now - since).total_seconds())
