"""What a copy takes of a cluster and what it does not, what of the cluster is asked for it, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.release_folders import NAMESPACE, config_map, manifest
from tests.few_or_many import first_and_rest
from tests.rehearse.control.test_seeded_releases import (
    BINDING,
    DENY,
    POLICY,
    VALUES,
    WEBHOOK,
    changed,
    role,
    widget,
    widgets,
)
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, cluster_at_source, findings, rehearsed, wanted

from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.store import Entry, Store, StoreError
from runup.dump.completeness import CompleteKinds
from runup.rehearse.control import rehearsal
from runup.rehearse.control.cluster_copy import ClusterCopy, open_copy
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.real_server import ServerPrograms
from runup.rehearse.control.rehearsal import (
    cluster_version_of,
    kubernetes_version_of,
    rehearse,
    rehearse_kubernetes,
)
from runup.rehearse.decide.rehearsal_outcome import Action
from runup.release.decide.inclusion import CAPABILITY
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
ROOT = Path(__file__).parents[3]
SECRET: JSON = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "key",
        "namespace": "default",
        "labels": {"app": "shop"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data": "c2VzYW1l"}'},
    },
    "data": {"password": "c2VzYW1l"},
}


def without(source: ClusterSource, plural: str) -> ClusterSource:
    """The source as one of which that resource could not be listed."""
    whole = frozenset(key for key in source.collected.whole if key[1] != plural)
    kind = next(kind for kind, name in source.plurals.items() if name == plural)
    objects = [obj for obj in source.objects if obj["kind"] != kind[1]]
    return replace(source, objects=objects, collected=CompleteKinds(whole=whole))


@pytest.mark.parametrize(
    ("plural", "unknown"),
    first_and_rest(
        [
            pytest.param(
                "validatingadmissionpolicies",
                {"RehearsalIncomplete-validatingadmissionpolicies.admissionregistration.k8s.io"},
                id="policies",
            ),
            pytest.param("resourcequotas", {"RehearsalIncomplete-resourcequotas"}, id="quotas"),
            pytest.param("configmaps", {"RehearsalIncomplete-configmaps"}, id="what the release writes"),
            pytest.param("widgets", {"RehearsalIncomplete-widgets.example.org"}, id="stored objects"),
            pytest.param("nodes", set(), id="what no release writes"),
        ],
        2,
    ),
)
async def test_what_is_not_copied_is_not_known(plural: str, unknown: set[str], tmp_path: Path) -> None:
    """A kind that could not be listed makes Unknown what follows from it, and nothing else."""
    objects = (widgets(properties={"size": {"type": "integer"}}), VALUES)
    async with cluster_at_source(tmp_path, *objects) as cluster:
        source = without(await cluster.source(), plural)
    result = await rehearse(source, wanted(tmp_path, *objects), SystemClock())
    assert findings(result) == dict.fromkeys(unknown, "Unknown")


async def test_how_many_writes_are_not_known(tmp_path: Path) -> None:
    """Of a kind that could not be listed, every object of the release counts, once."""
    objects = (VALUES, changed(VALUES, "metadata.name", "others"))
    async with cluster_at_source(tmp_path, *objects) as cluster:
        source = without(await cluster.source(), "configmaps")
    result = await rehearse(source, wanted(tmp_path, *objects), SystemClock())
    assert [(each.kind, each.count) for each in result.unknown] == [("configmaps", 2)]


@pytest.mark.parametrize(
    ("field", "value", "asked"),
    first_and_rest(
        [
            pytest.param("failurePolicy", "Ignore", [("guard.example.org", True)], id="its failure is ignored"),
            pytest.param("failurePolicy", "Fail", [("guard.example.org", False)], id="its failure refuses the write"),
            pytest.param("rules", [], [], id="it has no rules"),
        ],
        1,
    ),
)
async def test_which_webhooks_are_asked(field: str, value: Any, asked: list[tuple[str, bool]], tmp_path: Path) -> None:
    """And whether one can refuse the write by failing, which is graver."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        await cluster.apply(changed(WEBHOOK, f"webhooks.0.{field}", value), manager="shop")
        result = await rehearsed(cluster, tmp_path, changed(VALUES, "data.mode", "slow"))
    assert [(each.name, each.ignores) for each in result.webhooks] == asked


