"""The Deployment controller: one ReplicaSet a template, the newest at the desired size. Caches in, calls out.

`rollout` decides the next step of a roll-out. This module decides names, labels, owners, revisions and the clean-up of
old ReplicaSets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.whole_v1 import DeploymentCondition, WholeDeployment, WholeDeploymentSpec, WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.controllers.controller_loop import Attempt, Requeue
from kubesandbox.controllers.owned_pods import (
    DEPLOYMENTS,
    JSON,
    REPLICA_SETS,
    controlled_by,
    is_over,
    owner_reference,
    status_of,
)

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
# Annotations of a Deployment that its sets do not get (pkg/controller/deployment/util `annotationsToSkip`).
_OWN_ANNOTATIONS = frozenset({REVISION, "kubectl.kubernetes.io/last-applied-configuration"})


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

    def calls(self, key: NamespacedName) -> Iterator[Call[Any] | Requeue | Attempt]:
        """Yields the calls for the Deployment of `key`."""
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return
        sets: list[WholeReplicaSet] = controlled_by(deployment, self._replica_sets)
        digest = template_hash(deployment.spec.template)
        new = next((replica_set for replica_set in sets if replica_set.metadata.labels.get(HASH_LABEL) == digest), None)
        old = sorted((replica_set for replica_set in sets if replica_set is not new), key=_age_key)
        refused = None
        if deployment.spec.paused:
            yield from self._scale_paused(deployment, sets)
        else:
            refused = yield from self._roll_out(deployment, new, old, digest)
        now = self._clock.now()
        status = deployment_status(deployment, new, sets, now, refused=_refusal_text(deployment, digest, refused))
        if status != status_of(deployment):
            yield calls.merge_patch(DEPLOYMENTS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        remaining_s = deadline_left_s(deployment, now)
        if remaining_s is not None:
            # One second more, since times in the status have whole seconds.
            yield Requeue(max(0.0, remaining_s) + 1)

    def _scale_paused(self, deployment: WholeDeployment, sets: list[WholeReplicaSet]) -> Iterator[Call[Any]]:
        """Scales a paused Deployment's one active set to a changed size; nothing is rolled out."""
        active = [replica_set for replica_set in sets if replica_set.spec.replicas] or sets[-1:]
        if len(active) == 1 and active[0].spec.replicas != deployment.spec.replicas:
            yield _scale_call(active[0], deployment.spec.replicas)

    def _roll_out(
        self, deployment: WholeDeployment, new: WholeReplicaSet | None, old: list[WholeReplicaSet], digest: str
    ) -> Generator[Call[Any] | Attempt, None, KubeError | None]:
        """Yields the calls of the next step; returns the error if the new set could not be created, else None."""
        spec = deployment.spec
        if spec.strategy.type == "Recreate":
            yield from (_scale_call(replica_set, 0) for replica_set in old if replica_set.spec.replicas)
            # Recreate starts no new pod before all old ones have ended.
            if any(not is_over(pod) for replica_set in old for pod in controlled_by(replica_set, self._pods)):
                return None
        revision = max((_revision_of(replica_set) for replica_set in old), default=0) + 1
        size = new_size(spec, new.spec.replicas if new else 0, sum(replica_set.spec.replicas for replica_set in old))
        if new is None:
            attempt = Attempt(calls.create(REPLICA_SETS, _replica_set(deployment, digest, size, revision)))
            yield attempt
            return attempt.refused
        yield from _set_revision(deployment, new, max(revision, _revision_of(new)))
        if new.spec.replicas != size:
            yield _scale_call(new, size)
            return None
        shrinking = old_sizes(spec, new, old)
        yield from (
            _scale_call(replica_set, shrinking[replica_set.metadata.name])
            for replica_set in old
            if replica_set.metadata.name in shrinking
        )
        if is_complete(deployment, Counts.of(new, [new, *old])):
            yield from _delete_surplus_sets(deployment, old)
        return None


