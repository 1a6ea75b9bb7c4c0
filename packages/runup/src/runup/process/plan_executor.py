"""Carries out a `Plan`: its writes, in the plan's order.

A write that the API server rejects ends the pass: the later actions were decided on the assumption that it succeeds,
and the next pass decides again. Raises KubeError.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, TypeVar

import structlog

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Conflict, KubeError, NotFound, Transient
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.lang.text import cut, printable
from runup.process.plan import Action, Apply, Delete, Event, PatchStatus, Plan

K = TypeVar("K", bound=Object)
log = structlog.get_logger("clusterversion")
FIELD_MANAGER = "cluster-version-operator"
# HTTP statuses of a rejected status: bad request, request entity too large, invalid.
_REFUSALS = (400, 413, 422)
EVENTS = Resource(group="", version="v1", kind="Event", plural="events", namespaced=True)


class StatusRefused(KubeError):
    """The error that the API server rejects this status: sending it again unchanged would not help."""

    def __init__(self, action: PatchStatus, error: ApiError) -> None:
        super().__init__(error.message, reason=error.reason)
        self.action = action
        details = error.status.details
        self.causes = tuple(cause.field for cause in details.causes) if details else ()


class NotApplied(KubeError):
    """The error that an object was rejected. `lasting`: a retry of the same object would be rejected, too."""

    def __init__(self, action: Apply, error: ApiError) -> None:
        super().__init__(error.message, reason=error.reason)
        metadata = action.object["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))
        self.what = f"{action.resource.kind} {name}: {error.message}"
        self.lasting = not isinstance(error, Transient)


class Executor:
    """An executor of plans with `client`. Events about cluster-scoped objects are stored in namespace `default`."""

    def __init__(self, client: Client, clock: Clock, *, component: str = FIELD_MANAGER) -> None:
        self._client = client
        self._clock = clock
        # The field manager of applied fields, and the source of events.
        self._component = component

    async def execute(self, plan: Plan[object]) -> None:
        """Carries out the actions of `plan` in order. Raises KubeError at the first that fails (events excepted)."""
        for action in plan.actions:
            await self._carry_out(action)

    async def newest(self, kind: type[K], name: str) -> K:
        """Returns a cluster-scoped object as it is stored now. Raises KubeError or DecodeError."""
        return await self._client.send(calls.get(kind, name))

    async def _carry_out(self, action: Action) -> None:
        """Carries out one action of a plan."""
        if isinstance(action, Apply):
            await self._apply(action)
        elif isinstance(action, PatchStatus):
            await self._patch_status(action)
        elif isinstance(action, Delete):
            await self._delete_object(action)
        else:
            await self._create_event(action)

    async def _apply(self, action: Apply) -> None:
        """Applies an object by server-side apply. Raises NotApplied, unless the action is optional."""
        call = calls.apply(action.resource, action.object, field_manager=self._component, force=action.force)
        try:
            await self._client.send(call)
        except Conflict:
            raise
        except ApiError as error:
            if action.where_namespace and isinstance(error, NotFound):
                return
            if not action.optional:
                raise NotApplied(action, error) from error
            name = action.object["metadata"]["name"]
            log.warning("an object was refused", kind=action.resource.kind, name=name, error=error.message)

    async def _patch_status(self, action: PatchStatus) -> None:
        """Patches a status. Raises StatusRefused if the API server rejects its content."""
        key = action.key
        call = calls.json_patch(
            action.resource,
            key.name,
            status_operations(action),
            key.namespace,
            subresource="status",
            field_manager=self._component,
        )
        try:
            await self._client.send(call)
        except ApiError as error:
            # etcd's own size limit is reported as a server error, not as one of these statuses.
            if error.code in _REFUSALS or "request is too large" in error.message:
                raise StatusRefused(action, error) from error
            raise

    async def _delete_object(self, action: Delete) -> None:
        """Deletes the object of that UID; it is no error if it is gone already."""
        key = action.key
        try:
            await self._client.send(
                calls.delete(action.resource, key.name, key.namespace, uid=action.uid, propagation=action.propagation)
            )
        except NotFound:
            return

    async def _create_event(self, event: Event) -> None:
        """Creates an event. One that cannot be stored is dropped: it only repeats what a condition says."""
        obj = event_object(event, self._clock.now(), self._component)
        try:
            await self._client.send(calls.create(EVENTS, obj, field_manager=self._component))
        except ApiError:
            return


def status_operations(action: PatchStatus) -> list[dict[str, Any]]:
    """Returns the JSON patch, which sets a field before removing it: removing an absent field would be an error."""
    set_ = [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in action.fields.items()]
    # A JSON patch cannot add a field below a status that does not exist.
    if action.fresh:
        set_ = [{"op": "add", "path": "/status", "value": action.fields}]
    for name in action.gone:
        path = f"/status/{name}"
        set_ += [{"op": "add", "path": path, "value": None}, {"op": "remove", "path": path}]
    # The server answers 409 if the object has another resourceVersion by now.
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": action.resource_version}, *set_]


def event_object(event: Event, now: datetime, component: str) -> dict[str, Any]:
    """Returns the Event to create; its name is a digest of its text and time, so that a retry does not duplicate it."""
    event_time = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    namespace = event.key.namespace or "default"
    text = "\n".join((str(event.key), event.reason, event.message, event_time))
    name = f"{event.key.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    involved = {"apiVersion": event.resource.api_version, "kind": event.resource.kind, "name": event.key.name}
    involved |= {"uid": event.uid} if event.uid else {}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved | ({"namespace": event.key.namespace} if event.key.namespace else {}),
        "type": event.type,
        "reason": event.reason,
        "message": cut(printable(event.message), 1024),
        "source": {"component": component},
        "firstTimestamp": event_time,
        "lastTimestamp": event_time,
        "count": 1,
    }
