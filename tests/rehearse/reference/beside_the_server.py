"""Applies seeded releases to a copy of a cluster and to the cluster itself, and compares every answer and every object.

The cluster is a real kube-apiserver. What it says is the truth; a difference is the copy's.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from tests.rehearse.reference.seeded_release import SeededRelease
from tests.rehearse.rehearsed_world import World

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.applying.control import object_requests
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.decide.rendering import ClusterValues, render
from runup.applying.decide.task import Task, tasks_of
from runup.dump.documents import identity
from runup.rehearse.control.cluster_copy import open_copy
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.decide import differences
from runup.release.decide.manifest import Identity, Manifest

JSON = dict[str, Any]
# A template, as Go prints its internal type.
_IN_GO = re.compile(r"(?<=Invalid value: )\{.*\}(?=: )")
DEADLINE_S = 240.0
_QUOTA_STATUS = {"hard": {"pods": "5"}, "used": {"pods": "0"}}
# What the server of a cluster gives out as it likes.
_ALLOCATED = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})


@dataclass
class Answer:
    """What applying one object came to: the refusal, or the object before and after."""

    refusal: ApiError | None = None
    before: JSON | None = None
    after: JSON | None = None
    served: bool = True

    @property
    def verdict(self) -> str:
        """Whether the object was refused, created or changed; a kind that is not served refuses."""
        if not self.served:
            return "refused"
        return "refused" if self.refusal is not None else "created" if self.before is None else "changed"

    def comparable(self, identity_: Identity) -> Any:
        """What a rehearsal would report it, as data that can be compared."""
        if not self.served:
            return "not served"
        if self.refusal is not None:
            # The causes of an answer may have a fault twice, its message has it once.
            return sorted({f"{field}: {reason}" for field, reason, _ in _causes(self.refusal)})
        if self.before is None:
            return _without_given(differences.without_server_fields(self.after or {}))
        fields = differences.changes(identity_, self.before, self.after or {})
        return {each.path: _without_given([each.before, each.after, list(each.others)]) for each in fields}

    @property
    def words(self) -> Any:
        """The faults of a refusal in the server's words, without what is of the types of its implementation."""
        if self.refusal is None:
            return ""
        # Several faults come in the order of a Go map, and a refused change of a spec ends with its difference.
        return sorted({_IN_GO.sub("", message.partition("\n")[0]) for *_, message in _causes(self.refusal)})


def _causes(error: ApiError) -> list[tuple[str, str, str]]:
    details = error.status.details
    found = [(each.field, each.reason, each.message) for each in details.causes] if details is not None else []
    return found or [("", error.reason, error.message)]


@dataclass
class Agreement:
    """How often both servers said the same: by verdict, by what is reported, and word by word; and each difference."""

    asked: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)
    different: list[JSON] = field(default_factory=list)
    releases: int = 0
    releases_alike: int = 0

    def compare(self, release: SeededRelease, on_copy: dict[Identity, Answer], real: dict[Identity, Answer]) -> None:
        """Counts what both servers said to the objects of a release."""
        self.releases += 1
        alike = True
        for named, answer in real.items():
            ours = on_copy[named]
            agrees = self._count("the same verdict", ours.verdict == answer.verdict)
            same_data = ours.comparable(named) == answer.comparable(named)
            what = {"refused": "refused for the same fields", "changed": "changed alike", "created": "created alike"}
            agrees = self._count(what[answer.verdict], agrees and same_data) and agrees
            if answer.refusal is not None:
                self._count("refused in the same words", agrees and ours.words == answer.words)
            alike = alike and agrees
            if not agrees or ours.words != answer.words:
                self.different.append(
                    {
                        "seed": release.number,
                        "object": str(named),
                        "changes": release.changes.get(f"{named.kind} {named.name}"),
                        "what": "words" if agrees else "finding",
                        "copy": ours.words or ours.comparable(named),
                        "server": answer.words or answer.comparable(named),
                    }
                )
        self.releases_alike += alike

    def _count(self, what: str, same: bool) -> bool:
        self.asked[what] += 1
        self.same[what] += same
        return same


