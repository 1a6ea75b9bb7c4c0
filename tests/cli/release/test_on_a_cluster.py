"""`runup release diff --live`: what becomes of each object, by what the cluster has of it, serves and allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import Ran
from tests.cli.release.typed import ANNOTATIONS, JSON, config_map, plain, release, run
from tests.cli.rights import LOOKER, let_looker_read
from tests.documents import document
from tests.servers import CRD, CRDS, Server, eventually, serve

from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Infrastructure
from runup.applying.control import dry_run
from runup.applying.decide.rendering import LABEL, Proxy
from runup.cli.release.shared import access
from runup.process import tls_profile as tls
from runup.release.control import release_location
from runup.release.control.live_cluster import release_image_of

# One server for all of them, and not one for each worker.
pytestmark = pytest.mark.xdist_group("release-on-a-cluster")
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
PROXIES = Resource(group="config.openshift.io", version="v1", kind="Proxy", plural="proxies", namespaced=False)
INFRASTRUCTURES = resource_of(Infrastructure)
API_SERVERS = Resource(
    group="config.openshift.io", version="v1", kind="APIServer", plural="apiservers", namespaced=False
)
OPERATORS = resource_of(ClusterOperator)
DEPLOYMENTS = resource_of(Deployment)
CONFIG = "config.openshift.io/v1"
GROUP = "tools.example.com"
DELETED = {"release.openshift.io/delete": "true"}
CREATE_ONLY = "release.openshift.io/create-only"
OWN = "cluster-version-operator"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A cluster with one ConfigMap, one namespace, one operator, a proxy, and the operator's own Deployment."""
    with contextmanager(serve)(tmp_path_factory.mktemp("there"), "CustomNoUpgrade") as server:
        kinds = ("00_cluster-version-operator_01_clusteroperators", "10_config-operator_01_proxies")
        for name in (f"0000_{kind}" for kind in (*kinds, "10_config-operator_01_infrastructures")):
            server.client.send(calls.create(CRD, document(CRDS / f"{name}.crd.yaml")))
        for resource in (OPERATORS, PROXIES, INFRASTRUCTURES):
            eventually(lambda resource=resource: _served(server, resource), f"{resource.kind} is served")
        image = {"version": "5.0.0", "image": "registry.invalid/release@sha256:" + "50" * 32}
        owner = server.set_cluster_version(status={"desired": image})["metadata"]["uid"]
        server.client.send(calls.create(NAMESPACES, plain("Namespace", "apart")))
        server.client.send(calls.create(NAMESPACES, plain("Namespace", "openshift-cluster-version")))
        server.client.send(calls.create(OPERATORS, operator()))
        proxy = server.client.send(calls.create(PROXIES, plain("Proxy", "cluster", "config.openshift.io/v1", spec={})))
        status = {"httpProxy": "http://proxy:1", "noProxy": ".svc"}
        server.client.send(calls.replace(PROXIES, {**proxy, "status": status}, subresource="status"))
        for resource, obj in ((CONFIG_MAPS, config_map("a", x="1")), (DEPLOYMENTS, deployment("d"))):
            obj["metadata"]["labels"] = {LABEL: "of-the-release-before"}
            obj["metadata"]["ownerReferences"] = [{**OWNER, "uid": owner}]
            server.client.send(calls.apply(resource, obj, field_manager=OWN, force=True))
        theirs = {"metadata": {"labels": {"theirs": "kept"}}}
        server.client.send(calls.merge_patch(CONFIG_MAPS, "a", theirs, "default"))
        yield server


OWNER = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "controller": True}


def _served(server: Server, resource: Resource) -> bool:
    try:
        server.client.send(calls.list_raw(resource))
    except NotFound:
        return False
    return True


def operator() -> JSON:
    """The ClusterOperator of a component."""
    return plain("ClusterOperator", "tool", "config.openshift.io/v1", spec={})


