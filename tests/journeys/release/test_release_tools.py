"""`runup release` as typed: component images gathered, files extracted, two releases and a cluster compared."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.journeys.conftest import RUNUP, Sandbox
from tests.oci.registries import sandbox_registry, writing

from runup.api.scheme import Resource
from runup.kube import calls
from runup.kube.errors import NotFound
from runup.oci.build import build_image, layer_of
from runup.oci.images import Execution
from runup.oci.layout import Layout
from runup.oci.reference import parse
from runup.oci.registry import RegistryClient

ANNOTATIONS = {"include.release.openshift.io/self-managed-high-availability": "true"}
DEVELOPED = "quay.io/dev/tool:latest"
JSON = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run([*RUNUP, "release", *words], capture_output=True, text=True, check=False, timeout=100)


def config_map(name: str, namespace: str = "default", annotations: JSON | None = None, **data: str) -> JSON:
    """A manifest."""
    metadata = {"name": name, "namespace": namespace, "annotations": {**ANNOTATIONS, **(annotations or {})}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def release(folder: Path, *objects: JSON, version: str = "5.2.0", images: JSON | None = None) -> Path:
    """A release as a folder of files."""
    manifests = folder / "release-manifests"
    manifests.mkdir(parents=True)
    tags = [{"name": name, "from": {"kind": "DockerImage", "name": spec}} for name, spec in (images or {}).items()]
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": version}}
    (manifests / "image-references").write_text(json.dumps(stream | {"spec": {"tags": tags}}))
    (manifests / "release-metadata").write_text(json.dumps({"kind": "cincinnati-metadata-v0", "version": version}))
    for number, obj in enumerate(objects):
        (manifests / f"0000_50_a_{number:02}.yaml").write_text(yaml.safe_dump(obj))
    return folder


def test_a_release_of_component_images(tmp_path: Path) -> None:
    """From the registry: each component's manifests in its own bucket, with the release's pull specs and version."""
    deployment = "\n".join(
        (
            "kind: Deployment",
            "apiVersion: apps/v1",
            "metadata: {name: tool, annotations: {a: 0.0.1-snapshot}}",
            f"spec: {{image: {DEVELOPED}}}",
        )
    )
    stream = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "spec": {"tags": [{"name": "tool", "from": {"kind": "DockerImage", "name": DEVELOPED}}]},
    }
    files = {
        "manifests/01-deployment.yaml": deployment.encode(),
        "manifests/image-references": json.dumps(stream).encode(),
        "manifests/0000_20_tool_crd.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: early}\n",
        "bin/tool": b"x",
    }
    built = build_image(tmp_path / "tool", [layer_of(files)], tag="t", config=Execution())
    with sandbox_registry(tmp_path) as host:
        client = RegistryClient(writing(host))
        client.push(Layout.open(tmp_path / "tool"), built.digest, parse(f"{host}/ocp/tool:t"))
        made = run(
            "new", "--component", f"tool={host}/ocp/tool:t", "--version", "5.2.0", "--to", f"oci:{tmp_path / 'release'}"
        )
    assert made.returncode == 0, made.stderr
    done = run("extract", f"oci:{tmp_path / 'release'}", "--to", str(tmp_path / "files"))
    assert done.returncode == 0, done.stderr
    found = tmp_path / "files" / "release-manifests"
    assert sorted(path.name for path in found.iterdir()) == [
        "0000_20_tool_crd.yaml",
        "0000_50_tool_01-deployment.yaml",
        "image-references",
        "release-metadata",
    ]
    pinned = f"{host}/ocp/tool@{built.digest}"
    assert yaml.safe_load((found / "0000_50_tool_01-deployment.yaml").read_text())["spec"] == {"image": pinned}
    assert "5.2.0" in (found / "0000_50_tool_01-deployment.yaml").read_text()
    assert json.loads(run("info", f"oci:{tmp_path / 'release'}", "-o", "json").stdout)["images"] == {"tool": pinned}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((), "there is nothing to make a release of", id="nothing"),
        pytest.param(
            ("--component", "tool=oci:LAYOUT"), "no cluster pulls from a layout", id="a layout without a name"
        ),
        pytest.param(
            ("--component", "tool=oci:LAYOUT", "--image-reference", "tool=h/r@x"),
            "has no /manifests",
            id="no manifests",
        ),
        pytest.param(("--component", "Tool=oci:LAYOUT"), "a name is of a-z", id="a name that no file has"),
    ],
)
def test_components_that_are_none(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One error, and no image."""
    build_image(tmp_path / "tool", [layer_of({"bin/tool": b"x"})], tag="t", config=Execution())
    words = tuple(word.replace("LAYOUT", str(tmp_path / "tool")) for word in words)
    done = run("new", *words, "--version", "5.2.0", "--to", f"oci:{tmp_path / 'image'}")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "image").exists()


