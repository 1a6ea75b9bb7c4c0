"""Makes the copy of a cluster on a real kube-apiserver: puts what the sandbox's copy holds into its etcd.

The sandbox's copy is kept as the state before the release: an object's dependents, a namespace's contents and stored
custom resources, which the release may delete. The results of the release's objects are read from the real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound, ServerError
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from kubekit.kube.config import load as load_kubeconfig
from kubesandbox.apiserver.objects.strategies import registry_key
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Entry, key_of
from runup.dump.documents import JSON, identity
from runup.dump.large_lists import unpacked
from runup.rehearse.control.cluster_copy import DEFINITION, ClusterCopy, account_user, open_copy
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.real_server import RealServer, ServerPrograms, real_server, service_range
from runup.rehearse.decide import differences
from runup.rehearse.decide.rehearsal_outcome import Action, LeftOut, ObjectChange, StoredObject, WriteRefused
from runup.release.decide.manifest import Identity

SERVED_S = 120.0
# What a write would change: every object gets it, so that the server evaluates the whole object.
_TRIED = "rehearsal.runup.dev/tried"
_AT_ONCE = 8
_BOOTSTRAPPED = "kubernetes.io/bootstrapping"
# Secrets have no contents here. Of the others the kubelet or a controller is the one that writes.
_NOT_TRIED = frozenset({("", "Secret"), ("", "Pod"), ("", "Node"), ("apiregistration.k8s.io", "APIService")})


class RealCopy(ClusterCopy):
    """The copy of a cluster on a real kube-apiserver; `staged` is the sandbox's copy that it was filled from."""

    def __init__(self, staged: ClusterCopy, server: RealServer, client: Client, lookups: SyncClient) -> None:
        super().__init__(staged.server, client, staged.folder)
        self.left_out, self.not_evaluated = staged.left_out, staged.not_evaluated
        self.damaged, self.invented = staged.damaged, staged.invented
        self._real = server
        self._staged = staged
        self._lookups = lookups
        self._kinds: dict[tuple[str, str], Kind] = {}

    def kind_of(self, group: str, kind: str) -> Kind | None:
        """Returns the version of a kind that the real server prefers, or None if it does not serve the kind."""
        if (group, kind) not in self._kinds:
            self._kinds |= {
                (resource.group, resource.kind): resource for resource in reversed(list(self._discovered_kinds(group)))
            }
        return self._kinds.get((group, kind))

    def _discovered_kinds(self, group: str) -> Iterator[Kind]:
        """Yields the kinds of a group, those of its preferred version first."""
        try:
            if group:
                group_versions = self._get_json(f"/apis/{group}")
                versions = [
                    group_versions["preferredVersion"]["version"],
                    *(entry["version"] for entry in group_versions["versions"]),
                ]
            else:
                versions = ["v1"]
            for version in dict.fromkeys(versions):
                path = f"/apis/{group}/{version}" if group else f"/api/{version}"
                for entry in self._get_json(path).get("resources") or ():
                    kind, plural, namespaced = entry["kind"], entry["name"], bool(entry["namespaced"])
                    if "/" not in plural and "get" in entry["verbs"]:
                        yield Kind(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)
        except NotFound:
            return

    def _get_json(self, path: str) -> JSON:
        return codec.decode(dict[str, Any], self._lookups.send(calls.get_path(path)))

    def entry(self, identity_: Identity) -> Entry | None:
        """Returns the object as the real server has it, or None. Raises KubeError."""
        for _ in range(2):
            kind = self.kind_of(identity_.group, identity_.kind)
            if kind is None:
                return None
            try:
                raw = self._lookups.send(
                    calls.get_path(calls.path_of(_resource(kind), identity_.namespace, identity_.name))
                )
            except NotFound as error:
                if not error.api_missing:
                    return None
                # The version that was preferred is served no more.
                self._kinds.pop((identity_.group, identity_.kind), None)
            else:
                return Entry(kind.storage, key_of(identity_.namespace, identity_.name), 0, raw)
        return None

    def all(self, group: str, kind: str, namespace: str = "") -> list[JSON]:
        """Returns all objects of a kind, in a namespace if one is given. Raises KubeError."""
        served = self.kind_of(group, kind)
        return list(self._lookups.listing_raw(_resource(served), namespace).items) if served is not None else []

    def served_versions(self) -> set[tuple[str, str, str]]:
        """Returns group, version and kind of everything that the real server serves. Raises KubeError."""
        groups = ["", *(entry["name"] for entry in self._get_json("/apis").get("groups") or ())]
        return {(kind.group, kind.version, kind.kind) for group in groups for kind in self._discovered_kinds(group)}

    async def wait_for_served_versions(self, definition: JSON) -> None:
        """Waits until the kinds of a definition can be used: a real server takes a moment. Raises Terminal."""
        spec = definition["spec"]
        group, kind, plural = spec["group"], spec["names"]["kind"], spec["names"]["plural"]
        namespaced = spec.get("scope") == "Namespaced"
        deadline = self.server.clock.monotonic() + SERVED_S
        for version in (version["name"] for version in spec["versions"] if version.get("served")):
            resource = Resource(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)
            while not await self._is_served(resource):
                if self.server.clock.monotonic() > deadline:
                    raise Terminal(
                        f"the real API server does not serve {resource.plural}.{group}/{version} after {SERVED_S:g} s",
                        reason="NotServed",
                    )
                await asyncio.sleep(0.02)
        self._kinds.pop((group, kind), None)

    async def _is_served(self, resource: Resource) -> bool:
        """Reports whether the server lists the resource in discovery and answers a list of it."""
        try:
            data: bytes = await self.client.send(calls.get_path(f"/apis/{resource.group}/{resource.version}"))
            listed = codec.decode(dict[str, Any], data).get("resources") or ()
            await self.client.send(calls.list_raw(resource, limit=1))
        except NotFound:
            return False
        except ServerError:
            # A conversion that cannot be made is no reason to wait.
            return True
        return any(entry["name"] == resource.plural for entry in listed)

    async def wait_until_served(self, definition: JSON) -> None:
        """Waits until the real server serves the kind of `definition`, which was just applied. Raises Terminal."""
        spec = definition.get("spec")
        conditions = (definition.get("status") or {}).get("conditions") or ()
        # A name that another definition has is never served, and one that is on its way says nothing yet.
        refused = any(
            condition["type"] == "NamesAccepted" and condition["status"] == "False" for condition in conditions
        )
        if isinstance(spec, dict) and not refused:
            await self.wait_for_served_versions(definition)

    async def drop_unreadable(self, source: ClusterSource) -> None:
        """Deletes the objects that the real server cannot read, and notes them as left out. Raises KubeError."""
        broken: list[str] = []
        for group, kind in sorted({identity(obj)[:2] for obj in source.objects}):
            served = self.kind_of(group, kind)
            if served is None or self._can_list(served):
                continue
            for obj in source.objects:
                if identity(obj)[:2] == (group, kind) and (problem := self._read_error(Identity(*identity(obj)))):
                    namespace, name = identity(obj)[2:]
                    self.damaged.add((group, kind))
                    self.left_out.append(LeftOut(f"{kind} {name}", f"the real API server cannot read it: {problem}", 1))
                    staged = self._staged.kind_of(group, kind)
                    broken += [registry_key(staged, key_of(namespace, name))] if staged is not None else []
        await self._real.delete_keys(broken)

    def _can_list(self, kind: Kind) -> bool:
        """Reports whether the server answers a list of the kind."""
        try:
            self._lookups.send(calls.list_raw(_resource(kind)))
        except ServerError:
            return False
        return True

    def _read_error(self, identity_: Identity) -> str:
        """Returns the server's error when it reads the object; empty if it can."""
        try:
            self.entry(identity_)
        except ServerError as error:
            return error.message
        return ""

    async def try_writes(self, source: ClusterSource, deadline: float) -> tuple[list[WriteRefused], int]:
        """Returns which of the cluster's objects the server would refuse at their next write, and how many were tried.

        Each is written with one more annotation, as a dry run; none after `deadline` (monotonic seconds).
        """
        refused: list[WriteRefused] = []
        identities = [Identity(*identity(obj)) for obj in source.objects if identity(obj)[:2] not in _NOT_TRIED]
        # One iterator for all workers: each takes the next object from it.
        waiting, tried = iter(identities), 0

        async def work() -> None:
            """Tries one write after the other until none is left or the deadline has passed."""
            nonlocal tried
            for each in waiting:
                if self.server.clock.monotonic() > deadline:
                    return
                message = await self._refusal_of_write(each)
                tried += message is not None
                if message:
                    refused.append(WriteRefused(each, message))

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
        return sorted(refused, key=lambda each: str(each.identity)), tried

    async def _refusal_of_write(self, identity_: Identity) -> str | None:
        """Returns why the next write of an object is refused, "" if it is not, None if it is not there."""
        kind = self.kind_of(identity_.group, identity_.kind)
        if kind is None:
            return None
        patch = {"metadata": {"annotations": {_TRIED: "yes"}}}
        call = calls.merge_patch(_resource(kind), identity_.name, patch, identity_.namespace, dry_run=True)
        try:
            await self.client.send(call)
        except NotFound:
            return None
        except ApiError as error:
            return error.message
        return ""

    def read_changes(self, source: ClusterSource) -> Iterator[ObjectChange]:
        """Yields the objects that read otherwise on the real server than on the cluster: defaults, and lost fields."""
        for obj in source.objects:
            sent = unpacked(obj)
            identity_ = Identity(*identity(sent))
            kind = self.kind_of(identity_.group, identity_.kind)
            labels = sent["metadata"].get("labels")
            # The server's own roles are brought up to date by every start of one.
            is_own = isinstance(labels, dict) and _BOOTSTRAPPED in labels
            if kind is None or (identity_.group, identity_.kind) == ("", "Secret") or is_own:
                continue
            version = str(sent["apiVersion"]).rpartition("/")[2]
            path = calls.path_of(_resource(replace(kind, version=version)), identity_.namespace, identity_.name)
            try:
                served = self._get_json(path)
            except (ApiError, codec.DecodeError):
                # Objects that are no longer served, or cannot be read, are reported elsewhere as such.
                continue
            fields = differences.changes(identity_, sent, served)
            if fields:
                yield ObjectChange(identity=identity_, action=Action.UPDATE, fields=fields)

    async def evaluate_stored_object(self, computed: StoredObject | None, identity_: Identity) -> StoredObject | None:
        """Returns the result of the next write of a stored object, with the real server's refusal if there is one.

        `computed` is the result by the schema alone, for a write that changes the part with the fault. The server is
        asked about a write that changes an annotation, so it accepts faults in parts that stay unchanged.
        """
        if computed is not None and (computed.refused or computed.unknown):
            return computed
        refusal = await self._refusal_of_write(identity_)
        if not refusal:
            return computed
        return StoredObject(
            identity=identity_, refused=(refusal,), pruned=computed.pruned if computed is not None else ()
        )


