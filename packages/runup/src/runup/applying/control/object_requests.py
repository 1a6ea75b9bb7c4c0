"""Finds the kind of an object of a release, and sends the requests that write it. Raises KubeError and DecodeError.

Server-side apply with one field manager writes what the manifest says, and removes what leaves it. Fields that an
earlier writer of manifests set (the Go operator's updates, the installer) are taken over first, because server-side
apply would never remove them otherwise. Fields that others added are then removed if the kind's rules say so
(`merge_rules`), by an update of the object that was read.

A server that is older than the release may refuse to make a patch of a manifest, because of a field that it does not
know. The object is created or updated as a whole then, and the server says which fields it dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import structlog

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls, list_pages
from kubekit.kube.api_errors import AlreadyExists, ApiError, Invalid, NotFound, ServerError
from kubekit.kube.client import Client, Warned
from kubekit.kube.request import Call, Request
from runup.api.owned_v1 import Owned, OwnedWorkload, without_others
from runup.applying.decide import contesting_writers, health, merge_rules, merging, rendering
from runup.release.decide.manifest import Manifest

Known = dict[tuple[str, str, str], Resource]


class ResourceDiscovery:
    """The resources of one cluster. Discovery asks for each group and version once, however many callers wait."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._defined: Known = {}
        self._asked: dict[str, asyncio.Task[Known]] = {}

    def define(self, manifests: Iterable[Manifest]) -> None:
        """Stores the kinds that CustomResourceDefinitions in `manifests` define, which may not be served yet."""
        self._defined = {}
        for manifest in manifests:
            if (manifest.identity.group, manifest.identity.kind) == health.DEFINITION:
                self._defined |= kinds_of_definition(manifest.object)

    def defines(self, group: str, kind: str) -> bool:
        """Returns whether the release itself defines that kind."""
        return any((definition[0], definition[2]) == (group, kind) for definition in self._defined)

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Returns the resource of that kind, None if the server does not serve it; raises KubeError."""
        group, _, version = api_version.rpartition("/")
        if defined := self._defined.get((group, version, kind)):
            return defined
        if api_version not in self._asked:
            self._asked[api_version] = asyncio.create_task(self._discover(api_version))
        try:
            # Shielded, because other callers may wait for the same request when this one is cancelled.
            return (await asyncio.shield(self._asked[api_version])).get((group, version, kind))
        except BaseException:
            self.forget(api_version)
            raise

    def forget(self, api_version: str) -> None:
        """Drops the cached answer for `api_version`, so that the next call asks the server."""
        self._asked.pop(api_version, None)

    async def _discover(self, api_version: str) -> Known:
        """Returns the kinds that the server serves in `api_version`; none if it does not know the version."""
        root = "/apis/" if "/" in api_version else "/api/"
        try:
            data: bytes = await self._client.send(calls.get_path(f"{root}{api_version}"))
        except NotFound:
            return {}
        body = codec.decode(dict[str, Any], data)
        group, _, version = api_version.rpartition("/")
        return {
            (group, version, entry["kind"]): Resource(
                group=group,
                version=version,
                kind=entry["kind"],
                plural=entry["name"],
                namespaced=bool(entry.get("namespaced")),
            )
            for entry in body.get("resources") or ()
            # Discovery lists subresources, too, for example `deployments/status`.
            if "/" not in entry["name"]
        }


def kinds_of_definition(obj: dict[str, Any]) -> Known:
    """Returns the served kinds of a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    group, names = spec.get("group", ""), spec.get("names") or {}
    kind, plural = names.get("kind", ""), names.get("plural", "")
    return {
        (group, version["name"], kind): Resource(
            group=group, version=version["name"], kind=kind, plural=plural, namespaced=spec.get("scope") == "Namespaced"
        )
        for version in spec.get("versions") or ()
        if isinstance(version, dict) and version.get("served") and version.get("name")
    }


JSON = dict[str, Any]
log = structlog.get_logger("payload")
# What kube-apiserver answers, with 500, if it cannot make a patch of the manifest, or of the object in the cluster:
# https://github.com/kubernetes/kubernetes/blob/v1.34.0/staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go
_NO_PATCH = "failed to create typed patch object"
_NO_LIVE = "failed to create typed live object"


async def apply(client: Client, resource: Resource, obj: JSON, *, earlier_writes: bytes = b"", warned: Warned) -> Owned:
    """Applies `obj` and returns the server's answer, reduced to the metadata and status that we need.

    `earlier_writes` are the writes of other managers that were found to need no repair (`Owned.others`): the object is
    not read once more for them. `warned` is called with what the server says about fields that it drops.
    """
    try:
        answer = await _apply_forced(client, resource, obj)
    except (Invalid, ServerError) as error:
        if _NO_PATCH in error.message:
            return await _write_whole(client, resource, obj=obj, refused=error, warned=warned)
        if isinstance(error, ServerError) and _NO_LIVE not in error.message:
            raise
        # What others added may exclude what the manifest says: another handler of a probe, a port of the same name.
        try:
            await _merge(client, resource, obj, manager=merge_rules.MERGER)
        except NotFound:
            raise error from None
        answer = await _apply_forced(client, resource, obj)
    object_written = reduce_for_memory(answer, _kind_of(resource))
    if not object_written.owned or object_written.others in (b"", earlier_writes):
        return object_written
    return await _merge(client, resource, obj, manager=merge_rules.MERGER)