async def test_objects_of_kinds_that_no_copy_serves(tmp_path: Path) -> None:
    """They are counted by kind: also of a kind that is known otherwise, in namespaces or not."""
    async with cluster_at_source(tmp_path) as cluster:
        source = await cluster.source()
    for kind, name, metadata in (
        ("Node", "a", {"namespace": "x"}),
        ("Node", "b", {"namespace": "x"}),
        ("Pod", "c", {}),
    ):
        source.objects.append({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}})
    source.objects.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}})
    async with open_copy(source, SystemClock(), account=("default", "default")) as made:
        left_out = [(each.kind, each.count) for each in made.left_out if "does not serve" in each.why]
    assert left_out == [("Deployment.apps", 1), ("Node", 2), ("Pod", 1)]


async def test_a_cluster_version_that_cannot_be_read(tmp_path: Path) -> None:
    """What the cluster gets hangs on it; that there is none is another cluster."""
    async with cluster_at_source(tmp_path) as cluster:
        source = await cluster.source()
    bad = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": 7}
    with pytest.raises(Terminal, match=r"^ClusterVersion version of .* cannot be read: .* not known what the cluster "):
        cluster_version_of(replace(source, objects=[bad]))
    assert cluster_version_of(replace(source, objects=[])) is None


async def test_a_copy_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, and says what takes less time."""
    monkeypatch.setattr(rehearsal, "REST_LIMIT_S", 0.0)
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        with pytest.raises(Terminal) as raised:
            await rehearsed(cluster, tmp_path, VALUES, limit_s=0.0)
    assert raised.value.message == (
        "copying the cluster and looking through it took more than 0 s; rehearse on a dump of fewer namespaces"
    )


QUOTAS = changed(changed(widgets(), "spec.group", "quota.openshift.io"), "metadata.name", "widgets.quota.openshift.io")


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        pytest.param(True, set(), id="the cluster is known not to have it"),
        pytest.param(
            False,
            {"customresourcedefinitions.apiextensions.k8s.io", "widgets.quota.openshift.io"},
            id="definitions could not be listed",
        ),
    ],
)
async def test_a_definition_that_the_release_brings(known: bool, unknown: set[str], tmp_path: Path) -> None:
    """A new definition of a group that an aggregated API server may serve, too: objects are missed only if it may be
    there already.
    """
    async with cluster_at_source(tmp_path) as cluster:
        source = await cluster.source()
    source = source if known else without(source, "customresourcedefinitions")
    result = await rehearse(source, wanted(tmp_path, QUOTAS), SystemClock())
    incomplete = {name for name in findings(result) if name.startswith("RehearsalIncomplete-")}
    assert incomplete == {f"RehearsalIncomplete-{each}" for each in unknown}


@pytest.mark.slow
async def test_objects_without_managed_fields_may_be_anybodys(tmp_path: Path) -> None:
    """Whose values are overwritten is not known about an object that came without managedFields."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    for obj in source.objects:
        obj["metadata"].pop("managedFields", None)
    result = await rehearse(source, wanted(tmp_path, changed(VALUES, "data.mode", "slow")), SystemClock())
    assert findings(result) == {"RehearsalOwnersUnknown": "Unknown"}


@pytest.mark.parametrize(
    ("profile", "created"),
    [
        pytest.param(None, "of-openshift", id="an operator that does not say"),
        pytest.param("kubernetes", "of-kubernetes", id="one that does"),
    ],
)
async def test_manifests_are_those_of_the_operators_profile(profile: str | None, created: str, tmp_path: Path) -> None:
    """As the operator would choose them that is there now."""
    env = [{"name": "CLUSTER_PROFILE", "value": profile}] if profile else []
    container = {"name": "cluster-version-operator", "image": "i", "env": env}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cluster-version-operator", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    profiles = {"of-openshift": "self-managed-high-availability", "of-kubernetes": "kubernetes"}
    maps = [config_map(name, {}) for name in profiles]
    for obj, its in zip(maps, profiles.values(), strict=True):
        obj["metadata"]["annotations"] = {f"include.release.openshift.io/{its}": "true"}
    async with cluster_at_source(tmp_path) as cluster:
        await cluster.apply(deployment)
        source = await cluster.source()
    release = replace(wanted(tmp_path, *maps), account=("default", "default"))
    changes = (await rehearse(source, release, SystemClock())).changes
    assert {each.identity.name for each in changes if each.identity.kind == "ConfigMap"} == {created}