@asynccontextmanager
async def open_real_copy(
    source: ClusterSource, clock: Clock, programs: ServerPrograms, *, account: tuple[str, str], scratch: Path | None
) -> AsyncIterator[RealCopy]:
    """Yields the copy of a cluster on a real kube-apiserver, which ends with the block. Raises OSError and Terminal.

    As `open_copy`, for its other arguments.
    """
    async with open_copy(source, clock, account=account, scratch=scratch, has_authorizer=True) as staged:
        objects = rows_of_etcd(staged, source)
        addresses = (
            str((obj.get("spec") or {}).get("clusterIP") or "")
            for obj in map(unpacked, source.objects)
            if identity(obj) == ("", "Service", "default", "kubernetes")
        )
        async with real_server(
            programs, staged.folder, clock, services=service_range(addresses), objects=objects
        ) as server:
            admin = load_kubeconfig(str(server.kubeconfig_for("lookups", "rehearsal", ("system:masters",))))
            operator = load_kubeconfig(str(server.kubeconfig_for("operator", *account_user(account))))
            with SyncClient(admin) as lookups:
                async with Client(operator, clock=clock) as client:
                    copy_ = RealCopy(staged, server, client, lookups)
                    for definition in staged.all(*DEFINITION):
                        await copy_.wait_for_served_versions(definition)
                    await copy_.drop_unreadable(source)
                    yield copy_


def rows_of_etcd(staged: ClusterCopy, source: ClusterSource) -> list[tuple[str, bytes]]:
    """Returns the objects of the staged copy that are the cluster's, by their keys in etcd."""
    copied = {identity(obj) for obj in source.objects}
    rows: list[tuple[str, bytes]] = []
    for kind in {kind.storage: kind for kind in staged.server.kinds}.values():
        for entry in staged.server.store.items(kind.storage):
            key = (kind.group, kind.kind, entry.namespace, entry.name)
            # What the sandbox's server has of itself, the real one has in its own way.
            if key not in copied and (kind.storage, entry.key) in staged.initial:
                continue
            obj = entry.load()
            if kind.kind == "APIService" and (obj.get("spec") or {}).get("service"):
                text = "its API server does not belong to the copy"
                staged.left_out.append(LeftOut(f"APIService {entry.name}", text, 1))
                continue
            obj["metadata"].pop("resourceVersion", None)
            rows.append((registry_key(kind, entry.key), msgspec.json.encode(obj)))
    return rows


def _resource(kind: Kind) -> Resource:
    return Resource(
        group=kind.group, version=kind.version, kind=kind.kind, plural=kind.plural, namespaced=kind.namespaced
    )
