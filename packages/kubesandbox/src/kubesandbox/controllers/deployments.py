"""The Deployment controller: one ReplicaSet a template, the newest at the desired size. Caches in, calls out.

The rules are those of Kubernetes' deployment controller (pkg/controller/deployment `rolling.go`, `progress.go`,
`sync.go`). Not implemented is proportional scaling: a size that changes during a roll-out applies to the new set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import ConditionStatus, NamespacedName
from kubekit.api.whole_v1 import DeploymentCondition, WholeDeployment, WholeDeploymentSpec, WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.rules.eviction_rules import scale_share
from kubesandbox.controllers.controller_loop import Attempt, Report, Requeue, Step
from kubesandbox.controllers.owned_pods import (
    DEPLOYMENTS,
    JSON,
    REPLICA_SETS,
    controlled_by,
    is_over,
    owner_reference,
    reporter,
)
from kubesandbox.controllers.owned_pods import status_of as status_json

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
# Annotations of a Deployment that its sets do not get (pkg/controller/deployment/util `annotationsToSkip`).
_OWN_ANNOTATIONS = frozenset({REVISION, "kubectl.kubernetes.io/last-applied-configuration"})
# The value for no deadline (apps/v1 defaults give it to a Deployment of extensions/v1beta1 without one).
NO_DEADLINE_S = 2**31 - 1
_COMPLETE, _TIMED_OUT, _PAUSED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"
_NOT_CREATED = "ReplicaSetCreateError"


class Deployments:
    """The controller that rolls out Deployments."""

    name = "deployment"

    def __init__(
        self,
        deployments: Cache[WholeDeployment],
        replica_sets: Cache[WholeReplicaSet],
        pods: Cache[WholePod],
        clock: Clock,
    ) -> None:
        self._deployments, self._replica_sets, self._pods, self._clock = deployments, replica_sets, pods, clock

    def calls(self, key: NamespacedName) -> Iterator[Step]:
        """Yields the calls for the Deployment of `key`."""
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return
        sets: list[WholeReplicaSet] = controlled_by(deployment, self._replica_sets)
        digest = template_hash(deployment.spec.template)
        new = next((replica_set for replica_set in sets if replica_set.metadata.labels.get(HASH_LABEL) == digest), None)
        old = sorted(
            (replica_set for replica_set in sets if replica_set is not new),
            key=lambda one: (str(one.metadata.creation_timestamp or ""), one.metadata.name),
        )
        refused = None
        if not deployment.spec.paused:
            refused = yield from self._roll_out(deployment, new, old, digest)
        else:
            # The one active set of a paused Deployment follows a changed size; nothing is rolled out.
            active = [replica_set for replica_set in sets if replica_set.spec.replicas] or sets[-1:]
            if len(active) == 1 and active[0].spec.replicas != deployment.spec.replicas:
                yield from self._scale(deployment, active[0], deployment.spec.replicas)
        now, refusal = self._clock.now(), ""
        if refused is not None:
            refusal = f'Failed to create new replica set "{deployment.metadata.name}-{digest}": {refused.message}'
        status = deployment_status(deployment, new, sets, now, refused=refusal)
        if status != status_json(deployment):
            yield calls.merge_patch(DEPLOYMENTS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        remaining_s = deadline_left_s(deployment, now)
        if remaining_s is not None:
            # One second more, since times in the status have whole seconds.
            yield Requeue(max(0.0, remaining_s) + 1)

    def _roll_out(
        self, deployment: WholeDeployment, new: WholeReplicaSet | None, old: list[WholeReplicaSet], digest: str
    ) -> Generator[Step, None, KubeError | None]:
        """Yields the calls of the next step; returns the error if the new set could not be created, else None."""
        spec = deployment.spec
        if spec.strategy.type == "Recreate":
            for replica_set in old:
                if replica_set.spec.replicas:
                    yield from self._scale(deployment, replica_set, 0)
            # Recreate starts no new pod before all old ones have ended.
            if any(not is_over(pod) for replica_set in old for pod in controlled_by(replica_set, self._pods)):
                return None
        revision = max((_revision_of(replica_set) for replica_set in old), default=0) + 1
        size = new_size(spec, new.spec.replicas if new else 0, sum(replica_set.spec.replicas for replica_set in old))
        if new is None:
            created = _replica_set(deployment, digest, size, revision)
            attempt = Attempt(calls.create(REPLICA_SETS, created))
            yield attempt
            if attempt.refused is None and size:
                yield self._scaled("up", deployment, created["metadata"]["name"], (0, size))
            return attempt.refused
        # The newest set has the highest revision, also after a rollback; the Deployment has a copy of it.
        revision = max(revision, _revision_of(new))
        annotations = {"metadata": {"annotations": {REVISION: str(revision)}}}
        if _revision_of(new) != revision:
            yield calls.merge_patch(REPLICA_SETS, new.metadata.name, annotations, new.metadata.namespace)
        metadata = deployment.metadata
        if metadata.annotations.get(REVISION) != str(revision):
            # By the status, as in Kubernetes: written otherwise, an annotation counts a generation of a Deployment.
            yield calls.merge_patch(DEPLOYMENTS, metadata.name, annotations, metadata.namespace, subresource="status")
        if new.spec.replicas != size:
            yield from self._scale(deployment, new, size)
            return None
        sizes = old_sizes(spec, new, old)
        for one in old:
            if one.metadata.name in sizes:
                yield from self._scale(deployment, one, sizes[one.metadata.name])
        if is_complete(deployment, Counts.of(new, [new, *old])):
            # Old sets beyond the revision history limit are deleted, the oldest first.
            empty = sorted((s for s in old if not s.spec.replicas and not s.status.replicas), key=_revision_of)
            for surplus in empty[: max(0, len(empty) - spec.revision_history_limit)]:
                yield calls.delete(
                    REPLICA_SETS, surplus.metadata.name, surplus.metadata.namespace, uid=surplus.metadata.uid
                )
        return None

    def _scale(self, deployment: WholeDeployment, replica_set: WholeReplicaSet, size: int) -> Iterator[Step]:
        """Yields the change of a set's size, and its Event."""
        metadata, before = replica_set.metadata, replica_set.spec.replicas
        yield calls.merge_patch(REPLICA_SETS, metadata.name, {"spec": {"replicas": size}}, metadata.namespace)
        yield self._scaled("up" if size > before else "down", deployment, metadata.name, (before, size))

    def _scaled(self, direction: str, deployment: WholeDeployment, name: str, sizes: tuple[int, int]) -> Report:
        """Returns the Event of a set's change of size."""
        report = reporter(deployment, DEPLOYMENTS, "deployment-controller", self._clock.now())
        return report("ScalingReplicaSet", f"Scaled {direction} replica set {name} from {sizes[0]} to {sizes[1]}")