def deployment(name: str, **annotations: str) -> JSON:
    """A Deployment of one container `c`."""
    pod = {"containers": [{"name": "c", "image": "registry.example/c:1"}]}
    metadata = {"name": name, "namespace": "default", "annotations": {**ANNOTATIONS, **annotations}}
    spec = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def definition(*versions: str, unserved: str = "", **annotations: str) -> JSON:
    """The kind Tool in these versions, v1 if none is named; the first is stored, and `unserved` is not served."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Tool", "plural": "tools", "singular": "tool", "listKind": "ToolList"}
    made = [
        {"name": name, "served": name != unserved, "storage": not number, "schema": {"openAPIV3Schema": schema}}
        for number, name in enumerate(versions or ("v1",))
    ]
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": made}
    found = plain("CustomResourceDefinition", f"tools.{GROUP}", "apiextensions.k8s.io/v1", spec=spec)
    found["metadata"] = {**found["metadata"], "annotations": {**ANNOTATIONS, **annotations}}
    return found


def deleted(obj: JSON) -> JSON:
    """The manifest that takes it away."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**ANNOTATIONS, **DELETED}}}


TOOL = plain("Tool", "one", f"{GROUP}/v1")
NEWER_TOOL = plain("Tool", "one", f"{GROUP}/v2")
NEWER_OTHER = plain("Tool", "two", f"{GROUP}/v2")
TOOLS = Resource(group=GROUP, version="v1", kind="Tool", plural="tools", namespaced=False)
NEW_SPACE = plain("Namespace", "new")


@pytest.mark.parametrize(
    ("brought", "state", "why"),
    [
        pytest.param([config_map("a", x="1")], "same", "", id="as it is, but for the mark of what was applied last"),
        pytest.param([config_map("a", x="2")], "changed", "", id="another value"),
        pytest.param([config_map("b", x="1")], "created", "", id="not there yet"),
        pytest.param([deleted(config_map("a"))], "deleted", "", id="taken away"),
        pytest.param([deleted(config_map("b"))], "same", "", id="taken away, and not there"),
        pytest.param([deleted(TOOL)], "same", "the cluster has no such kind", id="taken away, of a kind nobody has"),
        pytest.param([TOOL, definition()], "created", "its kind comes with the release", id="of a kind that comes"),
        pytest.param(
            [TOOL, definition(**DELETED)],
            "refused",
            f"the server knows no Tool of {GROUP}/v1",
            id="of a kind that goes",
        ),
        pytest.param([TOOL], "refused", f"the server knows no Tool of {GROUP}/v1", id="of a kind that nobody knows"),
        pytest.param(
            [NEWER_TOOL, definition()],
            "refused",
            f"the server knows no Tool of {GROUP}/v2, and the release's definition serves {GROUP}/v1",
            id="in a version that the kind that comes does not have",
        ),
        pytest.param(
            [NEWER_TOOL, definition("v1", "v2", unserved="v2")],
            "refused",
            f"the server knows no Tool of {GROUP}/v2, and the release's definition serves {GROUP}/v1",
            id="in a version that the kind that comes does not serve",
        ),
        pytest.param(
            [NEWER_TOOL, definition("v2", unserved="v2")],
            "refused",
            f"the server knows no Tool of {GROUP}/v2, and the release's definition serves none",
            id="of a kind that comes and is not served",
        ),
        pytest.param(
            [NEWER_TOOL, definition("v1", "v2")],
            "created",
            "its kind comes with the release",
            id="in the second version of a kind that comes",
        ),
        pytest.param(
            [plain("Tool", "one", "v1")], "refused", "the server knows no Tool of v1", id="of a group that has no such"
        ),
        pytest.param(
            [plain("Daemon", "one", "apps/v1")],
            "refused",
            "the server knows no Daemon of apps/v1",
            id="of a kind with whose name another begins",
        ),
        pytest.param(
            [config_map("a", annotations={CREATE_ONLY: "True"}, x="2")],
            "same",
            "it is created where it is absent, and left alone otherwise",
            id="created once, and there",
        ),
        pytest.param([config_map("b", annotations={CREATE_ONLY: "true"})], "created", "", id="created once, not there"),
        pytest.param([config_map("a", annotations={CREATE_ONLY: "no"}, x="1")], "changed", "", id="created always"),
        pytest.param([operator()], "same", "its operator keeps it", id="an operator's own status"),
        pytest.param(
            [plain("ClusterOperator", "new", "config.openshift.io/v1", spec={})], "created", "", id="a new operator"
        ),
        pytest.param(
            [config_map("b", "new"), NEW_SPACE], "created", "its namespace comes with the release", id="in a new one"
        ),
        pytest.param(
            [config_map("b", "apart"), plain("Namespace", "apart")], "created", "", id="in a namespace that is there"
        ),
        pytest.param(
            [config_map("b", "new"), deleted(NEW_SPACE)], "unknown", 'namespaces "new" not found', id="in one that goes"
        ),
        pytest.param(
            [plain("ConfigMap", "a")],
            "refused",
            "ConfigMap a names no namespace, which its kind needs",
            id="of no namespace, where the kind has one",
        ),
        pytest.param([config_map("b", "new")], "unknown", 'namespaces "new" not found', id="in one that nobody makes"),
        pytest.param([{**config_map("a"), "data": {"x": 1}}], "refused", ".data.x", id="what the server does not take"),
        pytest.param(
            [deployment("d", **{"config.openshift.io/inject-proxy": "other"})],
            "refused",
            "names container 'other', which it does not have",
            id="what nobody can make",
        ),
    ],
)
def test_what_becomes_of_an_object(there: Server, tmp_path: Path, brought: list[JSON], state: str, why: str) -> None:
    """The first of what the release brings; afterwards the cluster is as before."""
    before = _everything(there)
    shown = _live(there, release(tmp_path / "to", *brought))["objects"][0]
    assert (shown["state"], why in shown["why"], bool(shown["why"])) == (state, True, bool(why)), shown
    assert bool(shown["changes"]) == (state == "changed")
    assert shown["file"] == "release-manifests/0000_50_a_00.yaml"
    assert _everything(there) == before


