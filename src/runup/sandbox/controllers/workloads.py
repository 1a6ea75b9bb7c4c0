"""Deployment -> ReplicaSet -> Pod, and Job -> Pod: caches in, calls out.

Roll-outs are simpler than Kubernetes' own: RollingUpdate starts all new pods beside the old ones and removes those when
the new ones are ready; Recreate waits until the old pods are gone. Names, labels, owners and status are as usual.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from runup.api import codec
from runup.api.meta_v1 import Condition, NamespacedName, Object
from runup.api.scheme import Resource
from runup.api.whole_v1 import WholeDeployment, WholeJob, WholePod, WholeReplicaSet
from runup.domain.conditions import find, with_condition
from runup.kube import calls
from runup.kube.cache import Cache
from runup.kube.clock import Clock
from runup.kube.request import Call

JSON = dict[str, Any]
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
# How long a pod that was asked for may stay out of sight before it is asked for again.
_PATIENCE_S = 30.0


def owned(owner: Object, cache: Cache[Any]) -> list[Any]:
    """The objects that `owner` controls, by name."""
    found = [
        obj
        for obj in cache.all()
        if obj.metadata.namespace == owner.metadata.namespace
        and any(ref.uid == owner.metadata.uid and ref.controller for ref in obj.metadata.owner_references)
    ]
    return sorted(found, key=lambda obj: obj.metadata.name)


def owner_reference(owner: Object, resource: Resource) -> JSON:
    """What makes `owner` the controller of an object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_ready(pod: WholePod) -> bool:
    """Whether the pod's condition Ready is True."""
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in pod.status.get("conditions") or ())


def is_active(pod: WholePod) -> bool:
    """Whether the pod runs or will."""
    return pod.metadata.deletion_timestamp is None and pod.status.get("phase") not in {"Succeeded", "Failed"}


class Deployments:
    """Keeps one ReplicaSet a template, and the newest at the wanted size."""

    name = "deployment"

    def __init__(
        self,
        deployments: Cache[WholeDeployment],
        replica_sets: Cache[WholeReplicaSet],
        pods: Cache[WholePod],
        clock: Clock,
    ) -> None:
        self._deployments, self._replica_sets, self._pods, self._clock = deployments, replica_sets, pods, clock

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """What the Deployment of `key` needs."""
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return
        sets = owned(deployment, self._replica_sets)
        digest = template_hash(deployment.spec.template)
        new = next((s for s in sets if s.metadata.labels.get(HASH_LABEL) == digest), None)
        old = [s for s in sets if s is not new]
        yield from self._roll(deployment, new, old, digest, revision=len(old) + 1)
        status = _deployment_status(deployment, new, sets, self._clock.now())
        if status != _status_of(deployment):
            yield calls.merge_patch(DEPLOYMENTS, key.name, {"status": status}, key.namespace, subresource="status")

    def _roll(
        self,
        deployment: WholeDeployment,
        new: WholeReplicaSet | None,
        old: list[WholeReplicaSet],
        digest: str,
        *,
        revision: int,
    ) -> Iterator[Call[Any]]:
        wanted, spec = deployment.spec.replicas, deployment.spec
        if spec.strategy.type == "Recreate":
            yield from (_scale(s, 0) for s in old if s.spec.replicas)
            if any(owned(s, self._pods) for s in old):
                return
        if new is None:
            yield calls.create(REPLICA_SETS, _replica_set(deployment, digest, wanted, revision))
            return
        if new.spec.replicas != wanted:
            yield _scale(new, wanted)
        if new.status.ready_replicas >= wanted and new.status.observed_generation >= new.metadata.generation:
            yield from (_scale(s, 0) for s in old if s.spec.replicas)
        gone = [s for s in old if not s.spec.replicas and not s.status.replicas]
        for surplus in gone[: max(0, len(gone) - spec.revision_history_limit)]:
            yield calls.delete(REPLICA_SETS, surplus.metadata.name, surplus.metadata.namespace)