def deployment_of(pod: WholePod, replica_sets: Cache[WholeReplicaSet]) -> NamespacedName | None:
    """Returns the Deployment that a pod belongs to, or None."""
    namespace = pod.metadata.namespace
    for reference in pod.metadata.owner_references:
        if reference.kind == "ReplicaSet":
            replica_set = replica_sets.get(NamespacedName(namespace, reference.name))
            for above in replica_set.metadata.owner_references if replica_set is not None else ():
                if above.kind == "Deployment":
                    return NamespacedName(namespace, above.name)
    return None


def template_hash(template: JSON) -> str:
    """Returns a short hash of a template, in letters that form no words."""
    digest = hashlib.sha256(codec.encode(template)).digest()
    return "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in digest[:10])


def _revision_of(replica_set: WholeReplicaSet) -> int:
    revision_text = replica_set.metadata.annotations.get(REVISION, "")
    return int(revision_text) if revision_text.isdigit() else 0


def _replica_set(deployment: WholeDeployment, digest: str, replicas: int, revision: int) -> JSON:
    """Returns the ReplicaSet of a Deployment's present template, with `digest` as its pod-template-hash."""
    metadata = deployment.spec.template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: digest}
    selector = codec.to_dict(deployment.spec.selector)
    selector["matchLabels"] = {**selector.get("matchLabels", {}), HASH_LABEL: digest}
    copied = {key: value for key, value in deployment.metadata.annotations.items() if key not in _OWN_ANNOTATIONS}
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{deployment.metadata.name}-{digest}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": {**copied, REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": selector,
            "template": {**deployment.spec.template, "metadata": {**metadata, "labels": labels}},
        },
    }


# -- the steps of a roll-out -------------------------------------------------------------------------------------------


def allowed_surge(spec: WholeDeploymentSpec) -> int:
    """Returns how many pods above the desired number are allowed; a percentage is rounded up."""
    return scale_share(spec.strategy.rolling_update.max_surge, spec.replicas)