def test_extracting_leaves_what_is_there_alone(tmp_path: Path) -> None:
    """A folder that holds something, a file that the release has not."""
    folder = release(tmp_path / "release")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    done = run("extract", str(folder), "--to", str(tmp_path / "mine"))
    assert (done.returncode, "is there already and holds something" in done.stderr) == (1, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["x"]
    assert "has no file nope" in run("extract", str(folder), "--file", "nope").stderr
    one = run("extract", str(folder), "--file", "release-metadata")
    assert json.loads(one.stdout)["version"] == "5.2.0"
    assert "give --to DIR for all files, or --file PATH for one" in run("extract", str(folder)).stderr


def test_what_changes_between_two_releases(tmp_path: Path) -> None:
    """As text, and as data."""
    old = release(
        tmp_path / "old", config_map("a", x="1"), config_map("gone"), version="5.1.0", images={"tool": "h/t:1"}
    )
    new = release(tmp_path / "new", config_map("a", x="2"), config_map("b"), images={"tool": "h/t:2"})
    done = run("diff", str(old), str(new))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "5.1.0 -> 5.2.0\n"
        "\n"
        "Images: 1 changed\n"
        "  changed   tool   h/t:1 -> h/t:2\n"
        "Manifests: 1 added, 1 changed, 1 removed, 0 the same\n"
        "  changed   ConfigMap default/a      data.x: 1 -> 2\n"
        "  added     ConfigMap default/b      release-manifests/0000_50_a_01.yaml\n"
        "  removed   ConfigMap default/gone   nothing deletes it: clusters that have it keep it\n"
        "Checks: no change\n"
        "Feature gates: no change\n"
        "Access: no roles and bindings changed\n"
    )
    told = yaml.safe_load(run("diff", str(old), str(new), "-o", "yaml").stdout)
    assert told["manifests"][0]["changes"] == [{"path": "data.x", "from": "1", "to": "2"}]
    assert "give two releases" in run("diff", str(old)).stderr


GROUP = "tools.example.com"


def definition() -> JSON:
    """A kind that comes with the release."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Tool", "plural": "tools", "singular": "tool", "listKind": "ToolList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"tools.{GROUP}", "annotations": ANNOTATIONS},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def plain(kind: str, name: str, api: str = "v1", **more: Any) -> JSON:
    """A manifest without a namespace."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "annotations": ANNOTATIONS}, **more}


@pytest.fixture
def there(clean: Sandbox) -> Iterator[Sandbox]:
    """A cluster with some ConfigMaps that an operator applied."""
    for name in ("same", "changed", "deleted", "left", "kept"):
        obj = config_map(name, x="1")
        obj["metadata"]["ownerReferences"] = [_owner(clean)]
        clean.client.send(calls.apply(CONFIG_MAPS, obj, field_manager="cluster-version-operator", force=True))
    yield clean
    for name in ("same", "changed", "deleted", "left", "kept"):
        clean.client.send(calls.delete(CONFIG_MAPS, name, "default"))


def _owner(sandbox: Sandbox) -> JSON:
    uid = sandbox.cluster_version().metadata.uid
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "controller": True}
    return {**version, "uid": uid}


def targets(tmp_path: Path) -> tuple[Path, Path]:
    """The release that a cluster runs, and the one that it may go to."""
    old = release(tmp_path / "old", *(config_map(n, x="1") for n in ("same", "changed", "deleted", "left", "kept")))
    new = release(
        tmp_path / "new",
        config_map("same", x="1"),
        config_map("changed", x="2"),
        config_map("deleted", annotations={"release.openshift.io/delete": "true"}),
        config_map("kept", annotations={"release.openshift.io/create-only": "true"}, x="2"),
        config_map("new"),
        definition(),
        plain("Tool", "one", f"{GROUP}/v1"),
        plain("Nobody", "one", "nobody.example.com/v1"),
        plain("Namespace", "tools-new"),
        config_map("inside", namespace="tools-new"),
        {**config_map("broken"), "data": {"x": 1}},
        config_map("preview", annotations={"release.openshift.io/feature-gate": "NobodyOpensIt"}),
    )
    return old, new