@pytest.fixture
def older(there: Server) -> Iterator[Server]:
    """The cluster with the kind Tool in its first version, and one of them."""
    there.client.send(calls.create(CRD, definition()))
    try:
        eventually(lambda: _served(there, TOOLS), "Tool is served")
        there.client.send(calls.create(TOOLS, TOOL))
        yield there
    finally:
        there.client.send(calls.delete(CRD, f"tools.{GROUP}"))
        eventually(lambda: not _served(there, TOOLS), "Tool is not served any more")


BOTH_VERSIONS = definition("v1", "v2")
ONCE = {**ANNOTATIONS, CREATE_ONLY: "true"}
NEWER_CREATED_ONCE = {**NEWER_TOOL, "metadata": {"name": "one", "annotations": ONCE}}


@pytest.mark.parametrize(
    ("brought", "state", "why"),
    [
        pytest.param(
            [NEWER_TOOL, BOTH_VERSIONS],
            "unknown",
            f"it is there, and nothing can be tried before the release's definition serves Tool of {GROUP}/v2",
            id="there: it was told as created",
        ),
        pytest.param(
            [NEWER_OTHER, BOTH_VERSIONS], "created", "the version of its kind comes with the release", id="not there"
        ),
        pytest.param(
            [NEWER_CREATED_ONCE, BOTH_VERSIONS],
            "same",
            "it is created where it is absent, and left alone otherwise",
            id="there, and created once",
        ),
        pytest.param([deleted(NEWER_TOOL), BOTH_VERSIONS], "deleted", "", id="taken away"),
        pytest.param([deleted(NEWER_OTHER), BOTH_VERSIONS], "same", "", id="taken away, and not there"),
        pytest.param(
            [deleted(NEWER_TOOL)],
            "left",
            f"the server knows no Tool of {GROUP}/v2, so that nothing deletes it",
            id="taken away in a version that nobody serves",
        ),
        pytest.param([deleted(NEWER_OTHER)], "same", "", id="taken away in such a version, and not there"),
        pytest.param(
            [NEWER_TOOL],
            "refused",
            f"the server knows no Tool of {GROUP}/v2",
            id="in a version that no definition comes for",
        ),
        pytest.param(
            [NEWER_TOOL, definition()],
            "refused",
            f"the server knows no Tool of {GROUP}/v2, and the release's definition serves {GROUP}/v1",
            id="in a version that its definition does not serve",
        ),
        pytest.param([TOOL, BOTH_VERSIONS], "changed", "", id="in the version that is there, by a new owner"),
        pytest.param(
            [plain("Toolbox", "one", f"{GROUP}/v2"), BOTH_VERSIONS],
            "refused",
            f"the server knows no Toolbox of {GROUP}/v2",
            id="another kind of that group",
        ),
    ],
)
def test_what_becomes_of_an_object_whose_kind_gets_a_version(
    older: Server, tmp_path: Path, brought: list[JSON], state: str, why: str
) -> None:
    """The server serves the kind in another version than that of the first manifest."""
    shown = _live(older, release(tmp_path / "to", *brought))["objects"][0]
    assert (shown["state"], shown["why"]) == (state, why)
    assert older.client.send(calls.get_raw(TOOLS, "one"))["metadata"]["generation"] == 1