async def test_what_is_not_tried_in_time_is_told(tmp_path: Path) -> None:
    """A rehearsal that ends early says how much it has not tried."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        result = await rehearsed(cluster, tmp_path, VALUES, limit_s=-1.0)
    assert (findings(result), result.tried) == ({"RehearsalEndedEarly": "Unknown"}, 0)


async def test_the_contents_of_secrets_are_not_asked_for(tmp_path: Path) -> None:
    """Of a Secret there are name, labels and owners; neither its data nor the annotation that repeats it."""
    async with cluster_at_source(tmp_path) as cluster:
        await cluster.apply(SECRET, manager="shop")
        source = await cluster.source()
        async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
            (stored,) = [obj for obj in copy.all("", "Secret") if obj["metadata"]["name"] == "key"]
    assert "c2VzYW1l" not in json.dumps(source.objects)
    assert (stored["metadata"]["labels"], stored.get("data")) == ({"app": "shop"}, None)


async def test_what_a_copy_has_of_itself(tmp_path: Path) -> None:
    """Nothing before it is filled; then what its server made at the start, and nothing of the cluster."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
        async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
            unfilled = ClusterCopy(copy.server, copy.client, tmp_path)
            (key,) = [
                entry.key for entry in copy.stored_entries("", "ConfigMap", "configmaps") if entry.name == "values"
            ]
    assert unfilled.initial == frozenset()
    assert ("namespaces", "kube-system") in copy.initial
    assert key not in {key for _, key in copy.initial}


VERSIONS = {"1.34.2": "1.34.2", "1.34": "1.34.0", "v1.34.2+k3s1": "1.34.2"}


@pytest.mark.parametrize(("version", "expected"), VERSIONS.items())
def test_the_kubernetes_of_a_cluster(version: str, expected: str) -> None:
    """It is read as dumps write it, which may leave the patch version out."""
    source = ClusterSource(name="a dump", objects=[], plurals={}, collected=CompleteKinds(), kubernetes=version)
    assert str(kubernetes_version_of(source)) == expected


async def test_a_cluster_of_no_known_kubernetes() -> None:
    """That is reported before a server is started, or even looked for."""
    source = ClusterSource(name="a dump", objects=[], plurals={}, collected=CompleteKinds(), kubernetes="newest")
    programs = ServerPrograms(Path("/nowhere/kube-apiserver"), Path("/nowhere/etcd"), "1.34.4")
    with pytest.raises(Terminal, match="the version 'newest' of a dump is not one of Kubernetes"):
        await rehearse_kubernetes(source, programs, SystemClock(), target="1.35")