class ReplicaSets:
    """Keeps as many pods as the spec says."""

    name = "replicaset"

    def __init__(self, replica_sets: Cache[WholeReplicaSet], pods: Cache[WholePod], clock: Clock) -> None:
        self._replica_sets, self._pods, self._clock = replica_sets, pods, clock
        self._asked = Expectations(pods, clock)

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """What the ReplicaSet of `key` needs."""
        found = self._replica_sets.get(key)
        if found is None:
            self._asked.forget(key)
            return
        pods = owned(found, self._pods)
        active = [pod for pod in pods if is_active(pod)]
        if found.metadata.deletion_timestamp is None:
            missing = found.spec.replicas - len(active) - self._asked.pending(key)
            for _ in range(missing):
                yield self._asked.create(key, _pod(found, REPLICA_SETS, found.spec.template))
            surplus = sorted(active, key=lambda pod: (is_ready(pod), pod.metadata.name))
            for pod in surplus[: max(0, -missing)]:
                yield calls.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        ready = sum(is_ready(pod) for pod in active)
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": found.metadata.generation,
        }
        if status != _status_of(found):
            yield calls.merge_patch(REPLICA_SETS, key.name, {"status": status}, key.namespace, subresource="status")


class Jobs:
    """Runs pods until enough have succeeded, or too many have failed."""

    name = "job"

    def __init__(self, jobs: Cache[WholeJob], pods: Cache[WholePod], clock: Clock) -> None:
        self._jobs, self._pods, self._clock = jobs, pods, clock
        self._asked = Expectations(pods, clock)

    def calls(self, key: NamespacedName) -> Iterable[Call[Any]]:
        """What the Job of `key` needs."""
        job = self._jobs.get(key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return
        pods = owned(job, self._pods)
        active = [pod for pod in pods if is_active(pod)]
        succeeded = sum(pod.status.get("phase") == "Succeeded" for pod in pods)
        failed = sum(pod.status.get("phase") == "Failed" for pod in pods)
        done = _job_outcome(job, succeeded, failed)
        if not done and not job.spec.suspend:
            room = min(job.spec.parallelism, job.spec.completions - succeeded) - len(active) - self._asked.pending(key)
            for _ in range(room):
                yield self._asked.create(key, _pod(job, JOBS, _job_template(job)))
        if done and not failed <= job.spec.backoff_limit:
            for pod in active:
                yield calls.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        status = _job_status(job, pods, done, self._clock.now())
        if status != _status_of(job):
            yield calls.merge_patch(JOBS, key.name, {"status": status}, key.namespace, subresource="status")


class Expectations:
    """Pods that were asked for and are not in the cache yet, so that a slow watch does not make them twice."""

    def __init__(self, pods: Cache[WholePod], clock: Clock) -> None:
        self._pods, self._clock = pods, clock
        self._names: dict[NamespacedName, dict[NamespacedName, float]] = {}

    def create(self, owner: NamespacedName, pod: JSON) -> Call[Any]:
        """The call that makes `pod`, whose answer is remembered."""
        call = calls.create(PODS, pod)

        def decode(body: bytes) -> Any:
            made = call.decode(body)
            key = NamespacedName(made["metadata"]["namespace"], made["metadata"]["name"])
            self._names.setdefault(owner, {})[key] = self._clock.monotonic()
            return made

        return Call(call.request, decode)

    def pending(self, owner: NamespacedName) -> int:
        """How many are still out of sight."""
        oldest = self._clock.monotonic() - _PATIENCE_S
        waiting = self._names.get(owner, {})
        for name, since in tuple(waiting.items()):
            if self._pods.get(name) is not None or since < oldest:
                del waiting[name]
        return len(waiting)

    def forget(self, owner: NamespacedName) -> None:
        """The owner is gone."""
        self._names.pop(owner, None)


def template_hash(template: JSON) -> str:
    """A short name for a template, in letters that spell nothing."""
    digest = hashlib.sha256(codec.encode(template)).digest()
    return "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in digest[:10])


def _scale(found: WholeReplicaSet, replicas: int) -> Call[Any]:
    metadata = found.metadata
    return calls.merge_patch(REPLICA_SETS, metadata.name, {"spec": {"replicas": replicas}}, metadata.namespace)


def _replica_set(deployment: WholeDeployment, digest: str, replicas: int, revision: int) -> JSON:
    template = _labelled(deployment.spec.template, digest)
    selector = codec.to_dict(deployment.spec.selector)
    selector["matchLabels"] = {**selector.get("matchLabels", {}), HASH_LABEL: digest}
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{deployment.metadata.name}-{digest}",
            "namespace": deployment.metadata.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def _labelled(template: JSON, digest: str) -> JSON:
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), HASH_LABEL: digest}}}


