"""`runup release` on a cluster, as typed: what an update would change, and which manifests it gets and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.release.typed import ANNOTATIONS, JSON, config_map, plain, release
from tests.journeys.conftest import Sandbox

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound

CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
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
    shown = {each["object"].partition(" ")[2]: each for each in json.loads(done.out)["objects"]}
    assert {name: each["state"] for name, each in shown.items()} == {
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
    assert shown["default/changed"]["changes"] == [{"path": "data.x", "from": "1", "to": "2"}]
    assert ".data.x" in shown["default/broken"]["why"]
    assert {name: _stored(there, name) for name in before} == before
    for resource, name, namespace in ((CONFIG_MAPS, "new", "default"), (NAMESPACES, "tools-new", "")):
        with pytest.raises(NotFound):
            there.client.send(calls.get_raw(resource, name, namespace))


NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)


def _stored(sandbox: Sandbox, name: str) -> JSON:
    return sandbox.client.send(calls.get_raw(CONFIG_MAPS, name, "default"))


def test_the_text_says_what_and_why(there: Sandbox, tmp_path: Path) -> None:
    """Unchanged objects are counted; a kind that the release defines is not refused."""
    _, new = targets(tmp_path)
    done = there.run("release", "diff", "--live", str(new), str(new))
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    assert head == "The update to 5.2.0 would: 5 created, 1 changed, 1 deleted, 2 refused, 2 same"
    assert any(line.startswith("change ") and "data.x: 1 -> 2" in line for line in lines), lines
    assert "its kind comes with the release" in done.out
    assert "its namespace comes with the release" in done.out
    assert "the server knows no Nobody of nobody.example.com/v1" in done.out


ROLES = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
BINDINGS = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
)


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
    shown = json.loads(clean.run("release", "explain", "configmaps", "gated", "--release", folder, "-o", "json").out)
    (found,) = shown["manifests"]
    assert found["answer"] == "out"
    assert {
        "rule": "feature gates",
        "verdict": "fails",
        "why": "feature gate NobodyOpensIt is required but not enabled",
    } in (found["rules"])
    again = json.loads(
        clean.run("release", "explain", "configmap", "default/gated", "--release", folder, "-o", "json").out
    )
    assert again["manifests"] == shown["manifests"]
    done = clean.run("release", "explain", "configmap", "other/gated", "--release", folder)
    assert done.code == 1
    assert "has no configmap gated in namespace other; it has ConfigMap default/gated" in done.err
    done = clean.run("release", "explain", "secret", "gated", "--release", folder)
    assert done.code == 1
    assert "has no secret gated; it has ConfigMap default/gated" in done.err
