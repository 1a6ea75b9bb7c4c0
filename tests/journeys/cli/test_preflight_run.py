"""`runup preflight run --to-image` as typed: a release and a catalog out of a real registry, a cluster that is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.conftest import Sandbox
from tests.kubekit.oci.registries import docker_registry, writing

from kubekit.api.conditions import status_of
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.lang import yaml as kyaml
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.release.control.image_build import build_image, layer_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

JSON = dict[str, Any]
INCLUDED = {"include.release.openshift.io/self-managed-high-availability": "true"}
CHECK: JSON = {
    "apiVersion": "preflight.runup.dev/v1alpha1",
    "kind": "PreflightCheck",
    "metadata": {"name": "no-cordoned-nodes", "annotations": INCLUDED},
    "spec": {
        "component": "mine",
        "reads": [{"name": "nodes", "kind": "Node", "fields": ["spec.unschedulable"]}],
        "for": "nodes",
        "expression": "has(object.spec.unschedulable) && object.spec.unschedulable",
        "risk": {"name": "MyNodeCordoned", "message": "A node is cordoned.", "remediation": "Uncordon it."},
    },
}
CONTAINER: JSON = {
    "apiVersion": "preflight.runup.dev/v1alpha1",
    "kind": "PreflightCheck",
    "metadata": {"name": "of-a-container", "annotations": INCLUDED},
    "spec": {
        "component": "mine",
        "container": {"image": "widget-operator"},
        "risk": {"name": "WidgetsBroken", "message": "Widgets break.", "remediation": "Mend them."},
    },
}
DEFINITION: JSON = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.mine.example", "annotations": INCLUDED},
    "spec": {
        "group": "mine.example",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)


def release(folder: Path) -> Path:
    """5.2.0 with a separate check, and a definition that drops what the cluster has stored."""
    (folder / "preflight-checks").mkdir(parents=True)
    (folder / "preflight-checks" / "0000_50_mine.yaml").write_text(kyaml.dump_all([CHECK, CONTAINER]))
    (folder / "release-manifests").mkdir()
    (folder / "release-manifests" / "0000_50_mine_crd.yaml").write_text(kyaml.dump(DEFINITION))
    return folder


@pytest.fixture
def subject(skip_level: Sandbox) -> Iterator[Sandbox]:
    """The cluster's definition of the same kind still stores the version that 5.2.0 drops.

    What the operator says about the cluster's operators is there, because it is a separate risk.
    """
    skip_level.until(lambda version: status_of(version.status.conditions, "Upgradeable") == "False", "Upgradeable")
    old = json.loads(json.dumps(DEFINITION))
    old["spec"]["versions"][0]["name"] = "v1"
    skip_level.client.send(calls.create(DEFINITIONS, old))
    try:
        yield skip_level
    finally:
        skip_level.client.send(calls.delete(DEFINITIONS, DEFINITION["metadata"]["name"]))


def ran(sandbox: Sandbox, *words: str) -> tuple[int, JSON]:
    """Exit code, and the result as data."""
    done = sandbox.run("preflight", "run", *words, "-o", "json")
    return done.code, json.loads(done.out) if done.out else {"said": done.err}


def test_a_release_and_a_catalog_out_of_a_registry(subject: Sandbox, tmp_path: Path) -> None:
    """The release's own checks and manifests count, as from a folder; what the cluster is asked for stays."""
    folder = release(tmp_path / "release")
    before = subject.client.send(calls.get_raw(_VERSIONS, "version"))["spec"]
    with docker_registry(tmp_path) as host:
        image = f"{host}/ocp/release:5.2.0"
        made = subject.run(
            "release", "new", "--from-dir", str(folder), "--version", "5.2.0", "--to", f"docker://{image}"
        )
        assert made.code == 0, made.err
        layer = layer_of({"configs/other/catalog.json": b'{"schema": "olm.package", "name": "other"}'})
        index = build_image(tmp_path / "index", [layer], tag="v5.2", config=Execution())
        RegistryClient(writing(host)).push(
            Layout.open(tmp_path / "index"), index.digest, parse(f"{host}/ocp/index:v5.2")
        )

        catalog = f"redhat-operators={host}/ocp/index:v5.2"
        code, found = ran(subject, "--to-image", image, "--target-catalog", catalog)
        assert code == 2, found
        risks = {risk["name"]: risk for risk in found["risks"]}
        assert risks["MyNodeCordoned"]["applies"] == "True"
        assert "widgets.mine.example" in risks["CRDStoredVersionDropped"]["message"]
        assert (risks["WidgetsBroken"]["applies"], "in a cluster" in risks["WidgetsBroken"]["message"]) == (
            "Unknown",
            True,
        )
        # By its folder it is the same release, except for where it came from.
        _, again = ran(subject, "--release-dir", str(folder), "--to", "5.2.0")
        assert {risk["name"] for risk in again["risks"]} == set(risks)

        code, nothing = ran(subject, "--to-image", f"{host}/ocp/release:none")
        assert (code, "ocp/release" in nothing["said"]) == (1, True)
    assert subject.client.send(calls.get_raw(_VERSIONS, "version"))["spec"] == before


_VERSIONS = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