async def create(client: Client, resource: Resource, obj: JSON) -> Owned | None:
    """Creates `obj` and returns the server's answer; None if an object of that name exists, whatever its content."""
    try:
        answer = await client.send(_narrow_answer(calls.create(resource, obj, field_manager=merging.MANAGER), resource))
    except AlreadyExists:
        return None
    return reduce_for_memory(answer, _kind_of(resource))


def reduce_for_memory(obj: Owned, kind: tuple[str, str]) -> Owned:
    """Returns `obj`, which is of that group and kind, reduced to the fields that are cached."""
    return without_others(obj, merging.MANAGER, rendering.LABEL, merge_rules.writes_of_others(kind, obj.metadata))


async def contesting_writer(client: Client, resource: Resource, obj: JSON) -> str:
    """Returns the field manager that last changed the object from what `obj` says; "" if it is not known."""
    metadata = obj["metadata"]
    try:
        call = calls.get_raw(resource, metadata["name"], metadata.get("namespace", ""))
        answer = await client.send(_narrow_answer(call, resource))
    except NotFound:
        return ""
    return contesting_writers.contesting_writer(_kind_of(resource), answer.metadata, obj)


async def delete(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    """Requests the deletion of an object and returns whether it existed."""
    try:
        await client.send(calls.delete(resource, name, namespace))
    except NotFound:
        return False
    return True


async def write_related_objects(client: Client, resource: Resource, name: str, related: list[Any]) -> None:
    """Writes `relatedObjects` into a new ClusterOperator's status, before its operator has reported any."""
    patch = {"status": {"relatedObjects": related}}
    await client.send(calls.merge_patch(resource, name, patch, subresource="status", field_manager=merging.MANAGER))


async def _merge(client: Client, resource: Resource, obj: JSON, *, manager: str, warned: Warned | None = None) -> Owned:
    """Reads the object, merges `obj` into it, and updates it if that differs.

    Raises Conflict if it changes meanwhile, NotFound if it does not exist.
    """
    metadata = obj["metadata"]
    live = await client.send(calls.get_raw(resource, metadata["name"], metadata.get("namespace", "")))
    merged = merge_rules.merge_objects(_kind_of(resource), obj, live)
    if merged == live:
        return reduce_for_memory(codec.convert(_owned_type(resource), live), _kind_of(resource))
    call = _narrow_answer(calls.replace(resource, merged, field_manager=manager), resource)
    return reduce_for_memory(await client.send(call, warned=warned), _kind_of(resource))


async def _write_whole(client: Client, resource: Resource, obj: JSON, refused: ApiError, warned: Warned) -> Owned:
    """Updates or creates the object as a whole, since the server refused to make a patch of `obj`."""
    headers: list[str] = []
    try:
        object_written = await _merge(client, resource, obj, manager=merging.MANAGER, warned=headers.extend)
    except NotFound as error:
        if error.api_missing:
            raise
        call = _narrow_answer(calls.create(resource, obj, field_manager=merging.MANAGER), resource)
        object_written = reduce_for_memory(await client.send(call, warned=headers.extend), _kind_of(resource))
    warnings = list_pages.texts_of(headers)
    warned(warnings)
    name = f"{resource.kind.lower()} {object_written.metadata.namespace}/{object_written.metadata.name}".replace(
        " /", " "
    )
    log.warning("written as a whole", object=name, refused=refused.message, dropped=warnings)
    return object_written


async def _apply_forced(client: Client, resource: Resource, obj: JSON) -> Owned:
    """Applies the object, and returns the answer with as little of it as is needed."""
    # Forced, because the release decides its fields: docs/decisions/0045-what-is-in-place-is-known-from-metadata.md.
    call = _narrow_answer(calls.apply(resource, obj, field_manager=merging.MANAGER, force=True), resource)
    answer = await client.send(call)
    if any(
        merging.is_earlier(manager_entry.manager, manager_entry.operation, manager_entry.subresource)
        for manager_entry in answer.metadata.managed_fields
    ):
        metadata = answer.metadata
        current = (await client.send(calls.get_raw(resource, metadata.name, metadata.namespace)))["metadata"]
        patch = [
            {
                "op": "replace",
                "path": "/metadata/managedFields",
                "value": merging.adopted_entries(current["managedFields"]),
            },
            # The API server answers Conflict if the object has changed since this version was read.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": current.get("resourceVersion", "")},
        ]
        await client.send(
            calls.json_patch(resource, metadata.name, patch, metadata.namespace, field_manager=merging.MANAGER)
        )
        answer = await client.send(call)
    return answer


def _kind_of(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.kind


def _owned_type(resource: Resource) -> type[Owned]:
    return OwnedWorkload if _kind_of(resource) in health.KINDS else Owned


def _narrow_answer(call: Call[JSON], resource: Resource) -> Call[Owned]:
    """Returns `call` with an answer decoded only as far as needed: a CustomResourceDefinition has hundreds of KB."""
    kind = _owned_type(resource)
    base = call.request
    request = Request(
        method=base.method,
        path=base.path,
        query=base.query,
        headers=calls.with_accept_for(kind, base.headers),
        body=base.body,
    )
    return Call(request, lambda data: codec.decode(kind, data))
