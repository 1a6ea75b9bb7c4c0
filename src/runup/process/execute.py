"""A `Plan` -> writes, in the plan's order. Nothing else in the operator writes to the cluster.

A write that the API server refuses ends the pass: what comes after it was decided on the assumption that it succeeds,
and the next pass decides anew. Raises KubeError.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import structlog

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.errors import ApiError, Conflict, KubeError, NotFound, Transient
from kubekit.lang.cut import cut
from kubekit.lang.printable import printable
from runup.process.plan import Action, Apply, Delete, Event, PatchStatus, Plan

log = structlog.get_logger("clusterversion")
FIELD_MANAGER = "cluster-version-operator"
# Bad request, request entity too large, invalid.
_REFUSALS = (400, 413, 422)
EVENTS = Resource("", "v1", "Event", "events", namespaced=True)


class StatusRefused(KubeError):
    """The API server does not take this status, now or later: sending it again would change nothing."""

    def __init__(self, action: PatchStatus, error: ApiError) -> None:
        super().__init__(error.message, reason=error.reason)
        self.action = action
        details = error.status.details
        self.causes = tuple(cause.field for cause in details.causes) if details else ()


class NotApplied(KubeError):
    """An object was not taken. `lasting`: the API server refuses it as it is now, whoever asks again."""

    def __init__(self, action: Apply, error: ApiError) -> None:
        super().__init__(error.message, reason=error.reason)
        metadata = action.object["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))
        self.what = f"{action.resource.kind} {name}: {error.message}"
        self.lasting = not isinstance(error, Transient)


class Executor:
    """Carries plans out with `client`. Events about cluster-scoped objects are kept in namespace `default`."""

    def __init__(self, client: Client, clock: Clock, *, component: str = FIELD_MANAGER) -> None:
        self._client = client
        self._clock = clock
        # Who fields and events are told apart by.
        self._component = component

    async def execute(self, plan: Plan) -> None:
        """Every action of `plan`, one after the other; raises KubeError at the first that fails (events excepted)."""
        for action in plan.actions:
            await self._act(action)

    async def _act(self, action: Action) -> None:
        if isinstance(action, Apply):
            await self._apply(action)
        elif isinstance(action, PatchStatus):
            await self._patch_status(action)
        elif isinstance(action, Delete):
            await self._delete(action)
        else:
            await self._tell(action)

    async def _apply(self, action: Apply) -> None:
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
            # etcd's own limit comes as an error of the server.
            if error.code in _REFUSALS or "request is too large" in error.message:
                raise StatusRefused(action, error) from error
            raise

    async def _delete(self, action: Delete) -> None:
        key = action.key
        try:
            await self._client.send(
                calls.delete(action.resource, key.name, key.namespace, uid=action.uid, propagation=action.propagation)
            )
        except NotFound:
            return

    async def _tell(self, event: Event) -> None:
        """An event that cannot be stored is lost: it only repeats what a condition says."""
        obj = event_object(event, self._clock.now(), self._component)
        try:
            await self._client.send(calls.create(EVENTS, obj, field_manager=self._component))
        except ApiError:
            return


def status_operations(action: PatchStatus) -> list[dict[str, Any]]:
    """The JSON patch; a field that somebody removed already must be no error, so it is set before it is removed."""
    set_ = [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in action.fields.items()]
    if action.fresh:
        set_ = [{"op": "add", "path": "/status", "value": action.fields}]
    for name in action.gone:
        path = f"/status/{name}"
        set_ += [{"op": "add", "path": path, "value": None}, {"op": "remove", "path": path}]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": action.resource_version}, *set_]


def event_object(event: Event, now: datetime, component: str) -> dict[str, Any]:
    """The Event to create; its name is made of what it says and when, so that a retry does not say it twice."""
    when = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    namespace = event.key.namespace or "default"
    text = "\n".join((str(event.key), event.reason, event.message, when))
    name = f"{event.key.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    involved = {"apiVersion": event.resource.api_version, "kind": event.resource.kind, "name": event.key.name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved | ({"namespace": event.key.namespace} if event.key.namespace else {}),
        "type": event.type,
        "reason": event.reason,
        "message": cut(printable(event.message), 1024),
        "source": {"component": component},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
