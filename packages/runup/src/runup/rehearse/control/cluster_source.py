"""Reads the objects for a copy of a cluster: from a dump, or from a live cluster by get and list alone.

Secrets of a live cluster are read as metadata, without their annotations: `last-applied-configuration` holds what a
Secret holds. Kinds that a dump does not have in full, or that could not be listed, are recorded as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, KubeError
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call
from runup import __version__
from runup.checks.decide.built_in_groups import has_definitions
from runup.dump.completeness import CompleteKinds
from runup.dump.documents import JSON, identity
from runup.dump.large_lists import packed, unpacked
from runup.dump.load import SKIPPED_KINDS, time_of_dump
from runup.dump.load import read as read_dump
from runup.process.read_only_client import ReadOnlyClient
from runup.process.steps import each
from runup.rehearse.decide.rehearsal_outcome import LeftOut

# Objects of a copy: a cluster of 1,000 nodes and 30,000 pods has some 80,000. Each takes 5 KiB on average.
MAX_OBJECTS = 100_000
AGENT = f"runup-rehearse/{__version__}"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_SECRETS = ("", "secrets")
_DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
_KEPT_OF_SECRETS = ("name", "namespace", "labels", "uid", "creationTimestamp", "ownerReferences")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSource:
    """The objects of a cluster, and their completeness. `plurals` names the resource of each kind.

    Objects of large lists may be packed (`large_lists.unpacked`), all but those that `one` returns.
    `requests` counts the reads of a live cluster. `now` is the cluster's time, None of a dump that does not tell it.
    """

    name: str
    objects: list[JSON]
    plurals: Mapping[tuple[str, str], str]
    collected: CompleteKinds
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    requests: int = 0
    now: datetime | None = None
    kubernetes: str = ""
    # Group and kind of what its definitions define.
    defined: frozenset[tuple[str, str]] = frozenset()
    # Group and kind of which an object could not be copied.
    damaged: frozenset[tuple[str, str]] = frozenset()
    # Group and kind that a live cluster has and did not list, and why; without a kind: a whole group.
    unread: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def one(self, group: str, kind: str, name: str) -> JSON | None:
        """Returns the cluster-scoped object of that identity, or None."""
        found = next((obj for obj in self.objects if identity(obj) == (group, kind, "", name)), None)
        return unpacked(found) if found is not None else None

    def why_unread(self, group: str, kind: str) -> str:
        """Returns why a live cluster's objects of a kind could not be read, "" if they were or it has no such kind."""
        return self.unread.get((group, kind)) or self.unread.get((group, "")) or ""

    def knows(self, group: str, kind: str, namespace: str = "") -> bool:
        """Returns whether every object of a kind is in the source, in that namespace or in the cluster."""
        if (group, kind) in self.damaged:
            return False
        plural = self.plurals.get((group, kind))
        if plural is not None:
            return self.collected.covers((group, plural), namespace)
        if has_definitions(group) and _DEFINITIONS in self.collected.whole and (group, kind) not in self.defined:
            return True
        singular = kind.lower()
        plurals = {singular, f"{singular}s", f"{singular}es", f"{singular[:-1]}ies"}
        known_resources = (*self.collected.whole, *self.collected.absent)
        return any(key[0] == group and key[1] in plurals for key in known_resources)


def read_dump_source(path: Path, *, max_objects: int = MAX_OBJECTS) -> ClusterSource:
    """Returns the cluster in a dump. Raises BadDump, and Terminal for one with too many objects."""
    dump = read_dump(path, any_kubernetes=True, packs=True)
    _refuse_too_many(len(dump.objects), max_objects)
    left_out = [
        LeftOut("Secret", "a dump has no Secrets that may be copied; results that need their contents are unknown")
    ]
    if dump.skipped:
        text = "Events, EndpointSlices, Leases and other kinds that say nothing about an update"
        left_out.append(LeftOut("other kinds", text, dump.skipped))
    if dump.collected.fields:
        text = "arguments, variables and others that may hold secrets: what the release overwrites there is not known"
        left_out.append(LeftOut("fields", text))
    left_out += [LeftOut(_resource_name(*key), dump.collected.why_partly(key)) for key in sorted(dump.collected.partly)]
    return ClusterSource(
        name=dump.name,
        objects=list(dump.objects),
        plurals=dump.plurals,
        collected=dump.collected,
        left_out=tuple(left_out),
        notes=dump.problems[:10],
        now=time_of_dump(dump),
        kubernetes=_kubernetes_version(dump.kubernetes.version),
        defined=defined_in(dump.objects),
    )


async def read_cluster_source(config: ClusterConfig, *, max_objects: int = MAX_OBJECTS) -> ClusterSource:
    """Returns a live cluster, read page by page.

    Raises KubeError, codec.DecodeError for a server that cannot be read, and Terminal for too many objects.
    """
    async with ReadOnlyClient(config, namespace="", user_agent=AGENT) as client:
        reader = _LiveReader(client, max_objects)
        await reader.read()
        answer: bytes = await client.send(calls.get_path("/version"))
        version, now = codec.decode(dict[str, Any], answer), client.now()
    return ClusterSource(
        name="the cluster",
        objects=reader.objects,
        plurals=reader.plurals,
        collected=CompleteKinds(whole=frozenset(reader.whole), partly=frozenset(reader.partly)),
        left_out=tuple(reader.left_out),
        requests=reader.requests + 1,
        now=now,
        kubernetes=_kubernetes_version(str(version.get("gitVersion") or "")),
        defined=defined_in(reader.objects),
        unread=reader.unread,
    )