def test_what_the_release_lacks_is_found_in_another_version(older: Server, tmp_path: Path) -> None:
    """The running release has it in a version that the server serves no more; it was reported as not there."""
    running = release(tmp_path / "from", NEWER_TOOL, NEWER_OTHER, version="5.0.0")
    shown = _live(older, running, release(tmp_path / "to", plain("Namespace", "apart")))["objects"]
    assert {each["object"]: each["state"] for each in shown[1:]} == {
        f"Tool.{GROUP} one": "left",
        f"Tool.{GROUP} two": "same",
    }


def test_whoever_may_not_read_the_other_version_is_told_so(older: Server, tmp_path: Path) -> None:
    """An object that may be there is not created."""
    let_looker_read(older.client)
    shown = _live(older, release(tmp_path / "to", NEWER_TOOL, BOTH_VERSIONS), "--as", LOOKER)["objects"][0]
    assert (shown["state"], "forbidden" in shown["why"]) == ("unknown", True)


def test_only_what_differs_is_a_change(there: Server, tmp_path: Path) -> None:
    """Neither what the server adds nor the mark of what was applied; another's label stays."""
    shown = _live(there, release(tmp_path / "to", config_map("a", x="2", z="3")))["objects"][0]
    assert shown["changes"] == [{"path": "data.x", "from": "1", "to": "2"}, {"path": "data.z", "to": "3"}]


def test_what_the_cluster_gives_is_part_of_the_change(there: Server, tmp_path: Path) -> None:
    """A container that asks for the proxy gets what the cluster's is."""
    asks = deployment("d", **{"config.openshift.io/inject-proxy": "c"})
    found = _live(there, release(tmp_path / "to", asks))["objects"][0]["changes"]
    shown = {each["path"].rpartition(".")[2]: each.get("to") for each in found}
    assert shown["env"] == [
        {"name": "HTTP_PROXY", "value": "http://proxy:1"},
        {"name": "NO_PROXY", "value": ".svc"},
    ]


@pytest.mark.parametrize(
    ("obj", "shown"),
    [
        pytest.param(
            config_map("a"),
            ("left", "no part of the release any more, and nothing deletes it"),
            id="there: it stays",
        ),
        pytest.param(config_map("b"), ("same", "it is not there, and no part of the release"), id="not there"),
        pytest.param(TOOL, ("same", "it is not there, and no part of the release"), id="of a kind nobody has"),
        pytest.param(
            plain("ConfigMap", "a"), ("same", "it is not there, and no part of the release"), id="of no namespace"
        ),
        pytest.param(deleted(config_map("a")), None, id="deleted by the release before"),
    ],
)
def test_what_the_release_lacks(there: Server, tmp_path: Path, obj: JSON, shown: tuple[str, str] | None) -> None:
    """The running release decides; objects in both are reported once."""
    both = plain("Namespace", "apart")
    running, target = release(tmp_path / "from", both, obj, version="5.0.0"), release(tmp_path / "to", both)
    first, *others = _live(there, running, target)["objects"]
    assert first["object"] == "Namespace apart"
    assert [(each["state"], each["why"]) for each in others] == ([shown] if shown else [])


def test_a_running_release_that_cannot_be_read_is_a_note(there: Server, tmp_path: Path) -> None:
    """The update is reported all the same; what it would leave behind is not known, which is not nothing."""
    words = ["diff", "--live", str(release(tmp_path / "to", config_map("a", x="1"))), "--kubeconfig"]
    ran = run(*words, str(there.kubeconfig))
    assert ran.code == 3
    assert ran.err.startswith("note: what the release would leave behind is not known, since the running one cannot")
    assert ran.out == "The update to 5.2.0 would: 1 same\n"


def test_a_named_release_that_cannot_be_read_is_an_error(there: Server, tmp_path: Path) -> None:
    """A kind that the user names is always reported."""
    to = release(tmp_path / "to", config_map("a", x="1"))
    ran = run("diff", "--live", str(tmp_path / "nowhere"), str(to), "--kubeconfig", str(there.kubeconfig))
    assert (ran.code, ran.out, "nowhere" in ran.err) == (1, "", True)