def _refusal_text(deployment: WholeDeployment, digest: str, refused: KubeError | None) -> str:
    name = f"{deployment.metadata.name}-{digest}"
    return f'Failed to create new replica set "{name}": {refused.message}' if refused else ""


def deployment_of(pod: WholePod, replica_sets: Cache[WholeReplicaSet]) -> NamespacedName | None:
    """Returns the Deployment that a pod belongs to, or None."""
    namespace = pod.metadata.namespace
    for reference in pod.metadata.owner_references:
        replica_set = (
            replica_sets.get(NamespacedName(namespace, reference.name)) if reference.kind == "ReplicaSet" else None
        )
        for above in replica_set.metadata.owner_references if replica_set is not None else ():
            if above.kind == "Deployment":
                return NamespacedName(namespace, above.name)
    return None


def template_hash(template: JSON) -> str:
    """Returns a short hash of a template, in letters that form no words."""
    digest = hashlib.sha256(codec.encode(template)).digest()
    return "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in digest[:10])


def _age_key(replica_set: WholeReplicaSet) -> tuple[str, str]:
    created = replica_set.metadata.creation_timestamp
    return (created.isoformat() if created else "", replica_set.metadata.name)


def _revision_of(replica_set: WholeReplicaSet) -> int:
    revision_text = replica_set.metadata.annotations.get(REVISION, "")
    return int(revision_text) if revision_text.isdigit() else 0


def _set_revision(deployment: WholeDeployment, new: WholeReplicaSet, revision: int) -> Iterator[Call[Any]]:
    """Gives the newest set the highest revision, also after a rollback, and copies it to the Deployment."""
    annotations = {"metadata": {"annotations": {REVISION: str(revision)}}}
    if _revision_of(new) != revision:
        yield calls.merge_patch(REPLICA_SETS, new.metadata.name, annotations, new.metadata.namespace)
    metadata = deployment.metadata
    if metadata.annotations.get(REVISION) != str(revision):
        # By the status, as in Kubernetes: written otherwise, an annotation counts a generation of a Deployment.
        yield calls.merge_patch(DEPLOYMENTS, metadata.name, annotations, metadata.namespace, subresource="status")


def _delete_surplus_sets(deployment: WholeDeployment, old: list[WholeReplicaSet]) -> Iterator[Call[Any]]:
    """Deletes old sets beyond the revision history limit, the oldest first."""
    deletable = sorted(
        (replica_set for replica_set in old if not replica_set.spec.replicas and not replica_set.status.replicas),
        key=_revision_of,
    )
    for surplus in deletable[: max(0, len(deletable) - deployment.spec.revision_history_limit)]:
        yield calls.delete(REPLICA_SETS, surplus.metadata.name, surplus.metadata.namespace, uid=surplus.metadata.uid)


def _scale_call(replica_set: WholeReplicaSet, replicas: int) -> Call[Any]:
    metadata = replica_set.metadata
    return calls.merge_patch(REPLICA_SETS, metadata.name, {"spec": {"replicas": replicas}}, metadata.namespace)


def _replica_set(deployment: WholeDeployment, digest: str, replicas: int, revision: int) -> JSON:
    """Returns the ReplicaSet of a Deployment's present template, with `digest` as its pod-template-hash."""
    template = _with_hash_label(deployment.spec.template, digest)
    selector = codec.to_dict(deployment.spec.selector)
    selector["matchLabels"] = {**selector.get("matchLabels", {}), HASH_LABEL: digest}
    copied = {key: value for key, value in deployment.metadata.annotations.items() if key not in _OWN_ANNOTATIONS}
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{deployment.metadata.name}-{digest}",
            "namespace": deployment.metadata.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": {**copied, REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": selector,
            "template": template,
        },
    }


def _with_hash_label(template: JSON, digest: str) -> JSON:
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), HASH_LABEL: digest}}}


# The value for no deadline (apps/v1 defaults give it to a Deployment of extensions/v1beta1 without one).
NO_DEADLINE_S = 2**31 - 1
_COMPLETE, _TIMED_OUT, _PAUSED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"
_NOT_CREATED = "ReplicaSetCreateError"


