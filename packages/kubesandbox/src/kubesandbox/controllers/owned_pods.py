"""Helpers that the workload controllers share: ownership of pods, their states, new pods, and Events."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from kubekit.rules.owners import is_controlled_by
from kubesandbox.controllers.controller_loop import Attempt, Report

JSON = dict[str, Any]
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
REPLICA_SETS = Resource(group="apps", version="v1", kind="ReplicaSet", plural="replicasets", namespaced=True)
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
EVENTS = Resource(group="", version="v1", kind="Event", plural="events", namespaced=True)
# Time after which a created pod that no watch has shown is created again, in seconds.
_PATIENCE_S = 30.0


def controlled_by(owner: Object, cache: Cache[Any]) -> list[Any]:
    """Returns the objects that `owner` controls, sorted by name."""
    controlled = [
        obj
        for obj in cache.all()
        if obj.metadata.namespace == owner.metadata.namespace
        and is_controlled_by(obj.metadata.owner_references, owner.metadata.uid)
    ]
    return sorted(controlled, key=lambda obj: obj.metadata.name)


def owner_reference(owner: Object, resource: Resource) -> JSON:
    """Returns the reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        # Foreground deletion of the owner waits for this object.
        "blockOwnerDeletion": True,
    }


def is_ready(pod: WholePod) -> bool:
    """Returns whether the pod's condition Ready is True."""
    return _ready_condition(pod) is not None


def ready_since(pod: WholePod) -> datetime | None:
    """Returns the time since when the pod is ready; None if it is not, or if the time is not known."""
    transition_time = (_ready_condition(pod) or {}).get("lastTransitionTime")
    return datetime.fromisoformat(transition_time) if transition_time else None


def _ready_condition(pod: WholePod) -> JSON | None:
    conditions = pod.status.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == "Ready" and c.get("status") == "True"), None)


def is_over(pod: WholePod) -> bool:
    """Returns whether the pod has succeeded or failed."""
    return pod.status.get("phase") in {"Succeeded", "Failed"}


def is_active(pod: WholePod) -> bool:
    """Returns whether the pod runs or will run."""
    return pod.metadata.deletion_timestamp is None and not is_over(pod)


def status_of(obj: Any) -> JSON:
    """Returns the status in its JSON form, with the zeros and times that the controllers compare."""
    status = obj.status
    pairs = zip(status.__struct_encode_fields__, status.__struct_fields__, strict=True)
    return {wire: codec.to_dict(getattr(status, field)) for wire, field in pairs}


def pod_of(owner: Object, resource: Resource, template: JSON) -> JSON:
    """Returns a pod of this template that `owner` controls."""
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


def delete_pod(pod: WholePod) -> Call[Any]:
    """Returns the call that deletes this pod, identified by its uid."""
    return calls.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)


def event_about(
    about: Object,
    resource: Resource,
    *,
    reason: str,
    message: str,
    source: JSON,
    now: datetime,
    type_: str = "Warning",
    field_path: str = "",
) -> Report:
    """Returns the creation of an Event about an object, or about the part of it at `field_path`."""
    metadata, time = about.metadata, f"{now:%Y-%m-%dT%H:%M:%SZ}"
    involved = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata.name}.", "namespace": metadata.namespace},
        "involvedObject": involved | ({"fieldPath": field_path} if field_path else {}),
        "type": type_,
        "reason": reason,
        "message": message,
        "source": source,
        "reportingComponent": source["component"],
        "reportingInstance": source.get("host", ""),
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    return Report(calls.create(EVENTS, event))


# Reasons of Events that are no warnings.
_NORMAL = frozenset({"SuccessfulCreate", "SuccessfulDelete", "ScalingReplicaSet", "Completed", "Suspended", "Resumed"})


def reporter(about: Object, resource: Resource, component: str, now: datetime) -> Callable[[str, str], Report]:
    """Returns the function that makes a controller's Events about an object, of a reason and a message."""

    def report(reason: str, message: str) -> Report:
        type_, source = "Normal" if reason in _NORMAL else "Warning", {"component": component}
        return event_about(about, resource, reason=reason, message=message, source=source, now=now, type_=type_)

    return report


class Expectations:
    """The created pods that are not in the cache yet, so that a slow watch does not lead to duplicates."""

    def __init__(self, pods: Cache[WholePod], clock: Clock) -> None:
        self._pods, self._clock = pods, clock
        self._names: dict[NamespacedName, dict[NamespacedName, float]] = {}

    def create_all(
        self, owner: NamespacedName, pod: JSON, count: int, report: Callable[[str, str], Report]
    ) -> Generator[Attempt | Report, None, KubeError | None]:
        """Yields the creation of `count` such pods; stops at the first refusal and returns it.

        `report` returns the Event with a reason and a message.

        Returns None if none is refused, and if the namespace is being deleted: the owner goes with it.
        """
        for _ in range(count):
            call = calls.create(PODS, pod)
            names: list[str] = []

            def decode_created(body: bytes, call: Call[Any] = call, names: list[str] = names) -> Any:
                """Records the name of the created pod."""
                created = call.decode(body)
                key = NamespacedName(created["metadata"]["namespace"], created["metadata"]["name"])
                self._names.setdefault(owner, {})[key] = self._clock.monotonic()
                names.append(key.name)
                return created

            attempt = Attempt(Call(call.request, decode_created))
            yield attempt
            if attempt.refused is not None:
                details = attempt.refused.status.details if isinstance(attempt.refused, ApiError) else None
                ends = any(cause.reason == "NamespaceTerminating" for cause in details.causes) if details else False
                return None if ends else attempt.refused
            yield from (report("SuccessfulCreate", f"Created pod: {name}") for name in names)
        return None

    def pending(self, owner: NamespacedName) -> int:
        """Returns the number of created pods that are not in the cache yet."""
        oldest = self._clock.monotonic() - _PATIENCE_S
        waiting = self._names.get(owner, {})
        for name, since in tuple(waiting.items()):
            if self._pods.get(name) is not None or since < oldest:
                del waiting[name]
        return len(waiting)

    def forget(self, owner: NamespacedName) -> None:
        """Forgets an owner that is gone."""
        self._names.pop(owner, None)