async def test_the_cluster_is_only_read(tmp_path: Path) -> None:
    """The audit log of the cluster has gets and lists of whoever rehearses, as many as the rehearsal says."""
    agents: list[tuple[str, str]] = []
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
        await rehearse(source, wanted(tmp_path, changed(VALUES, "data.mode", "slow")), SystemClock())
        value = await cluster.client.send(calls.get_raw(await cluster.resource(VALUES), "values", NAMESPACE))
    for line in (tmp_path / "cluster" / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event.get("userAgent", "").startswith("runup-rehearse"):
            agents.append((event["verb"], event["requestURI"]))
    assert {verb for verb, _ in agents} <= {"get", "list"}
    assert len(agents) == source.requests
    assert value["data"]["mode"] == "fast"


async def test_objects_are_copied_as_they_are(tmp_path: Path) -> None:
    """An object keeps its uid, its managed fields and even a fault that its definition has since forbidden."""
    loose, strict = widgets(properties={}), widgets(properties={"size": {"type": "integer"}}, required=["size"])
    async with cluster_at_source(tmp_path, loose) as cluster:
        await cluster.apply(widget(), manager="shop")
        await cluster.apply(strict)
        source = await cluster.source()
        async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
            (stored,) = copy.all("example.org", "Widget")
        (original,) = [obj for obj in source.objects if obj["kind"] == "Widget"]
    assert {key: stored["metadata"][key] for key in ("uid", "managedFields")} == {
        key: original["metadata"][key] for key in ("uid", "managedFields")
    }
    assert stored["spec"] == {}


async def test_a_copy_has_an_object_as_a_server_reads_it(tmp_path: Path) -> None:
    """Whoever wrote the dump by hand: a quantity is text, and null is a text without a character (Go's codec)."""
    limits = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1}}}]}
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    for kind, body in (("Pod", {"spec": limits}), ("ConfigMap", {"data": {"a": None}})):
        source.objects.append({"apiVersion": "v1", "kind": kind, "metadata": {"name": "m", "namespace": "x"}, **body})
    async with open_copy(source, SystemClock(), account=("default", "default")) as made:
        pod, texts = (made.get(Identity("", kind, "x", "m")) for kind in ("Pod", "ConfigMap"))
    assert pod is not None and pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert texts is not None and texts["data"] == {"a": ""}
    # A default of every server: API reference, PodSpec.
    assert pod["spec"]["restartPolicy"] == "Always"


@pytest.mark.slow
async def test_what_a_copy_adds_is_the_copys_alone(tmp_path: Path) -> None:
    """The source stays as it was read, also where an object has a field that the copy does not know."""
    metadata = {"name": "newer", "namespace": NAMESPACE}
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    newer = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "unheardOf": {}}
    source.objects.append(newer)
    before = deepcopy(newer)
    async with open_copy(source, SystemClock(), account=("default", "default")) as made:
        stored = made.get(Identity("", "ConfigMap", NAMESPACE, "newer"))
    assert stored is not None and stored["metadata"]["uid"]
    assert newer == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    first_and_rest(
        [
            pytest.param(7, id="a number for a spec"),
            pytest.param({"containers": "none"}, id="a word for a list"),
            pytest.param({"containers": [None]}, id="null in a list"),
        ],
        1,
    ),
)
async def test_an_object_of_any_form_costs_itself_alone(spec: Any, tmp_path: Path) -> None:
    """Whatever somebody else's object is like, it is copied or named, and the others are copied."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    source.objects.insert(
        0, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}, "spec": spec}
    )
    async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
        there = copy.get(Identity("", "Pod", "x", "p")) is not None
        shown = "Pod p" in [each.kind for each in copy.left_out]
        assert copy.get(Identity("", "ConfigMap", NAMESPACE, "values")) is not None
    assert there is not shown


async def test_a_definition_that_the_dump_lacks(tmp_path: Path) -> None:
    """Objects whose definition is not there are copied under one that takes anything, and tried under the target's."""
    made = widgets(properties={"size": {"type": "integer"}})
    async with cluster_at_source(tmp_path, made) as cluster:
        await cluster.apply(widget(size=3), manager="shop")
        source = without(await cluster.source(), "customresourcedefinitions")
    source.objects.append(
        {
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "metadata": {"name": "old", "namespace": NAMESPACE},
            "spec": {"colour": "red"},
        }
    )
    result = await rehearse(source, wanted(tmp_path, made), SystemClock())
    (outcome,) = [each for each in result.definitions if each.name == "widgets.example.org"]
    assert [(each.identity.name, each.pruned) for each in outcome.objects] == [("old", ("spec.colour",))]


@pytest.mark.slow
async def test_a_stand_in_for_a_definition_is_not_compared(tmp_path: Path) -> None:
    """What the release changes of a definition that could not be copied is not known."""
    made = widgets(properties={"size": {"type": "integer"}})
    async with cluster_at_source(tmp_path, made) as cluster:
        await cluster.apply(widget(size=3), manager="shop")
        source = await cluster.source()
    objects = [
        changed(obj, "spec.versions.0", "v1") if obj["metadata"]["name"] == "widgets.example.org" else obj
        for obj in source.objects
    ]
    result = await rehearse(replace(source, objects=objects), wanted(tmp_path, made), SystemClock())
    (change,) = [each for each in result.changes if each.identity.name == "widgets.example.org"]
    assert (change.action, change.known, change.fields) == (Action.CREATE, False, ())
    kind = "customresourcedefinitions.apiextensions.k8s.io"
    assert findings(result)[f"RehearsalIncomplete-{kind}"] == "Unknown"