def allowed_surge(spec: WholeDeploymentSpec) -> int:
    """Returns how many pods above the desired number are allowed; a percentage is rounded up."""
    return _scale_share(spec.strategy.rolling_update.max_surge, spec.replicas, up=True)


def allowed_unavailable(spec: WholeDeploymentSpec) -> int:
    """Returns how many desired pods may be missing; a percentage is rounded down, to at least 1 without surge."""
    if spec.strategy.type == "Recreate" or not spec.replicas:
        return 0
    most = _scale_share(spec.strategy.rolling_update.max_unavailable, spec.replicas, up=False)
    return min(max(most, 0 if allowed_surge(spec) else 1), spec.replicas)


def _scale_share(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.rstrip("%")) * total
    return -(-hundredths // 100) if up else hundredths // 100


def new_size(spec: WholeDeploymentSpec, new: int, old: int) -> int:
    """Returns the next size of the new set; `new` and `old` are the present sizes of the new set and of all others."""
    if spec.strategy.type == "Recreate" or new > spec.replicas:
        return spec.replicas
    room = spec.replicas + allowed_surge(spec) - new - old
    return new + max(0, min(room, spec.replicas - new))


def old_sizes(spec: WholeDeploymentSpec, new: WholeReplicaSet, old: Sequence[WholeReplicaSet]) -> dict[str, int]:
    """Returns the next sizes of old sets by name: unavailable pods are removed first, then the spare available ones."""
    least = spec.replicas - allowed_unavailable(spec)
    missing = new.spec.replicas - new.status.available_replicas
    room = new.spec.replicas + sum(replica_set.spec.replicas for replica_set in old) - least - missing
    if room <= 0:
        return {}
    sizes = {replica_set.metadata.name: replica_set.spec.replicas for replica_set in old}
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
    return {
        replica_set.metadata.name: sizes[replica_set.metadata.name]
        for replica_set in old
        if sizes[replica_set.metadata.name] != replica_set.spec.replicas
    }


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of a Deployment's pods."""

    replicas: int
    updated: int
    ready: int
    available: int
    asked: int

    @classmethod
    def of(cls, new: WholeReplicaSet | None, sets: Iterable[WholeReplicaSet]) -> Counts:
        """Returns the sums over the sets' own status; `asked` is the sum of their desired sizes."""
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
    desired = deployment.spec.replicas
    return counts.updated == counts.replicas == counts.available == desired


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
    conditions = deployment.status.conditions
    progress = _not_created(deployment, refused) if refused else _progressing_condition(deployment, new, counts, now)
    for condition in (_available_condition(deployment, counts), progress):
        if condition is not None:
            conditions = _with_condition(conditions, condition, now)
    if not deployment.spec.paused:
        conditions = _with_failure(conditions, replica_failure(new, sets))
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
            since = failure.last_transition_time
            return DeploymentCondition(
                failure.type,
                failure.status,
                failure.reason,
                failure.message,
                last_update_time=since,
                last_transition_time=since,
            )
    return None


def deadline_left_s(deployment: WholeDeployment, now: datetime) -> float | None:
    """Returns the seconds until the progress deadline; None if the roll-out is complete, failed or without one."""
    progressing, deadline = (
        _find_condition(deployment.status.conditions, "Progressing"),
        deployment.spec.progress_deadline_seconds,
    )
    if (
        progressing is None
        or progressing.status != "True"
        or progressing.reason == _COMPLETE
        or deadline >= NO_DEADLINE_S
    ):
        return None
    since = progressing.last_update_time or now
    return deadline - (now - since).total_seconds()


def _available_condition(deployment: WholeDeployment, counts: Counts) -> DeploymentCondition:
    """Returns the condition Available: whether enough pods are available."""
    if counts.available >= deployment.spec.replicas - allowed_unavailable(deployment.spec):
        return DeploymentCondition(type="Available", status="True", reason="MinimumReplicasAvailable",
                                   message="Deployment has minimum availability.")  # fmt: skip
    return DeploymentCondition(type="Available", status="False", reason="MinimumReplicasUnavailable",
                               message="Deployment does not have minimum availability.")  # fmt: skip


def _progressing_condition(
    deployment: WholeDeployment, new: WholeReplicaSet | None, counts: Counts, now: datetime
) -> DeploymentCondition | None:
    """Returns the new Progressing condition, or None if it does not change."""
    progressing = _find_condition(deployment.status.conditions, "Progressing")
    if deployment.spec.paused or (progressing is not None and progressing.reason == _PAUSED):
        return _paused_condition(deployment, progressing)
    if progressing is not None and progressing.reason == _COMPLETE and counts.replicas == counts.updated:
        return None
    name = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, counts):
        return DeploymentCondition(type="Progressing", status="True", reason=_COMPLETE,
                                   message=f"{name} has successfully progressed.", last_update_time=now)  # fmt: skip
    if progressing is None or progressing.reason in {_COMPLETE, _NOT_CREATED}:
        return _begun_condition(new, now)
    if _has_progressed(deployment, counts):
        return DeploymentCondition(type="Progressing", status="True", reason="ReplicaSetUpdated",
                                   message=f"{name} is progressing.", last_update_time=now)  # fmt: skip
    remaining_s = deadline_left_s(deployment, now)
    if remaining_s is not None and remaining_s < 0:
        return DeploymentCondition(type="Progressing", status="False", reason=_TIMED_OUT,
                                   message=f"{name} has timed out progressing.", last_update_time=now)  # fmt: skip
    return None