def test_a_cluster_that_names_no_release() -> None:
    """It must be named."""
    with pytest.raises(InputError, match="ClusterVersion names no image under "):
        release_image_of(ClusterVersion())


def test_whoever_may_not_read_is_told_so_in_each_row(there: Server, tmp_path: Path) -> None:
    """For a user who may only read ClusterVersion, every other object is unknown."""
    let_looker_read(there.client)
    both = release(tmp_path / "to", config_map("a", x="1"), config_map("new", "new"), NEW_SPACE)
    asks = deployment("d", **{"config.openshift.io/inject-proxy": "c"})
    old = release(tmp_path / "from", config_map("gone"), asks, version="5.0.0")
    shown = _live(there, old, both, "--as", LOOKER, code=3)
    assert {each["object"]: each["state"] for each in shown["objects"]} == {
        "ConfigMap default/a": "unknown",
        "ConfigMap new/new": "unknown",
        "Namespace new": "unknown",
        "ConfigMap default/gone": "unknown",
        "Deployment.apps default/d": "unknown",
    }
    assert all("forbidden" in each["why"] for each in shown["objects"])
    shown = _live(there, old, release(tmp_path / "proxied", asks), "--as", LOOKER, code=3)
    assert any(note.startswith("Proxy cluster could not be read, so what it gives") for note in shown["notes"])


def _explain(there: Server, folder: Path, *words: str) -> Ran:
    return run("explain", *words, "--release", str(folder), "--kubeconfig", str(there.kubeconfig))