async def compare(cluster: World, release: SeededRelease, agreement: Agreement, owner_uid: str) -> None:
    """Brings the cluster to what the seed says, and compares a copy of it with what then happens to itself."""
    await install_before(cluster, release, owner_uid)
    source = _of_release(await cluster.source(), release)
    tasks = tasks_of([Manifest.of("", Identity(*identity(obj)), obj) for obj in release.after])
    async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
        on_copy = await _applied(copy.client, tasks, owner_uid)
    agreement.compare(release, on_copy, await _applied(cluster.client, tasks, owner_uid))


async def install_before(cluster: World, release: SeededRelease, owner_uid: str) -> None:
    """Brings the cluster to what the seed says: its release as the operator applies it, then what users changed."""
    for task in tasks_of([Manifest.of("", Identity(*identity(obj)), obj) for obj in release.before]):
        obj = render(task, ClusterValues(owner_uid=owner_uid)).object
        # The status of a quota is its controller's, and not the release's.
        status = {"status": _QUOTA_STATUS} if obj["kind"] == "ResourceQuota" else {}
        await cluster.apply({**obj, **status})
    for obj, patch in release.edits:
        await cluster.edit(obj, patch, "shop")


def _of_release(source: ClusterSource, release: SeededRelease) -> ClusterSource:
    """The source without what other seeds have left on the server."""

    def is_others(obj: JSON) -> bool:
        *_, namespace, name = identity(obj)
        return any(
            word.startswith("s") and word[1:2].isdigit() and release.prefix not in word
            for word in (namespace, name, name.partition(".")[2])
        )

    return replace(source, objects=[obj for obj in source.objects if not is_others(obj)])


async def _applied(client: Client, tasks: list[Task], owner_uid: str) -> dict[Identity, Answer]:
    answers = {}
    for task in tasks:
        obj = render(task, ClusterValues(owner_uid=owner_uid)).object
        answers[task.identity] = await applied_object(client, task.identity, obj)
    return answers


async def applied_object(client: Client, named: Identity, obj: JSON, kinds: ResourceDiscovery | None = None) -> Answer:
    """Applies one object as the operator does, and returns what it came to; `kinds` are asked again without any."""
    resource = await (kinds or ResourceDiscovery(client)).resource(str(obj["apiVersion"]), named.kind)
    if resource is None:
        return Answer(served=False)
    at = calls.get_raw(resource, named.name, named.namespace)
    before = await _read(client, resource, named)
    try:
        await object_requests.apply(client, resource, obj, warned=lambda _: None)
    except ApiError as error:
        return Answer(refusal=error)
    after = await client.send(at)
    if named.kind == "CustomResourceDefinition" and before is not None and differences.changes(named, before, after):
        await _until_used(client, after)
    return Answer(before=before, after=after)


async def _read(client: Client, resource: Resource, named: Identity) -> JSON | None:
    try:
        return await client.send(calls.get_raw(resource, named.name, named.namespace))
    except NotFound:
        return None


async def _until_used(client: Client, definition: JSON) -> None:
    """Waits until a real server uses a definition that has changed: its published schema is then the new one."""
    spec = definition["spec"]
    version = spec["versions"][0]
    wanted = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    path = f"/openapi/v3/apis/{spec['group']}/{version['name']}"
    async with asyncio.timeout(DEADLINE_S):
        while version["served"]:
            try:
                found = await client.send(calls.get_path(path))
            except NotFound:
                found = b""
            if all(name.encode() in found for name in _marks(wanted)):
                return
            await asyncio.sleep(0.05)


def _marks(schema: JSON) -> list[str]:
    """Words that the published schema has once it is the new one."""
    size = schema["properties"]["size"]
    marks = [f'"{key}"' for key in ("maximum", "default") if key in size]
    return marks + [f'"{key}"' for key in ("required", "x-kubernetes-validations") if key in schema]


def _without_given(value: Any) -> Any:
    """Returns the value without what every server gives out as it likes: addresses, ports, uids of Jobs."""
    if isinstance(value, dict):
        return {key: _without_given(each) for key, each in value.items() if not _is_given(key)}
    return [_without_given(each) for each in value] if isinstance(value, list) else value


def _is_given(key: str) -> bool:
    return key in _ALLOCATED or key.endswith("controller-uid")