def test_what_an_update_would_change_on_this_cluster(there: Sandbox, tmp_path: Path) -> None:
    """Each object by what happens to it, and afterwards nothing has happened."""
    old, new = targets(tmp_path)
    before = {name: _stored(there, name) for name in ("same", "changed", "deleted", "left", "kept")}
    done = there.run("release", "diff", "--live", str(old), str(new), "-o", "json")
    assert done.code == 0, done.err
    told = {each["object"].partition(" ")[2]: each for each in json.loads(done.out)["objects"]}
    assert {name: each["state"] for name, each in told.items()} == {
        "default/same": "same",
        "default/changed": "changed",
        "default/deleted": "deleted",
        "default/kept": "same",
        "default/new": "created",
        f"tools.{GROUP}": "created",
        "one": "refused",
        "tools-new": "created",
        "tools-new/inside": "created",
        "default/broken": "refused",
        "default/left": "left",
    }
    assert told["default/changed"]["changes"] == [{"path": "data.x", "from": "1", "to": "2"}]
    assert ".data.x" in told["default/broken"]["why"]
    assert {name: _stored(there, name) for name in before} == before
    for resource, name, namespace in ((CONFIG_MAPS, "new", "default"), (NAMESPACES, "tools-new", "")):
        with pytest.raises(NotFound):
            there.client.send(calls.get_raw(resource, name, namespace))


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


def _stored(sandbox: Sandbox, name: str) -> JSON:
    return sandbox.client.send(calls.get_raw(CONFIG_MAPS, name, "default"))


def test_the_text_says_what_and_why(there: Sandbox, tmp_path: Path) -> None:
    """What stays the same is counted; a kind that comes with the release is no refusal."""
    _, new = targets(tmp_path)
    done = there.run("release", "diff", "--live", str(new), str(new))
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    assert head == "The update to 5.2.0 would: 5 created, 1 changed, 1 deleted, 2 refused, 2 same"
    assert any(line.startswith("change ") and "data.x: 1 -> 2" in line for line in lines), lines
    assert "its kind comes with the release" in done.out
    assert "its namespace comes with the release" in done.out
    assert "the server knows no Nobody of nobody.example.com/v1" in done.out


ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


@pytest.fixture
def looker(clean: Sandbox) -> Iterator[str]:
    """A user who may read ClusterVersion and nothing else."""
    rule = {"apiGroups": ["config.openshift.io"], "resources": ["clusterversions"], "verbs": ["get"]}
    role = {"metadata": {"name": "looker"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "looker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}],
    }
    clean.client.send(calls.apply(ROLES, role, field_manager="test"))
    clean.client.send(calls.apply(BINDINGS, binding, field_manager="test"))
    yield "looker"
    clean.client.send(calls.delete(BINDINGS, "looker"))
    clean.client.send(calls.delete(ROLES, "looker"))


def test_who_may_not_read_is_told_so(clean: Sandbox, looker: str, tmp_path: Path) -> None:
    """Neither in nor out, not the same and not changed: unknown, with the server's words, and exit code 3."""
    gated = config_map("gated", annotations={"release.openshift.io/feature-gate": "NobodyOpensIt"})
    folder = str(release(tmp_path / "r", config_map("plain"), gated))
    done = clean.run("--as", looker, "release", "diff", "--live", folder, folder)
    assert done.code == 3
    assert "note: feature gates: FeatureGate cluster could not be read: featuregates" in done.err
    assert "UNKNOWN" in done.out
    done = clean.run("--as", looker, "release", "explain", "configmap", "gated", "--release", folder)
    assert done.code == 3
    assert "ConfigMap default/gated of 5.2.0: unknown, by feature gates" in done.out
    assert "is forbidden" in done.out


def test_why_a_cluster_gets_a_manifest(clean: Sandbox, tmp_path: Path) -> None:
    """Of its own release by default, of any other by name; what the release has not is an error that helps."""
    done = clean.run("release", "explain", "deployment", "cluster-version-operator")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "Deployment.apps openshift-cluster-version-operator/cluster-version-operator of 5.0.0: in\n"
    )
    gated = config_map("gated", annotations={"release.openshift.io/feature-gate": "NobodyOpensIt"})
    folder = str(release(tmp_path / "r", gated))
    told = json.loads(clean.run("release", "explain", "configmaps", "gated", "--release", folder, "-o", "json").out)
    (found,) = told["manifests"]
    assert found["answer"] == "out"
    assert {
        "rule": "feature gates",
        "verdict": "fails",
        "why": "feature gate NobodyOpensIt is required but not enabled",
    } in (found["rules"])
    again = json.loads(
        clean.run("release", "explain", "configmap", "default/gated", "--release", folder, "-o", "json").out
    )
    assert again["manifests"] == told["manifests"]
    done = clean.run("release", "explain", "configmap", "other/gated", "--release", folder)
    assert done.code == 1
    assert "has no configmap gated in namespace other; it has ConfigMap default/gated" in done.err
    done = clean.run("release", "explain", "secret", "gated", "--release", folder)
    assert done.code == 1
    assert "has no secret gated; it has ConfigMap default/gated" in done.err
