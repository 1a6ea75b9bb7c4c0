"""One object of a release -> the requests that make the cluster's object so. Raises KubeError, DecodeError.

Server-side apply as one manager: what leaves a manifest leaves the object, what others set of it stays. What an earlier
writer of manifests set (the Go operator's updates, the installer) becomes ours first, or it would stay for ever.
"""

from __future__ import annotations

from typing import Any

from runup.api import codec
from runup.api.owned_v1 import Owned, OwnedWorkload, without_others
from runup.api.scheme import Resource
from runup.domain.payload import ownership
from runup.domain.payload.ownership import MANAGER
from runup.domain.payload.workloads import KINDS
from runup.kube import calls
from runup.kube.client import Client
from runup.kube.errors import AlreadyExists, NotFound

JSON = dict[str, Any]


async def apply(client: Client, resource: Resource, obj: JSON) -> Owned:
    """Apply `obj`; what the server has of it then."""
    answer = await client.send(calls.apply(resource, obj, field_manager=MANAGER, force=True))
    entries = (answer.get("metadata") or {}).get("managedFields") or []
    if ownership.earlier_writers(entries):
        answer = await _adopt(client, resource, obj, answer, entries)
    return _seen(resource, answer)


async def create(client: Client, resource: Resource, obj: JSON) -> Owned | None:
    """Create `obj`; None where there is one of that name already, whatever it holds."""
    try:
        answer = await client.send(calls.create(resource, obj, field_manager=MANAGER))
    except AlreadyExists:
        return None
    return _seen(resource, answer)


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


async def _adopt(client: Client, resource: Resource, obj: JSON, answer: JSON, entries: list[JSON]) -> JSON:
    metadata = answer["metadata"]
    patch = [
        {"op": "replace", "path": "/metadata/managedFields", "value": ownership.adopted(entries)},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion", "")},
    ]
    namespace = metadata.get("namespace", "")
    await client.send(calls.json_patch(resource, metadata["name"], patch, namespace, field_manager=MANAGER))
    return await client.send(calls.apply(resource, obj, field_manager=MANAGER, force=True))


def _seen(resource: Resource, answer: JSON) -> Owned:
    typed = OwnedWorkload if (resource.group, resource.kind) in KINDS else Owned
    return without_others(codec.convert(typed, answer), MANAGER)