@pytest.mark.slow
async def test_a_definition_of_the_release_that_nobody_can_read(tmp_path: Path) -> None:
    """A definition whose version is a word is refused, and the rest is rehearsed."""
    made = widgets(properties={"size": {"type": "integer"}})
    async with cluster_at_source(tmp_path, made) as cluster:
        source = await cluster.source()
    result = await rehearse(source, wanted(tmp_path, changed(made, "spec.versions.0", "v1"), VALUES), SystemClock())
    assert [each.identity.name for each in result.refusals] == ["widgets.example.org"]
    assert "values" in [each.identity.name for each in result.changes if each.action is Action.CREATE]


@pytest.mark.slow
async def test_the_plan_names_who_set_what_is_lost(tmp_path: Path) -> None:
    """The fields of an object that change, with their values and the manager whose value is lost."""
    values = config_map("values", {"mode": "fast", "size": "1"})
    async with cluster_at_source(tmp_path, values) as cluster:
        await cluster.edit(values, {"data": {"mode": "slow"}}, "argocd")
        result = await rehearsed(cluster, tmp_path, changed(values, "data.size", "2"))
    (change,) = [each for each in result.changes if each.identity.name == "values"]
    assert change.action is Action.UPDATE
    assert [(f.path, f.before, f.after, f.others) for f in change.fields] == [
        ("data.mode", "slow", "fast", ("argocd",)),
        ("data.size", "1", "2", ()),
    ]