def allowed_unavailable(spec: WholeDeploymentSpec) -> int:
    """Returns how many desired pods may be missing; a percentage is rounded down, to at least 1 without surge."""
    if spec.strategy.type == "Recreate" or not spec.replicas:
        return 0
    most = spec.strategy.rolling_update.max_unavailable
    if isinstance(most, str):
        most = int(most.rstrip("%")) * spec.replicas // 100
    return min(max(most, 0 if allowed_surge(spec) else 1), spec.replicas)


def new_size(spec: WholeDeploymentSpec, new: int, old: int) -> int:
    """Returns the next size of the new set; `new` and `old` are the present sizes of the new set and of all others."""
    if spec.strategy.type == "Recreate" or new > spec.replicas:
        return spec.replicas
    room = spec.replicas + allowed_surge(spec) - new - old
    return new + max(0, min(room, spec.replicas - new))


def old_sizes(spec: WholeDeploymentSpec, new: WholeReplicaSet, old: Sequence[WholeReplicaSet]) -> dict[str, int]:
    """Returns the changed sizes of old sets by name: first unavailable pods are removed, then spare available ones."""
    least = spec.replicas - allowed_unavailable(spec)
    missing = new.spec.replicas - new.status.available_replicas
    room = new.spec.replicas + sum(replica_set.spec.replicas for replica_set in old) - least - missing
    if room <= 0:
        return {}
    present = {replica_set.metadata.name: replica_set.spec.replicas for replica_set in old}
    sizes = dict(present)
    for replica_set in old:
        # Unavailable pods can be removed without reducing availability.
        idle = min(room, max(0, replica_set.spec.replicas - replica_set.status.available_replicas))
        sizes[replica_set.metadata.name] -= idle
        room -= idle
    spare = sum(replica_set.status.available_replicas for replica_set in (new, *old)) - least
    for name in sizes:
        removable = min(sizes[name], max(0, spare))
        sizes[name] -= removable
        spare -= removable
    return {name: size for name, size in sizes.items() if size != present[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of a Deployment's pods; `asked` is the sum of its sets' desired sizes."""

    replicas: int
    updated: int
    ready: int
    available: int
    asked: int

    @classmethod
    def of(cls, new: WholeReplicaSet | None, sets: Iterable[WholeReplicaSet]) -> Counts:
        """Returns the sums over the sets' own status."""
        replica_sets = list(sets)
        return cls(
            replicas=sum(replica_set.status.replicas for replica_set in replica_sets),
            updated=new.status.replicas if new else 0,
            ready=sum(replica_set.status.ready_replicas for replica_set in replica_sets),
            available=sum(replica_set.status.available_replicas for replica_set in replica_sets),
            asked=sum(replica_set.spec.replicas for replica_set in replica_sets),
        )


def is_complete(deployment: WholeDeployment, counts: Counts) -> bool:
    """Returns whether all desired pods are updated and available, and no old pod is left."""
    return counts.updated == counts.replicas == counts.available == deployment.spec.replicas


# -- the status of a Deployment ----------------------------------------------------------------------------------------


def deployment_status(
    deployment: WholeDeployment,
    new: WholeReplicaSet | None,
    sets: Sequence[WholeReplicaSet],
    now: datetime,
    *,
    refused: str = "",
) -> JSON:
    """Returns the whole status in its JSON form; `refused` is the error if the new set could not be created."""
    counts = Counts.of(new, sets)
    if counts.available >= deployment.spec.replicas - allowed_unavailable(deployment.spec):
        available = DeploymentCondition(type="Available", status="True", reason="MinimumReplicasAvailable",
                                        message="Deployment has minimum availability.")  # fmt: skip
    else:
        available = DeploymentCondition(type="Available", status="False", reason="MinimumReplicasUnavailable",
                                        message="Deployment does not have minimum availability.")  # fmt: skip
    progress: DeploymentCondition | None = None
    if not refused:
        progress = _progressing_condition(deployment, new, counts, now)
    elif deployment.spec.progress_deadline_seconds < NO_DEADLINE_S:
        progress = DeploymentCondition(type="Progressing", status="False", reason=_NOT_CREATED, message=refused)
    conditions = deployment.status.conditions
    for condition in (available, progress):
        if condition is not None:
            conditions = _with_condition(conditions, condition, now)
    if not deployment.spec.paused:
        # The sets' failure is kept if its status and reason are the same.
        before, failure = _find_condition(conditions, "ReplicaFailure"), replica_failure(new, sets)
        if not (before and failure and (before.status, before.reason) == (failure.status, failure.reason)):
            others = tuple(condition for condition in conditions if condition is not before)
            conditions = (*others, failure) if failure is not None else others
    return {
        "observedGeneration": deployment.metadata.generation,
        "replicas": counts.replicas,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "unavailableReplicas": max(0, counts.asked - counts.available),
        "conditions": codec.to_dict(conditions),
    }


def replica_failure(new: WholeReplicaSet | None, sets: Iterable[WholeReplicaSet]) -> DeploymentCondition | None:
    """Returns the condition of a set that cannot create its pods, or None; the new set comes first."""
    for replica_set in [*([new] if new else []), *sets]:
        failure = find(replica_set.status.conditions, "ReplicaFailure")
        if failure is not None:
            return DeploymentCondition(
                type=failure.type,
                status=failure.status,
                reason=failure.reason,
                message=failure.message,
                last_update_time=failure.last_transition_time,
                last_transition_time=failure.last_transition_time,
            )
    return None


def deadline_left_s(deployment: WholeDeployment, now: datetime) -> float | None:
    """Returns the seconds until the progress deadline; None if the roll-out is complete, failed or without one."""
    progressing = _find_condition(deployment.status.conditions, "Progressing")
    deadline = deployment.spec.progress_deadline_seconds
    if progressing is None or progressing.status != "True" or progressing.reason == _COMPLETE:
        return None
    if deadline >= NO_DEADLINE_S:
        return None
    return deadline - (now - (progressing.last_update_time or now)).total_seconds()


def _progressing_condition(
    deployment: WholeDeployment, new: WholeReplicaSet | None, counts: Counts, now: datetime
) -> DeploymentCondition | None:
    """Returns the new Progressing condition, or None if it does not change."""
    progressing = _find_condition(deployment.status.conditions, "Progressing")
    if deployment.spec.paused or (progressing is not None and progressing.reason == _PAUSED):
        # The deadline of a paused Deployment is not running.
        reason, action = (_PAUSED, "paused") if deployment.spec.paused else ("DeploymentResumed", "resumed")
        if progressing is not None and progressing.reason in {_TIMED_OUT, reason}:
            return None
        message = f"Deployment is {action}"
        return DeploymentCondition(type="Progressing", status="Unknown", reason=reason, message=message)
    if progressing is not None and progressing.reason == _COMPLETE and counts.replicas == counts.updated:
        return None
    name = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    before = deployment.status
    if is_complete(deployment, counts):
        reason, message = _COMPLETE, f"{name} has successfully progressed."
    elif progressing is None or progressing.reason in {_COMPLETE, _NOT_CREATED}:
        # The roll-out has begun, unless there is no new set yet.
        if new is None:
            return None
        reason, message = "NewReplicaSetCreated", f'Created new replica set "{new.metadata.name}"'
    elif (
        counts.updated > before.updated_replicas
        or counts.replicas - counts.updated < before.replicas - before.updated_replicas
        or counts.ready > before.ready_replicas
        or counts.available > before.available_replicas
    ):
        # Progress since the last status restarts the deadline.
        reason, message = "ReplicaSetUpdated", f"{name} is progressing."
    else:
        remaining_s = deadline_left_s(deployment, now)
        if remaining_s is None or remaining_s >= 0:
            return None
        reason, message = _TIMED_OUT, f"{name} has timed out progressing."
    status: ConditionStatus = "False" if reason == _TIMED_OUT else "True"
    return DeploymentCondition(type="Progressing", status=status, reason=reason, message=message, last_update_time=now)


def _find_condition(conditions: Iterable[DeploymentCondition], type_: str) -> DeploymentCondition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def _with_condition(
    conditions: tuple[DeploymentCondition, ...], new: DeploymentCondition, now: datetime
) -> tuple[DeploymentCondition, ...]:
    """Returns the conditions with `new` in place of the one of its type, with updated times."""
    old = _find_condition(conditions, new.type)
    if old is None:
        return (*conditions, replace(new, last_update_time=now, last_transition_time=now))
    same = (old.status, old.reason, old.message) == (new.status, new.reason, new.message)
    stamped = replace(
        new,
        last_update_time=new.last_update_time or (old.last_update_time if same else now),
        last_transition_time=old.last_transition_time if old.status == new.status else now,
    )
    return tuple(stamped if condition is old else condition for condition in conditions)