def _pod(owner: Object, resource: Resource, template: JSON) -> JSON:
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "generateName": f"{owner.metadata.name}-",
            "namespace": owner.metadata.namespace,
            "ownerReferences": [owner_reference(owner, resource)],
        },
        "spec": template.get("spec") or {},
    }


def _status_of(obj: Any) -> JSON:
    """The status as it is on the wire, with the zeros and times that the controllers compare."""
    status = obj.status
    pairs = zip(status.__struct_encode_fields__, status.__struct_fields__, strict=True)
    return {wire: codec.to_dict(getattr(status, field)) for wire, field in pairs}


def _deployment_status(
    deployment: WholeDeployment, new: WholeReplicaSet | None, sets: list[WholeReplicaSet], now: datetime
) -> JSON:
    wanted = deployment.spec.replicas
    total = sum(s.status.replicas for s in sets)
    ready = sum(s.status.ready_replicas for s in sets)
    updated = new.status.replicas if new else 0
    complete = bool(new) and updated == wanted == ready and total == wanted
    available = Condition(type="Available", status="False", reason="MinimumReplicasUnavailable",
                          message="Deployment does not have minimum availability.")  # fmt: skip
    if ready >= wanted:
        available = Condition(type="Available", status="True", reason="MinimumReplicasAvailable",
                              message="Deployment has minimum availability.")  # fmt: skip
    name = new.metadata.name if new else ""
    progressing = Condition(type="Progressing", status="True",
                            reason="NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
                            message=f'ReplicaSet "{name}" has successfully progressed.' if complete
                            else f'ReplicaSet "{name}" is progressing.')  # fmt: skip
    conditions = deployment.status.conditions
    for condition in (available, progressing):
        conditions = with_condition(conditions, condition, now=now)
    return {
        "observedGeneration": deployment.metadata.generation,
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, wanted - ready),
        "conditions": codec.to_dict(conditions),
    }


def _job_template(job: WholeJob) -> JSON:
    template = job.spec.template
    metadata = template.get("metadata") or {}
    labels = {
        **(metadata.get("labels") or {}),
        "batch.kubernetes.io/job-name": job.metadata.name,
        "job-name": job.metadata.name,
    }
    return {**template, "metadata": {**metadata, "labels": labels}}


def _job_outcome(job: WholeJob, succeeded: int, failed: int) -> Condition | None:
    for type_ in ("Complete", "Failed"):
        if (found := find(job.status.conditions, type_)) is not None:
            return found
    if succeeded >= job.spec.completions:
        return Condition(type="Complete", status="True", reason="CompletionsReached",
                         message="Reached expected number of succeeded pods")  # fmt: skip
    if failed > job.spec.backoff_limit:
        return Condition(type="Failed", status="True", reason="BackoffLimitExceeded",
                         message="Job has reached the specified backoff limit")  # fmt: skip
    return None


def _job_status(job: WholeJob, pods: list[WholePod], done: Condition | None, now: datetime) -> JSON:
    count: Callable[[str], int] = lambda phase: sum(pod.status.get("phase") == phase for pod in pods)  # noqa: E731
    conditions = with_condition(job.status.conditions, done, now=now) if done else job.status.conditions
    started = job.status.start_time or now
    status: JSON = {
        "active": sum(is_active(pod) for pod in pods),
        "ready": sum(is_active(pod) and is_ready(pod) for pod in pods),
        "succeeded": count("Succeeded"),
        "failed": count("Failed"),
        "startTime": codec.to_dict(started),
        "completionTime": job.status.completion_time,
        "conditions": codec.to_dict(conditions),
    }
    if done and done.type == "Complete":
        status["completionTime"] = codec.to_dict(job.status.completion_time or now)
    return status