def _not_created(deployment: WholeDeployment, refused: str) -> DeploymentCondition | None:
    if deployment.spec.progress_deadline_seconds >= NO_DEADLINE_S:
        return None
    return DeploymentCondition(type="Progressing", status="False", reason=_NOT_CREATED, message=refused)


def _begun_condition(new: WholeReplicaSet | None, now: datetime) -> DeploymentCondition | None:
    """Returns the condition of a roll-out that has begun, or None before there is a new set."""
    if new is None:
        return None
    message = f'Created new replica set "{new.metadata.name}"'
    return DeploymentCondition(type="Progressing", status="True", reason="NewReplicaSetCreated",
                               message=message, last_update_time=now)  # fmt: skip


def _paused_condition(deployment: WholeDeployment, progress: DeploymentCondition | None) -> DeploymentCondition | None:
    """Returns the condition of a paused or resumed Deployment, whose deadline is not running, or None if unchanged."""
    if progress is not None and progress.reason == _TIMED_OUT:
        return None
    reason, action = (_PAUSED, "paused") if deployment.spec.paused else ("DeploymentResumed", "resumed")
    if progress is not None and progress.reason == reason:
        return None
    return DeploymentCondition(type="Progressing", status="Unknown", reason=reason, message=f"Deployment is {action}")


def _has_progressed(deployment: WholeDeployment, counts: Counts) -> bool:
    """Returns whether a roll-out is further than the status says, which starts its deadline anew."""
    before = deployment.status
    return (
        counts.updated > before.updated_replicas
        or counts.replicas - counts.updated < before.replicas - before.updated_replicas
        or counts.ready > before.ready_replicas
        or counts.available > before.available_replicas
    )


def _find_condition(conditions: Iterable[DeploymentCondition], type_: str) -> DeploymentCondition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def _with_failure(
    conditions: tuple[DeploymentCondition, ...], failure: DeploymentCondition | None
) -> tuple[DeploymentCondition, ...]:
    """Returns the conditions with the sets' failure, kept if its status and reason are the same, or without one."""
    current = _find_condition(conditions, "ReplicaFailure")
    if (
        current is not None
        and failure is not None
        and (current.status, current.reason) == (failure.status, failure.reason)
    ):
        return conditions
    other_conditions = tuple(condition for condition in conditions if condition is not current)
    return other_conditions if failure is None else (*other_conditions, failure)


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
