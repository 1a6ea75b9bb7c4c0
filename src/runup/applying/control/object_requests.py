"""Sends the requests that write one object of a release. Its functions raise KubeError and DecodeError.

It uses server-side apply with one field manager: a field that is removed from a manifest is removed from the object,
and fields that others set stay. Fields that an earlier writer of manifests set (the Go operator's updates, the
installer) are taken over first, because server-side apply would never remove them otherwise.
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
from runup.applying.decide.workload_health import KINDS

JSON = dict[str, Any]


async def apply(client: Client, resource: Resource, obj: JSON) -> Owned:
    """Applies `obj` and returns the server's answer, reduced to the metadata and status that we need."""
    # Forced, because the release decides its fields: docs/decisions/0045-what-is-in-place-is-known-from-metadata.md.
    call = _narrow(calls.apply(resource, obj, field_manager=MANAGER, force=True), resource)
    answer = await client.send(call)
    if any(ownership.is_earlier(each.manager, each.operation, each.subresource) for each in _managers(answer)):
        await _adopt(client, resource, answer)
        answer = await client.send(call)
    return without_others(answer, MANAGER, LABEL)


async def create(client: Client, resource: Resource, obj: JSON) -> Owned | None:
    """Creates `obj` and returns the server's answer; None if an object of that name exists, whatever its content."""
    try:
        answer = await client.send(_narrow(calls.create(resource, obj, field_manager=MANAGER), resource))
    except AlreadyExists:
        return None
    return without_others(answer, MANAGER, LABEL)


async def delete(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    """Requests the deletion of an object and returns whether it existed."""
    try:
        await client.send(calls.delete(resource, name, namespace))
    except NotFound:
        return False
    return True


async def relate(client: Client, resource: Resource, name: str, related: list[Any]) -> None:
    """Writes `relatedObjects` into a new ClusterOperator's status, before its operator has reported any."""
    patch = {"status": {"relatedObjects": related}}
    await client.send(calls.merge_patch(resource, name, patch, subresource="status", field_manager=MANAGER))


async def _adopt(client: Client, resource: Resource, answer: Owned) -> None:
    """Takes over the fields that earlier writers of manifests own; raises Conflict if the object changes meanwhile."""
    metadata = answer.metadata
    current = (await client.send(calls.get_raw(resource, metadata.name, metadata.namespace)))["metadata"]
    patch = [
        {"op": "replace", "path": "/metadata/managedFields", "value": ownership.adopted(current["managedFields"])},
        # The API server answers Conflict if the object has changed since this version was read.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": current.get("resourceVersion", "")},
    ]
    await client.send(calls.json_patch(resource, metadata.name, patch, metadata.namespace, field_manager=MANAGER))


def _managers(answer: Owned) -> tuple[ManagedFields, ...]:
    return answer.metadata.managed_fields


def _narrow(call: Call[JSON], resource: Resource) -> Call[Owned]:
    """Returns `call` with an answer decoded only as far as needed: a CustomResourceDefinition has hundreds of KB."""
    kind: type[Owned] = OwnedWorkload if (resource.group, resource.kind) in KINDS else Owned
    base = call.request
    request = Request(base.method, base.path, base.query, calls.accepting(kind, base.headers), base.body)
    return Call(request, lambda data: codec.decode(kind, data))