def _rules(text: str) -> dict[str, str]:
    """Returns the lines about each rule, with single spaces."""
    rows = [line for line in text.splitlines() if line.startswith("  ") and not line.startswith("  file: ")]
    return {row[2:].partition("  ")[0]: " ".join(row[2:].partition("  ")[2].split()) for row in rows}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(("configmap", "a"), ["default/a", "apart/a"], id="each of that name"),
        pytest.param(("configmap", "a", "-n", "apart"), ["apart/a"], id="the one of a namespace"),
        pytest.param(("ConfigMap", "apart/a"), ["apart/a"], id="as names are printed"),
        pytest.param(("configmap", "default/a", "-n", "apart"), ["apart/a"], id="the flag counts"),
    ],
)
def test_why_a_cluster_gets_a_manifest(there: Server, tmp_path: Path, words: tuple[str, ...], found: list[str]) -> None:
    """Which object of which release, whether it is in, the file, and every rule that was asked."""
    folder = release(tmp_path / "of", config_map("a"), config_map("a", "apart"), config_map("b"))
    ran = _explain(there, folder, *words)
    assert (ran.code, ran.err) == (0, "")
    blocks = ran.out.split("\n\n")
    assert [block.partition(":")[0] for block in blocks] == [f"ConfigMap {name} of 5.2.0" for name in found]
    for name, block in zip(found, blocks, strict=True):
        lines = block.splitlines()
        number = ("default/a", "apart/a").index(name)
        assert lines[0].endswith(": in")
        assert lines[1] == f"  file: release-manifests/0000_50_a_0{number}.yaml"
        assert _rules(block)["profile"] == "passes the cluster's is self-managed-high-availability"
        assert _rules(block)["feature set"] == "not asked"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("configmap", "c"), "no configmap c; `runup release manifests` lists what it has", id="no such name"
        ),
        pytest.param(
            ("configmap", "a", "-n", "none"),
            "no configmap a in namespace none; it has ConfigMap apart/a, ConfigMap default/a",
            id="not in that namespace",
        ),
        pytest.param(("secret", "a"), "no secret a; it has ConfigMap apart/a, ConfigMap default/a", id="another kind"),
    ],
)
def test_a_manifest_that_a_release_has_not(there: Server, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One error, with those that may be meant."""
    folder = release(tmp_path / "of", config_map("a"), config_map("a", "apart"))
    ran = _explain(there, folder, *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: 5.2.0 ({folder}) has {said}\n")


def test_a_file_that_cannot_be_read_hides_no_other(there: Server, tmp_path: Path) -> None:
    """Shows the requested value next to it."""
    folder = release(tmp_path / "of", config_map("a"))
    (folder / "release-manifests" / "0000_60_broken.yaml").write_text("kind: [")
    assert _explain(there, folder, "configmap", "a").code == 0


def test_why_a_cluster_gets_a_manifest_for_programs(there: Server, tmp_path: Path) -> None:
    """The same, by names."""
    folder = release(tmp_path / "of", config_map("a"), plain("Namespace", "space"))
    said = _explain(there, folder, "namespace", "space", "-o", "json").out
    shown = json.loads(said)
    assert said.endswith("}\n") and not said.endswith("\n\n")
    (manifest,) = shown["manifests"]
    assert (shown["version"], shown["digest"], shown["unreadable"]) == ("5.2.0", "", {})
    assert (manifest["object"], manifest["answer"]) == ("Namespace space", "in")
    verdicts = {each["rule"]: each["verdict"] for each in manifest["rules"]}
    assert (verdicts["profile"], verdicts["feature gates"]) == ("passes", "not asked")


def test_what_decides_and_may_not_be_read_is_unknown(there: Server, tmp_path: Path) -> None:
    """With the server's words, and a separate exit code."""
    let_looker_read(there.client)
    ran = _explain(there, release(tmp_path / "of", config_map("a")), "configmap", "a", "--as", LOOKER)
    assert ran.code == 3
    assert ran.out.startswith("ConfigMap default/a of 5.2.0: unknown, by profile\n")
    why = _rules(ran.out)["profile"]
    assert why.startswith("unknown the operator's Deployment could not be read: deployments.apps ")


def test_the_clusters_own_release_is_taken_where_none_is_named(there: Server) -> None:
    """Its image is in the error where that cannot be read."""
    ran = run("explain", "configmap", "a", "--kubeconfig", str(there.kubeconfig))
    assert (ran.code, ran.out) == (1, "")
    assert "registry.invalid/release@sha256:5050" in ran.err


def _operator_with(*containers: JSON) -> JSON:
    made = deployment(OWN)
    made["metadata"]["namespace"] = "apart"
    made["spec"]["template"]["spec"]["containers"] = [{"image": "registry.example/o:1", **each} for each in containers]
    return made


def test_the_profile_is_that_of_the_operators_own_container(
    there: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another container's value, nor a value in another place."""
    monkeypatch.setenv("CVO_NAMESPACE", "apart")
    other = {"name": "other", "env": [{"name": "CLUSTER_PROFILE", "value": "of-another"}]}
    ref = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    mine = {"name": OWN, "env": [{"name": "X", "valueFrom": ref}, {"name": "CLUSTER_PROFILE", "value": "small"}]}
    folder = release(tmp_path / "of", config_map("a"))

    def profile(*containers: JSON) -> tuple[str, str]:
        there.client.send(calls.create(DEPLOYMENTS, _operator_with(*containers)))
        try:
            ran = _explain(there, folder, "configmap", "a")
        finally:
            there.client.send(calls.delete(DEPLOYMENTS, OWN, "apart"))
        assert ran.code == 0
        return ran.out.splitlines()[0].partition(": ")[2], _rules(ran.out)["profile"]

    usual = ("in", "passes the cluster's is self-managed-high-availability")
    assert profile(other) == usual
    assert profile({"name": OWN}) == usual
    assert profile({"name": OWN, "env": [{"name": "CLUSTER_PROFILE", "valueFrom": ref}]}) == usual
    answer, rule = profile(other, mine)
    assert answer == "out, by profile"
    assert "small" in rule


INTERNAL: dict[str, tuple[str, tuple[str, str]]] = {
    "with a port": ("https://api-int.example:6443", ("api-int.example", "6443")),
    "without a port": ("https://api-int.example", ("api-int.example", "443")),
    "no address": ("api-int.example", ("", "")),
    "a port that is none": ("https://api-int.example:port", ("", "")),
    "nothing": ("", ("", "")),
}


@pytest.mark.parametrize("name", INTERNAL)
def test_the_clusters_internal_address(there: Server, name: str) -> None:
    """The value comes from the infrastructure; an invalid value does not count."""
    uri, address = INTERNAL[name]
    made = there.client.send(calls.create(INFRASTRUCTURES, plain("Infrastructure", "cluster", CONFIG, spec={})))
    try:
        status = {"apiServerInternalURI": uri, "infrastructureName": "x", "apiServerURL": ""}
        there.client.send(calls.replace(INFRASTRUCTURES, {**made, "status": status}, subresource="status"))
        found, notes = dry_run.read_values(there.client, (), "uid")
    finally:
        there.client.send(calls.delete(INFRASTRUCTURES, "cluster"))
    assert ((found.internal_host, found.internal_port), notes) == (address, [])


def test_what_objects_do_not_ask_for_is_not_read(there: Server, tmp_path: Path) -> None:
    """A proxy for those that name a container, TLS for those that say true; each has its note where it may not be."""
    let_looker_read(there.client)
    nobody = replace(there.client.config, headers=(("Impersonate-User", LOOKER),))

    def notes(*annotations: JSON) -> list[str]:
        objects = [config_map(f"o{number}", annotations=each) for number, each in enumerate(annotations)]
        folder = release(tmp_path / str(len(list(tmp_path.iterdir()))), *objects)
        payload, _ = release_location.load(str(folder), access())
        with SyncClient(nobody) as client:
            _, found = dry_run.read_values(client, payload.manifests, "uid")
        return [
            note.partition(" cluster could not be read, so what it gives to objects is not shown: ")[0]
            for note in found
        ]

    proxy, tls = {"config.openshift.io/inject-proxy": "c"}, {"config.openshift.io/inject-tls": "true"}
    assert notes({}, {}) == ["Infrastructure"]
    assert notes({}, proxy) == ["Proxy", "Infrastructure"]
    assert notes({}, tls) == ["APIServer", "Infrastructure"]
    assert notes({"config.openshift.io/inject-tls": "false"}) == ["Infrastructure"]
    assert notes(proxy, tls) == ["Proxy", "APIServer", "Infrastructure"]


def test_what_objects_are_given(there: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy where one is asked for, the owner, the operator's own name."""
    monkeypatch.setenv("CVO_NAMESPACE", "apart")
    asks = config_map("a", annotations={"config.openshift.io/inject-proxy": "c"})
    for number, (objects, proxy) in enumerate(
        (((asks,), Proxy("http://proxy:1", "", ".svc")), ((config_map("a"),), Proxy("", "", "")))
    ):
        payload, _ = release_location.load(str(release(tmp_path / str(number), *objects)), access())
        found, notes = dry_run.read_values(there.client, payload.manifests, "the-uid")
        assert (found.proxy, found.owner_uid, found.operator) == (proxy, "the-uid", ("apart", OWN))
        assert (found.tls, notes) == (None, [])


def test_the_tls_profile_is_the_clusters(there: Server, tmp_path: Path) -> None:
    """As its API server has it; where there is no such object none is given."""
    kind = definition()
    kind["metadata"]["name"] = f"apiservers.{API_SERVERS.group}"
    names = {"kind": "APIServer", "plural": "apiservers", "singular": "apiserver", "listKind": "APIServerList"}
    kind["spec"] |= {"group": API_SERVERS.group, "names": names}
    asks = config_map("a", annotations={"config.openshift.io/inject-tls": "true"})
    payload, _ = release_location.load(str(release(tmp_path / "of", asks)), access())
    there.client.send(calls.create(CRD, kind))
    try:
        eventually(lambda: _served(there, API_SERVERS), "APIServer is served")
        assert dry_run.read_values(there.client, payload.manifests, "uid")[0].tls is None
        spec = {"tlsSecurityProfile": {"type": "Modern", "modern": {}}}
        there.client.send(calls.create(API_SERVERS, plain("APIServer", "cluster", CONFIG, spec=spec)))
        found, notes = dry_run.read_values(there.client, payload.manifests, "uid")
        assert (found.tls, notes) == (tls.profile_of({"spec": spec}), [])
    finally:
        there.client.send(calls.delete(CRD, kind["metadata"]["name"]))
    assert tls.profile_of({"spec": spec}) != tls.profile_of({})


def _live(there: Server, *words: Any, code: int = 0) -> JSON:
    """Returns the data of `diff --live`; a single release is compared with itself."""
    folders = [str(word) for word in words if isinstance(word, Path)]
    both = folders if len(folders) == 2 else folders * 2
    options = [word for word in words if not isinstance(word, Path)]
    ran = run("diff", "--live", *both, "-o", "json", "--kubeconfig", str(there.kubeconfig), *options)
    said: JSON = json.loads(ran.out or "{}")
    states = {each["state"] for each in said.get("objects", ())}
    assert ran.code == (3 if "unknown" in states else code), ran.err
    return said


def _everything(there: Server) -> list[Any]:
    return [there.client.send(calls.list_raw(each)) for each in (CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, OPERATORS)]
