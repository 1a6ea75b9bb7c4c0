"""What `oc adm upgrade status` reads by name finds its object: the Deployment whose image says how far operators are.

oc ends with an error where it is not there (openshift/oc, pkg/cli/admin/upgrade/status, `GET .../namespaces/
openshift-machine-config-operator/deployments/machine-config-operator`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load as load_config
from kubesandbox.apiserver.server import ApiServer
from runup.dump import load
from runup.dump.documents import JSON
from runup.sandbox.scenario import folder as scenarios
from runup.sandbox.scenario import from_dump, scenario_releases
from runup.sandbox.scenario.folder import Scenario
from runup.sandbox.setup import scenario_objects as setup

NAMESPACE = "openshift-machine-config-operator"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/machine-config-operator"
IMAGE = "quay.io/release/mco@sha256:" + "a" * 64
CV = """apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: 7f2f6c0e-5d0e-4a47-9f0f-0d7d0a7d9a01}
status: {desired: {version: 4.16.3}, history: []}
"""
OWN = f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: machine-config-operator, namespace: {NAMESPACE}}}
spec:
  selector: {{matchLabels: {{k8s-app: machine-config-operator}}}}
  template:
    metadata: {{labels: {{k8s-app: machine-config-operator}}}}
    spec:
      containers:
      - {{name: machine-config-operator, image: "{IMAGE}"}}
      - {{name: kube-rbac-proxy, image: "quay.io/release/proxy:1"}}
status: {{observedGeneration: 1, replicas: 1, readyReplicas: 1}}
"""


async def deployment(made: Scenario, data: Path) -> JSON:
    """What the API of a sandbox of that scenario answers to oc's request."""
    built = scenario_releases.build(made, data, registry="127.0.0.1:1")
    async with ApiServer(data / "api") as server, Client(load_config(str(server.kubeconfig))) as client:
        await setup.set_up(client, made, built, SystemClock())
        found: JSON = json.loads(await client.send(calls.get_path(DEPLOYMENT)))
        return found


def images(found: JSON) -> dict[str, str]:
    """The image of each container."""
    return {each["name"]: each["image"] for each in found["spec"]["template"]["spec"]["containers"]}


@pytest.mark.slow
async def test_a_scenario_has_it(tmp_path: Path) -> None:
    """With the container that oc looks for."""
    made = scenarios.load(scenarios.find(scenarios.DEFAULT))
    assert "machine-config-operator" in images(await deployment(made, tmp_path))


@pytest.mark.slow
async def test_a_dumps_own_is_found_as_it_was(tmp_path: Path) -> None:
    """Though of Deployments the dump has only a part, and a list of them says so."""
    dump = tmp_path / "dump"
    files = {
        "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": CV,
        f"namespaces/{NAMESPACE}/apps/deployments.yaml": OWN,
    }
    for name, content in files.items():
        (dump / name).parent.mkdir(parents=True)
        (dump / name).write_text(content)
    made = from_dump.scenario_of(load.read(dump), base=scenarios.BUNDLED / "common")
    found = await deployment(made, tmp_path / "data")
    assert images(found)["machine-config-operator"] == IMAGE
    assert found["status"] == {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1}


@pytest.mark.parametrize(
    ("version", "kubernetes"),
    [
        pytest.param("4.16.3", "1.29.0", id="of OpenShift 4"),
        pytest.param("5.0.3", "", id="of a release that the table does not have"),
    ],
)
def test_which_kubernetes_a_release_of_a_dump_has(version: str, kubernetes: str, tmp_path: Path) -> None:
    """A dump without nodes and operators does not say it; OpenShift 4.y has 1.(y + 13)."""
    (tmp_path / "version.yaml").write_text(
        "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\n"
        f"status: {{desired: {{version: {version}, image: example.com/release@sha256:{'a' * 64}}}}}\n"
    )
    made = from_dump.scenario_of(load.read(tmp_path), base=scenarios.BUNDLED / "common")
    assert {release.version: release.kubernetes for release in made.releases}[version] == kubernetes