class _LiveReader:
    """The lists of one cluster, one kind after another."""

    def __init__(self, client: ReadOnlyClient, max_objects: int) -> None:
        self.objects: list[JSON] = []
        self.plurals: dict[tuple[str, str], str] = {}
        self.whole: set[tuple[str, str]] = set()
        self.partly: set[tuple[str, str]] = set()
        self.left_out: list[LeftOut] = []
        self.unread: dict[tuple[str, str], str] = {}
        self.requests = 0
        self._client = client
        self._max_objects = max_objects

    async def read(self) -> None:
        """Lists every kind that can be listed."""
        for resource in each(await self._listable_resources(), "Listing kinds"):
            if resource.kind in SKIPPED_KINDS and (resource.group, resource.plural) != _SECRETS:
                continue
            try:
                await self._list_resource(resource)
            except (KubeError, codec.DecodeError) as error:
                message = error.message if isinstance(error, ApiError) else str(error)
                self.left_out.append(LeftOut(_resource_name(resource.group, resource.plural), message))
                self.unread[resource.group, resource.kind] = message
        text = "only their names and labels were read; what needs their contents is not known"
        self.left_out.append(LeftOut("Secret", text))

    async def _list_resource(self, resource: Resource) -> None:
        """Lists one resource page by page into `objects`. Raises KubeError, or Terminal beyond the limit."""
        key = (resource.group, resource.plural)
        self.plurals[resource.group, resource.kind] = resource.plural
        # A list that fails on its way is known in part.
        self.partly.add(key)
        token = ""
        while True:
            call = calls.list_raw(resource, limit=500, continue_=token)
            if key == _SECRETS:
                headers = tuple(header for header in call.request.headers if header[0].lower() != "accept")
                call = Call(replace(call.request, headers=(*headers, ("Accept", _METADATA))), call.decode)
            self.requests += 1
            page = await self._client.send(call)
            several = bool(token or page.continue_)
            for item in page.items:
                metadata = item["metadata"]
                if key == _SECRETS:
                    metadata = {name: metadata[name] for name in metadata if name in _KEPT_OF_SECRETS}
                    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
                else:
                    kept = {name: metadata[name] for name in metadata if name not in {"resourceVersion", "selfLink"}}
                    obj = {**item, "metadata": kept}
                # Thousands of one kind, such as pods, take a fifth of the memory as text.
                self.objects.append(packed(obj) if several else obj)
            _refuse_too_many(len(self.objects), self._max_objects)
            token = page.continue_
            if not token:
                break
        self.partly.discard(key)
        self.whole.add(key)

    async def _listable_resources(self) -> list[Resource]:
        """Returns every kind that can be listed, each in its group's preferred version, or the first that has it."""
        paths = ["/api/v1"]
        groups = await self._get_json("/apis")
        for group in groups.get("groups") or ():
            preferred = group["preferredVersion"]["groupVersion"]
            other_versions = [other_version["groupVersion"] for other_version in group["versions"]]
            paths += [f"/apis/{version}" for version in dict.fromkeys((preferred, *other_versions))]
        resources: dict[tuple[str, str], Resource] = {}
        for path in paths:
            try:
                body = await self._get_json(path)
            except (KubeError, codec.DecodeError) as error:
                self.left_out.append(LeftOut(path.removeprefix("/apis/"), f"it could not be discovered: {error}"))
                self.unread[path.removeprefix("/apis/").rpartition("/")[0], ""] = str(error)
                continue
            group, _, version = str(body.get("groupVersion", "")).rpartition("/")
            for entry in body.get("resources") or ():
                # A name with a slash is a subresource, such as `pods/log`.
                if "/" not in entry["name"] and {"list", "get"} <= set(entry.get("verbs") or ()):
                    kind, plural, namespaced = entry["kind"], entry["name"], entry["namespaced"]
                    resource = Resource(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)
                    resources.setdefault((group, plural), resource)
        return list(resources.values())

    async def _get_json(self, path: str) -> JSON:
        self.requests += 1
        answer: bytes = await self._client.send(calls.get_path(path))
        return codec.decode(dict[str, Any], answer)


def _refuse_too_many(number: int, limit: int) -> None:
    if number > limit:
        text = f"the cluster has more than {limit} objects; `runup rehearse --max-objects` takes more"
        raise Terminal(f"{text}, with some 150 MiB of memory for each 10,000", reason="TooManyObjects")


def _kubernetes_version(version: str) -> str:
    """Returns a version of Kubernetes without the suffix of a distribution (`v1.34.2+k3s1`: `1.34.2`)."""
    return version.removeprefix("v").partition("+")[0].partition("-")[0]


def _resource_name(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def defined_in(objects: Iterable[JSON]) -> frozenset[tuple[str, str]]:
    """Returns group and kind of what the definitions among `objects` define."""
    specs = (unpacked(obj).get("spec") for obj in objects if obj["kind"] == "CustomResourceDefinition")
    pairs = ((spec.get("group"), spec.get("names")) for spec in specs if isinstance(spec, dict))
    return frozenset((str(group), str(names.get("kind"))) for group, names in pairs if isinstance(names, dict))


def numbers(objects: list[JSON]) -> tuple[tuple[str, int], ...]:
    """Returns the number of objects by kind, the most frequent first."""
    counts = Counter(f"{kind}.{group}" if group else kind for group, kind, *_ in map(identity, objects))
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
