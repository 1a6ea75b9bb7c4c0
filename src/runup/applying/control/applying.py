"""One object of a release -> the requests that make the cluster's object so. Raises KubeError, DecodeError.

Server-side apply as one manager: what leaves a manifest leaves the object, what others set of it stays. What an earlier
writer of manifests set (the Go operator's updates, the installer) becomes ours first, or it would stay for ever.
"""

from __future__ import annotations

from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.errors import AlreadyExists, NotFound
from kubekit.kube.request import Call, Request
from runup.api.owned_v1 import ManagedFields, Owned, OwnedWorkload, without_others
from runup.applying.decide import ownership
from runup.applying.decide.ownership import MANAGER
from runup.applying.decide.rendering import LABEL
from runup.applying.decide.workloads import KINDS

JSON = dict[str, Any]


async def apply(client: Client, resource: Resource, obj: JSON) -> Owned:
    """Apply `obj`; what the server has of it then."""
    call = _narrow(calls.apply(resource, obj, field_manager=MANAGER, force=True), resource)
    answer = await client.send(call)
    if any(ownership.is_earlier(each.manager, each.operation, each.subresource) for each in _managers(answer)):
        await _adopt(client, resource, answer)
        answer = await client.send(call)
    return without_others(answer, MANAGER, LABEL)


async def create(client: Client, resource: Resource, obj: JSON) -> Owned | None:
    """Create `obj`; None where there is one of that name already, whatever it holds."""
    try:
        answer = await client.send(_narrow(calls.create(resource, obj, field_manager=MANAGER), resource))
    except AlreadyExists:
        return None
    return without_others(answer, MANAGER, LABEL)


async def delete(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    """Ask for a deletion; whether there was something to delete."""
    try:
        await client.send(calls.delete(resource, name, namespace))
    except NotFound:
        return False
    return True


async def relate(client: Client, resource: Resource, name: str, related: list[Any]) -> None:
    """Say in a new ClusterOperator's status what it concerns itself with, before its operator has a word."""
    patch = {"status": {"relatedObjects": related}}
    await client.send(calls.merge_patch(resource, name, patch, subresource="status", field_manager=MANAGER))


async def _adopt(client: Client, resource: Resource, answer: Owned) -> None:
    """Make what earlier writers of manifests set ours; a Conflict where somebody writes at the same moment."""
    metadata = answer.metadata
    whole = (await client.send(calls.get_raw(resource, metadata.name, metadata.namespace)))["metadata"]
    patch = [
        {"op": "replace", "path": "/metadata/managedFields", "value": ownership.adopted(whole["managedFields"])},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": whole.get("resourceVersion", "")},
    ]
    await client.send(calls.json_patch(resource, metadata.name, patch, metadata.namespace, field_manager=MANAGER))


def _managers(answer: Owned) -> tuple[ManagedFields, ...]:
    return answer.metadata.managed_fields


def _narrow(call: Call[JSON], resource: Resource) -> Call[Owned]:
    """`call` with an answer that is read only as far as it is needed: a definition is hundreds of kilobytes."""
    kind: type[Owned] = OwnedWorkload if (resource.group, resource.kind) in KINDS else Owned
    asked = call.request
    request = Request(asked.method, asked.path, asked.query, calls.accepting(kind, asked.headers), asked.body)
    return Call(request, lambda data: codec.decode(kind, data))
