"""What a rehearsal says beforehand is what then happens: the same release, applied to the cluster itself.

On the sandbox's API server, and on a real kube-apiserver where one was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.few_or_many import first_and_rest
from tests.operator.operator_world import DEADLINE_S
from tests.rehearse.control.test_seeded_releases import CASES, NAMESPACE, VALUES, changed, widget, widgets
from tests.rehearse.rehearsed_world import World, cluster_at_source, populated, rehearsed, wanted

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Invalid, NotFound
from kubekit.kube.request import Call
from runup.applying.control import object_requests
from runup.applying.decide.rendering import ClusterValues, render
from runup.applying.decide.task import tasks_of
from runup.rehearse.decide import differences
from runup.rehearse.decide import served_versions as server_refusals
from runup.rehearse.decide.rehearsal_outcome import Action
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
# Refusals of each kind that the API server itself decides, and changes that it lets pass.
TRIED = (
    "an immutable selector",
    "another image",
    "a stored version that goes",
    "a version that is served no more, and was not stored",
    "a policy that refuses",
    "a policy that is fulfilled",
    "a quota that has no room",
    "a role that is bound anew",
    "rights that are lost",
    "a user's value that is overwritten",
    "a user's value beside the release's",
    "a stricter schema",
    "a field that is pruned",
    "a policy that only warns",
    "a quota that has room",
    "a subject that a binding no longer names",
)


@asynccontextmanager
async def cluster_on(server: str, folder: Path, *objects: JSON) -> AsyncIterator[World]:
    """A cluster on that server."""
    if server == "sandbox":
        async with cluster_at_source(folder, *objects) as made:
            yield made
        return
    with ControlPlane(folder / "plane", programs()) as plane:
        async with populated(plane.kubeconfig, *objects) as made:
            yield made


async def refused_by(cluster: World, dry_run: Call[JSON]) -> None:
    """Waits until a dry run is refused: a real server reads policies and definitions by a watch."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await cluster.client.send(dry_run)
            except ApiError:
                return
            await asyncio.sleep(0.05)


async def applied(cluster: World, folder: Path, uid: str, *objects: JSON) -> tuple[JSON, dict[Identity, str]]:
    """What applying the release to the cluster comes to: the paths that changed by object, and the refusals."""
    tasks = tasks_of(wanted(folder, *objects).payload.manifests)
    paths: dict[str, list[str]] = {}
    refused: dict[Identity, str] = {}
    for task in tasks:
        obj = render(task, ClusterValues(owner_uid=uid)).object
        resource = await cluster.resource(obj)
        at = calls.get_raw(resource, task.identity.name, task.identity.namespace)
        try:
            before = await cluster.client.send(at)
        except NotFound:
            before = None
        try:
            await object_requests.apply(cluster.client, resource, obj, warned=lambda _: None)
        except ApiError as error:
            refused[task.identity] = error.message
            continue
        if before is not None:
            fields = differences.changes(task.identity, before, await cluster.client.send(at))
            paths[str(task.identity)] = [each.path for each in fields]
    return paths, refused


@pytest.mark.parametrize("name", first_and_rest(TRIED, 4))
@pytest.mark.parametrize("server", SERVERS)
async def test_it_happens_as_it_was_rehearsed(server: str, name: str, tmp_path: Path) -> None:
    """The same objects are refused in the same words, and the same fields of the others change."""
    case = CASES[name]()
    async with cluster_on(server, tmp_path, *case.release) as cluster:
        await cluster.apply(*case.users, manager="shop")
        for obj, patch in case.edits:
            await cluster.edit(obj, patch)
        if name == "a policy that refuses":
            labelled = {"metadata": {"labels": {"tried": "yes"}}}
            resource = await cluster.resource(VALUES)
            await refused_by(cluster, calls.merge_patch(resource, "values", labelled, NAMESPACE, dry_run=True))
        source = await cluster.source()
        said = await rehearsed(cluster, tmp_path, *case.target)
        version = source.one("config.openshift.io", "ClusterVersion", "version")
        assert version is not None
        paths, refused = await applied(cluster, tmp_path, version["metadata"]["uid"], *case.target)
    assert {each.identity: each.message for each in said.refusals} == refused
    assert [server_refusals.kind_of(text)[0] for text in refused.values()] == [each.kind for each in said.refusals]
    updated = {str(each.identity): each for each in said.changes if each.action is not Action.CREATE}
    rehearsed_paths = {name: [field.path for field in updated[name].fields] for name in paths}
    assert rehearsed_paths == paths


@pytest.mark.parametrize("server", SERVERS)
async def test_the_next_write_of_a_stored_object(server: str, tmp_path: Path) -> None:
    """What would be refused is refused, what is tolerated passes, and what would be pruned is gone."""
    sizes = {"type": "array", "items": {"type": "integer"}}
    both = {"size": {"type": "integer"}, "sizes": sizes, "colour": {"type": "string"}}
    before = widgets(properties={**both, "shape": {"type": "string"}})
    small = {"type": "integer", "maximum": 5}
    after = widgets(properties={**both, "size": small, "sizes": {**sizes, "items": small}}, required=["size"])
    users = [
        widget("unsized"),
        widget("large", size=9),
        widget("several", size=1, sizes=[1, 9]),
        widget("round", size=1, shape="round"),
    ]
    async with cluster_on(server, tmp_path, before) as cluster:
        await cluster.apply(*users, manager="shop")
        said = await rehearsed(cluster, tmp_path, after)
        await cluster.apply(changed(after, "metadata.annotations", {}), manager="operator")
        resource = await cluster.resource(users[0])
        await refused_by(cluster, calls.create(resource, widget("probe"), dry_run=True))
        happened = {}
        for name in ("unsized", "large", "several", "round"):
            patch = calls.merge_patch(resource, name, {"spec": {"colour": "red"}}, NAMESPACE)
            try:
                await cluster.client.send(patch)
                happened[name] = "passes"
            except Invalid:
                happened[name] = "refused"
        left = await cluster.client.send(calls.get_raw(resource, "round", NAMESPACE))
    (outcome,) = said.definitions
    shown = {each.identity.name: each for each in outcome.objects}
    assert {name: (bool(one.refused), bool(one.tolerated), one.pruned) for name, one in shown.items()} == {
        "unsized": (True, False, ()),
        "large": (False, True, ()),
        "several": (False, True, ()),
        "round": (False, False, ("spec.shape",)),
    }
    assert happened == {"unsized": "refused", "large": "passes", "several": "passes", "round": "passes"}
    assert left["spec"] == {"size": 1, "colour": "red"}