async def test_the_folder_goes_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle leaves nothing behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    with pytest.raises(RuntimeError, match="in the middle"):
        async with open_copy(source, SystemClock(), account=("default", "default")):
            assert len(list(scratch.iterdir())) == 1
            raise RuntimeError("in the middle")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "raised", "shown"),
    first_and_rest(
        [
            pytest.param(MemoryError(), MemoryError, "Internal error occurred: MemoryError", id="no memory"),
            pytest.param(RuntimeError("can't start new thread"), MemoryError, "new thread", id="no memory for a stack"),
            pytest.param(
                StoreError("disk full"), Terminal, "disk full; give the folder of temporary files", id="no room"
            ),
        ],
        1,
    ),
)
async def test_a_copy_that_fails_is_no_refusal(
    fault: Exception, raised: type[Exception], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the copy's API server cannot do says nothing of the release."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    put = Store.put

    async def failing(store: Store, storage: str, namespace: str, name: str, *words: Any, **more: Any) -> Entry:
        if name == "written":
            raise fault
        return await put(store, storage, namespace, name, *words, **more)

    monkeypatch.setattr(Store, "put", failing)
    release = wanted(tmp_path, VALUES, config_map("written", {}))
    with pytest.raises(raised, match=shown):
        await rehearse(source, release, SystemClock())


@pytest.mark.parametrize(
    ("kind", "name", "field"),
    [
        pytest.param("ConfigMap", "written", "data", id="at an object"),
        pytest.param("ClusterOperator", "b", "status", id="at the status of an object"),
    ],
)
async def test_a_copy_that_fails_at_one_object(
    kind: str, name: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of the copy's server costs that object alone, of which nothing is known then."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    put = Store.put

    async def failing(store: Store, storage: str, namespace: str, name_: str, obj: JSON, **more: Any) -> Entry:
        if (obj["kind"], name_) == (kind, name) and obj.get(field):
            raise KeyError("spec")
        return await put(store, storage, namespace, name_, obj, **more)

    monkeypatch.setattr(Store, "put", failing)
    release = wanted(tmp_path, changed(VALUES, "data.mode", "slow"), config_map("written", {"a": "b"}))
    result = await rehearse(source, release, SystemClock())
    shown = findings(result)
    assert list(shown.values()) == ["Unknown"], shown
    assert next(iter(shown)).startswith(f"RehearsalNotTried-{kind}-")
    (refusal,) = result.refusals
    assert refusal.message.startswith("the copy failed: Internal error occurred: ")
    assert Action.UPDATE in {each.action for each in result.changes if each.identity.name == "values"}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_folder_goes_by_a_signal(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """A command that is ended in the middle of a rehearsal removes the copy, and says so by its exit code."""
    waiting = (
        "import asyncio, sys\n"
        "from runup.rehearse.control import rehearsal_run\n"
        "async def go(self):\n"
        "    print('applying', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "rehearsal_run.ReleaseRun.run_all = go\n"
        "from runup.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["rehearse", "--dump", "examples/rehearsal/cluster", "--release-dir", "examples/rehearsal/release"]
    process = subprocess.Popen(
        [sys.executable, "-c", waiting, *words],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "applying\n"
        held = [path.name for path in tmp_path.iterdir()]
        process.send_signal(number)
        assert process.wait(90) == code
    assert (len(held), list(tmp_path.iterdir())) == (1, [])


_LIMITED = """
import resource, sys
from runup.cli.main import main
limit = int(sys.argv[1]) * 1024
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kib", "codes"),
    [(20, {1}), (180, {1, 2}), (300, {1, 2}), (380, {1, 2}), (420, {1, 2}), (100_000, {2})],
)
def test_a_disk_that_is_full(kib: int, codes: set[int], tmp_path: Path) -> None:
    """Wherever the copy has no room for the next object: an error of the copy, and no finding about the release."""
    words = (
        "rehearse",
        "--dump",
        "examples/rehearsal/cluster",
        "--release-dir",
        "examples/rehearsal/release",
        "-o",
        "json",
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", _LIMITED, str(kib), *words],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if ran.returncode == 1:
        assert "error: the copy of the cluster " in ran.stderr
        assert "Traceback" not in ran.stderr
    else:
        assert len(json.loads(ran.stdout)["risks"]) == 8
    assert ran.returncode in codes
    assert list(tmp_path.iterdir()) == []


async def test_an_operator_whose_definition_the_dump_lacks(tmp_path: Path) -> None:
    """A dump of ClusterOperators without their definition refuses nothing: what is invented takes a status."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = without(await cluster.source(), "customresourcedefinitions")
    source.objects.append(
        {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "dns"}, "status": {}}
    )
    result = await rehearse(source, wanted(tmp_path, VALUES), SystemClock())
    assert (result.refusals, result.waits) == ((), ())


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(True, Action.UPDATE, id="an object that the cluster has"),
        pytest.param(False, Action.NOTHING, id="a new one"),
    ],
)
async def test_capabilities_that_the_update_turns_on(there: bool, expected: Action, tmp_path: Path) -> None:
    """A release that moves an object of the cluster into a capability turns it on, for that object's sake alone."""
    moved = changed(VALUES, "metadata.annotations", {**VALUES["metadata"]["annotations"], CAPABILITY: "Console"})
    async with cluster_at_source(tmp_path, *([VALUES] if there else [])) as cluster:
        await cluster.edit(CLUSTER_VERSION, {"spec": {"capabilities": {"baselineCapabilitySet": "None"}}})
        result = await rehearsed(cluster, tmp_path, moved)
    assert [each.action for each in result.changes if each.identity.name == "values"] == [expected] * there


@pytest.mark.slow
async def test_kinds_of_many_objects(tmp_path: Path) -> None:
    """A kind that takes several pages is read in full, and copied as it is."""
    async with cluster_at_source(tmp_path) as cluster:
        for number in range(501):
            await cluster.apply(changed(VALUES, "metadata.name", f"values-{number}"), manager="shop")
        source = await cluster.source()
        async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
            last = copy.get(Identity("", "ConfigMap", NAMESPACE, "values-500"))
        original = await cluster.client.send(calls.get_raw(await cluster.resource(VALUES), "values-500", NAMESPACE))
    assert last is not None
    del last["metadata"]["resourceVersion"], original["metadata"]["resourceVersion"]
    assert last == original


async def test_what_comes_after_a_refusal_is_counted(tmp_path: Path) -> None:
    """An operator would not reach the objects of later run levels, and those after it in its own."""
    policy = changed(POLICY, "spec.validations.0.expression", "object.metadata.name != 'values'")
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        await cluster.apply(policy, DENY, manager="shop")
        after = [changed(VALUES, "metadata.name", f"later-{number}") for number in range(2)]
        result = await rehearsed(cluster, tmp_path, changed(VALUES, "data.mode", "slow"), *after)
    # The namespace comes before; two later ConfigMaps and the operator b come after.
    assert [(each.identity.name, each.index, each.behind) for each in result.refusals] == [("values", 2, 3)]
    assert [each.action for each in result.changes if each.identity.name.startswith("later")] == [Action.CREATE] * 2


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    first_and_rest(
        [
            pytest.param("ClusterRoleBinding", "shop", "subjects", "x", id="subjects that are a word"),
            pytest.param("ClusterRole", "example-viewer", "rules.0.resources.0", 1.5, id="a resource that is a number"),
            pytest.param("ValidatingWebhookConfiguration", "guard", "webhooks.0.objectSelector", 7, id="a selector"),
            pytest.param("ValidatingAdmissionPolicy", "owned", "spec.validations", 1.5, id="validations"),
            pytest.param("CustomResourceDefinition", "widgets.example.org", "spec.group", None, id="no group"),
            pytest.param(
                "CustomResourceDefinition", "widgets.example.org", "status.conditions.1", [], id="a condition"
            ),
            pytest.param("Namespace", NAMESPACE, "status", "Active", id="a namespace's status"),
            pytest.param("Widget", "mine", "metadata.managedFields", 3, id="managed fields"),
        ],
        2,
    ),
)
async def test_a_damaged_object_ends_nothing(kind: str, name: str, path: str, value: Any, tmp_path: Path) -> None:
    """An object that no server can have held is named, and its kind is not known in full."""
    release = [widgets(properties={}), role("get"), VALUES]
    async with cluster_at_source(tmp_path, *release) as cluster:
        await cluster.apply(widget(), BINDING, POLICY, DENY, WEBHOOK, manager="shop")
        source = await cluster.source()
    objects = [
        changed(obj, path, value) if (obj["kind"], obj["metadata"]["name"]) == (kind, name) else obj
        for obj in source.objects
    ]
    result = await rehearse(replace(source, objects=objects), wanted(tmp_path, *release), SystemClock())
    assert f"{kind} {name}" in [each.kind for each in result.account.left_out]


async def test_workloads_whose_end_an_operator_waits_for(tmp_path: Path) -> None:
    """Nobody rolls them out on a copy; they count as done, so that what comes after them is tried."""
    pod = {"containers": [{"name": "c", "image": "registry.example/agent:1"}]}
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    agent = manifest(
        "apps/v1", "DaemonSet", "agent", NAMESPACE, spec={"selector": {"matchLabels": labels}, "template": template}
    )
    once = manifest(
        "batch/v1", "Job", "once", NAMESPACE, spec={"template": {"spec": {**pod, "restartPolicy": "Never"}}}
    )
    async with cluster_at_source(tmp_path) as cluster:
        result = await rehearsed(cluster, tmp_path, agent, once, VALUES)
    assert (result.tried, result.refusals, result.waits) == (result.tasks, (), ())
    created = {each.identity.name for each in result.changes if each.action is Action.CREATE}
    assert {"agent", "once", "values"} <= created


async def test_an_object_is_read_as_a_server_reads_it(tmp_path: Path) -> None:
    """A field of a built-in kind that is null is no field; one that only a newer server knows is kept."""
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        source = await cluster.source()
    new, null = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}, **fields}
        for name, fields in (("new", {"binaryData": None, "later": "1"}), ("null", {"binaryData": None}))
    )
    source.objects.extend([new, null])
    async with open_copy(source, SystemClock(), account=("default", "default")) as copy:
        kept = {name: copy.get(Identity("", "ConfigMap", "x", name)) or {} for name in ("new", "null")}
    assert ("binaryData" in kept["null"], kept["new"].get("later")) == (False, "1")
