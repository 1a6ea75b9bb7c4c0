"""An imported cluster has every object of its dump, also after the controllers have seen all of them.

Kubernetes' garbage collector deletes an object without any living owner (pkg/controller/garbagecollector,
attemptToDeleteItem). It must not delete objects whose owners the dump lacks or the import has not created yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.few_or_many import first_and_rest
from tests.kubesandbox.controllers.conftest import NAMESPACES, Cluster

from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load as load_config
from kubesandbox import cluster as assembly
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.controllers.namespaces import ACCOUNTS
from kubesandbox.controllers.owner_graph import discover_kinds
from kubesandbox.tasks import cancel_tasks
from runup.dump import load
from runup.dump.documents import JSON, identity, object_name
from runup.sandbox.scenario import folder as scenarios
from runup.sandbox.scenario import from_dump, scenario_releases
from runup.sandbox.setup import scenario_objects as setup

ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared" / "corpus" / "oc-status"
DUMPS = {
    **{
        str(dump.relative_to(ROOT)): dump
        for dump in (ROOT / "examples/skip-level", ROOT / "examples/rehearsal/cluster")
    },
    **{
        f"oc: {case}": CORPUS / case
        for case in sorted(file.name.removesuffix("-cv.yaml") for file in CORPUS.glob("*-cv.yaml"))
    },
}
# The sandbox's own operator and its controllers take the place of those of the dump.
OWN_NAMESPACES = {"openshift-cluster-version-operator", "openshift-update-status-controller"}
THEN = "2026-01-10T12:00:00Z"
VERSION = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version", "uid": "u-version"},
    "spec": {"channel": "stable-5.0"},
    "status": {"desired": {"version": "5.0.0"}, "history": []},
}
OWNED_BY_VERSION = [
    {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "uid": "u-version"}
]
GONE = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u-gone", "controller": True}]
GONE_CLUSTER_SCOPED = [{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "u-gone-ns"}]


@contextlib.asynccontextmanager
async def imported(dump: Path, data: Path) -> AsyncIterator[tuple[Cluster, tuple[str, ...], scenarios.Scenario]]:
    """A cluster made from the dump as the cluster process makes it, once the garbage collector has nothing left."""
    made = from_dump.scenario_of(load.read(dump), base=scenarios.BUNDLED / "common")
    built = scenario_releases.build(made, data, registry="127.0.0.1:1")
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(ApiServer(data / "api"))
        client = await stack.enter_async_context(Client(load_config(str(data / "api" / "controllers.kubeconfig"))))
        left_out = await setup.set_up(client, made, built, SystemClock())
        tasks = assembly.start_controllers(stack, client, assembly.Watched(), SystemClock())
        cluster = Cluster(client)
        await cluster.settled(ACCOUNTS)  # a dump's own policies may deny ConfigMaps
        yield cluster, left_out, made
        await cancel_tasks(tasks)


async def all_objects(client: Client) -> dict[tuple[str, str, str, str], JSON]:
    """Every object that the API server has."""
    lists = await asyncio.gather(
        *(client.send(calls.list_raw(resource, limit=0)) for resource in await discover_kinds(client))
    )
    found: dict[tuple[str, str, str, str], JSON] = {}
    for resource, answer in zip(await discover_kinds(client), lists, strict=True):
        for item in answer.items:
            obj = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
            found[identity(obj)] = obj
    return found


def written(folder: Path, *objects: JSON) -> Path:
    """A dump of these objects."""
    folder.mkdir()
    for number, obj in enumerate(objects):
        (folder / f"{number}.json").write_text(json.dumps(obj))
    return folder


def row(
    api_version: str, kind: str, name: str, namespace: str = "", *, owners: object = None, **content: object
) -> JSON:
    """An object of a dump, with a uid."""
    metadata = {"name": name, "uid": f"u-{name}", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, **({"ownerReferences": owners} if owners else {})},
        **content,
    }


CRD = row(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.org",
    owners=GONE_CLUSTER_SCOPED,
    spec={
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
)
API_SERVICE = row(
    "apiregistration.k8s.io/v1",
    "APIService",
    "v1.metrics.example.org",
    owners=GONE_CLUSTER_SCOPED,
    spec={"group": "metrics.example.org", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
          "insecureSkipTLSVerify": True, "service": {"namespace": "shop", "name": "metrics"}},
)  # fmt: skip
OBJECTS = [
    row("v1", "Namespace", "owned", owners=OWNED_BY_VERSION),
    row("v1", "ServiceAccount", "keep", "owned"),
    row("v1", "ServiceAccount", "default", "owned", imagePullSecrets=[{"name": "pull"}]),
    row("v1", "Namespace", "orphaned", owners=GONE_CLUSTER_SCOPED),
    row("v1", "ConfigMap", "kube-root-ca.crt", "orphaned", data={"ca.crt": "theirs"}),
    row("v1", "ConfigMap", "without-owner", "orphaned", owners=GONE),
    row("v1", "ConfigMap", "without-a-kind", "orphaned", owners=[{**GONE[0], "kind": "Nothing", "uid": "u-nothing"}]),
    {**(ending := row("v1", "Namespace", "ending")),
     "metadata": {**ending["metadata"], "deletionTimestamp": THEN}, "status": {"phase": "Terminating"}},
    row("v1", "ConfigMap", "remains", "ending"),
    {**(pod := row("v1", "Pod", "leaving", "ending", spec={"containers": [{"name": "c", "image": "i"}]})),
     "metadata": {**pod["metadata"], "deletionTimestamp": THEN, "deletionGracePeriodSeconds": 0},
     "status": {"phase": "Running"}},
    {**(claim := row("v1", "ConfigMap", "waits", "ending")),
     "metadata": {**claim["metadata"], "deletionTimestamp": THEN, "finalizers": ["foregroundDeletion"]}},
    CRD,
    row("example.com/v1", "Gadget", "one", "owned", owners=GONE),
    API_SERVICE,
    row("rbac.authorization.k8s.io/v1", "ClusterRole", "of-a-namespace",
        owners=[{"apiVersion": "v1", "kind": "Namespace", "name": "owned", "uid": "u-owned"}]),
]  # fmt: skip


@pytest.mark.parametrize("dump", first_and_rest([pytest.param(path, id=name) for name, path in DUMPS.items()], 0))
async def test_imports_every_object_of_a_dump(dump: Path, tmp_path: Path) -> None:
    """By kind as many as the dump has, each with its uid; objects that the sandbox replaces are counted."""
    async with imported(dump, tmp_path / "data") as (cluster, left_out, made):
        found = await all_objects(cluster.client)
    expected = {identity(obj): obj for obj in made.objects if identity(obj)[2] not in OWN_NAMESPACES}
    assert [object_name(obj) for key, obj in expected.items() if key not in found] == []
    counts = Counter((group, kind) for group, kind, _namespace, _name in expected)
    present = Counter((group, kind) for group, kind, _namespace, _name in found)
    assert {kind: present[kind] for kind in counts if present[kind] < counts[kind]} == {}
    replaced = [obj for obj in made.objects if identity(obj)[2] in OWN_NAMESPACES]
    assert bool(replaced) <= any("the sandbox's own operator" in line for line in left_out)


@pytest.mark.slow
async def test_keeps_objects_whose_owners_are_not_there(tmp_path: Path) -> None:
    """Owners that come later, that the dump lacks, or whose kind nobody serves; and deletions that had begun there."""
    dump = written(tmp_path / "dump", VERSION, *OBJECTS)
    async with imported(dump, tmp_path / "data") as (cluster, left_out, made):
        found = await all_objects(cluster.client)
    assert left_out == ()
    states = {
        object_name(obj): [found.get(identity(obj), {"metadata": {}})["metadata"].get(key) for key in KEPT]
        for obj in OBJECTS
    }
    assert states == {object_name(obj): [obj["metadata"].get(key) for key in KEPT] for obj in OBJECTS}
    assert found["", "ServiceAccount", "owned", "default"]["imagePullSecrets"] == [{"name": "pull"}]
    assert found["", "ConfigMap", "orphaned", "kube-root-ca.crt"]["data"] == {"ca.crt": "theirs"}
    assert found["", "Namespace", "", "ending"]["status"]["phase"] == "Terminating"
    (note,) = [note for note in made.notes if "does not have the owners" in note]
    assert "6 objects" in note
    assert "Namespace orphaned" in note


KEPT = ("uid", "ownerReferences", "deletionTimestamp")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["owned", "ending"])
async def test_a_user_deletes_an_imported_namespace(name: str, tmp_path: Path) -> None:
    """Also one that was being deleted in its cluster, with everything in it."""
    dump = written(tmp_path / "dump", VERSION, *OBJECTS)
    async with imported(dump, tmp_path / "data") as (cluster, _left_out, _made):
        await cluster.delete(name, resource=NAMESPACES)
        await cluster.until_gone(name, resource=NAMESPACES)


@pytest.mark.slow
async def test_a_user_deletes_an_imported_object_in_the_foreground(tmp_path: Path) -> None:
    """The garbage collector finishes a deletion that was asked for here."""
    dump = written(tmp_path / "dump", VERSION, *OBJECTS)
    async with imported(dump, tmp_path / "data") as (cluster, _left_out, _made):
        await cluster.delete("without-owner", "Foreground", namespace="orphaned")
        await cluster.until_gone("without-owner", namespace="orphaned")
