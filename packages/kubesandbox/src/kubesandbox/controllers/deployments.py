"""The Deployment controller: one ReplicaSet a template, the newest at the desired size. Caches in, calls out.

`rollout` decides the next step of a roll-out. This module decides names, labels, owners, revisions and the clean-up of
old ReplicaSets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.whole_v1 import WholeDeployment, WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubesandbox.controllers import rollout
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
        status = rollout.deployment_status(
            deployment, new, sets, now, refused=_refusal_text(deployment, digest, refused)
        )
        if status != status_of(deployment):
            yield calls.merge_patch(DEPLOYMENTS, key.name, {"status": status}, key.namespace, subresource="status")
        if refused is not None:
            raise refused
        remaining_s = rollout.deadline_left_s(deployment, now)
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
        size = rollout.new_size(
            spec, new.spec.replicas if new else 0, sum(replica_set.spec.replicas for replica_set in old)
        )
        if new is None:
            attempt = Attempt(calls.create(REPLICA_SETS, _replica_set(deployment, digest, size, revision)))
            yield attempt
            return attempt.refused
        yield from _set_revision(deployment, new, max(revision, _revision_of(new)))
        if new.spec.replicas != size:
            yield _scale_call(new, size)
            return None
        shrinking = rollout.old_sizes(spec, new, old)
        yield from (
            _scale_call(replica_set, shrinking[replica_set.metadata.name])
            for replica_set in old
            if replica_set.metadata.name in shrinking
        )
        if rollout.is_complete(deployment, rollout.Counts.of(new, [new, *old])):
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
