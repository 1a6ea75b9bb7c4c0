"""From nothing to a report on a cluster that has nothing of OpenShift: what is installed works, with no more rights.

The programs are started as the installed Deployments have them: their arguments, environment and account. Only the
addresses and folders are this machine's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.servers import eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubesandbox.pytest_plugin import KubeApiFactory
from kubesandbox.testing import KubeApi
from runup.api.update_policy_v1alpha1 import UpdatePolicy
from runup.install.decide.component import COMPONENTS
from runup.release.control.image_build import release_metadata

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
IMAGE = "registry.example/release@sha256:" + "5" * 64
CLUSTER_VERSION = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
STATUS = Resource(
    group="update.openshift.io", version="v1alpha1", kind="UpdateStatus", plural="updatestatuses", namespaced=False
)
POLICY = resource_of(UpdatePolicy)
DEPLOYMENT = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
CONFIG_MAP = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
# What a release for such clusters says about its manifests.
PROFILE = {"include.release.openshift.io/kubernetes": "true"}
# Places of a pod: its ports, and its folder of the node.
PLACES = ("--health-listen=", "--listen=", "--report-dir=")


@pytest.fixture(scope="module")
def api(kube_api_factory: KubeApiFactory) -> Iterator[KubeApi]:
    """A cluster with a node, and nothing else."""
    with kube_api_factory(node=True) as made:
        yield made


@pytest.fixture(scope="module")
def client(api: KubeApi) -> Iterator[SyncClient]:
    """An administrator's client."""
    with SyncClient(config.load(str(api.kubeconfig))) as made:
        yield made


def typed(api: KubeApi, *words: str) -> str:
    """What `runup` prints."""
    command = [sys.executable, "-m", "runup", *words]
    environ = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def started(api: KubeApi, client: SyncClient, name: str, folder: Path, *more: str) -> Iterator[Path]:
    """The process of an installed component with its own account; its log."""
    component = COMPONENTS[name]
    found = client.send(calls.get_raw(DEPLOYMENT, component.deployment, component.namespace))
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environ = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    # The fields of the pod that its environment is made of.
    fields = [each["name"] for each in container["env"] if "valueFrom" in each]
    environ |= {name: "here" if name == "NODE_NAME" else component.namespace for name in fields}
    arguments = [argument for argument in container["args"] if not argument.startswith(PLACES)]
    kubeconfig = api.kubeconfig_for(pod["serviceAccountName"], component.namespace)
    command = [sys.executable, "-c", "from runup.cli.operator.entry import main; main()", *arguments, *more]
    log = folder / f"{name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)],
            env={**os.environ, **environ, "PAYLOAD_OVERRIDE": str(folder / "release")},
            stdout=stream,
            stderr=stream,
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(60)


def release(folder: Path) -> None:
    """A release of one object for such clusters, next to the operator's own manifests, which are for OpenShift."""
    deploy = Path(__file__).parents[3] / "deploy" / "manifests"
    greeting = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "greeting", "namespace": "default", "annotations": PROFILE},
    }
    references = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.0"}}
    files = {f"manifests/{file.name}": file.read_bytes() for file in deploy.glob("*.yaml")}
    files["manifests/0000_50_mine_00_greeting.yaml"] = json.dumps(greeting).encode()
    files["release-manifests/release-metadata"] = release_metadata("5.0.0", (), (), {})
    files["release-manifests/image-references"] = json.dumps(references).encode()
    for name, content in files.items():
        (folder / "release" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "release" / name).write_bytes(content)


def conditions(client: SyncClient) -> dict[str, str]:
    """The conditions of ClusterVersion."""
    status = client.send(calls.get_raw(CLUSTER_VERSION, "version")).get("status") or {}
    return {each["type"]: each["status"] for each in status.get("conditions", ())}


def refused(log: Path) -> list[dict[str, Any]]:
    """The lines of a log about rights that are missing."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if "orbidden" in json.dumps(line)]


def greeted(client: SyncClient) -> bool:
    """Whether the object of the release is there."""
    try:
        client.send(calls.get_raw(CONFIG_MAP, "greeting", "default"))
    except NotFound:
        return False
    return True


def test_an_operator_keeps_the_cluster_and_a_controller_tells_of_it(
    api: KubeApi, client: SyncClient, tmp_path: Path
) -> None:
    """Three commands from nothing to a report; the release's OpenShift manifests are nobody's here."""
    release(tmp_path)
    typed(api, "install", "operator", "--image", IMAGE, "--wait")
    typed(api, "install", "update-status", "--image", IMAGE, "--wait")
    where = ("--report-dir", str(tmp_path / "reports"), "--listen=")
    with started(api, client, "operator", tmp_path, *where) as log:
        eventually(lambda: conditions(client).get("Available") == "True", "the release is applied")
        assert greeted(client)
        assert conditions(client)["Failing"] == "False"
        assert refused(log) == []
        with started(api, client, "update-status", tmp_path) as shown:

            def insights() -> Any:
                status = client.send(calls.get_raw(STATUS, "cluster")).get("status") or {}
                return status.get("controlPlane")

            def there() -> bool:
                try:
                    return bool(insights())
                except NotFound:
                    return False

            eventually(there, "the update's status is there")
            assert refused(shown) == []
        checked = subprocess.run(
            [sys.executable, "-m", "runup", "check", "-o", "json"],
            env={**os.environ, "KUBECONFIG": str(api.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        rows = {row["name"]: row["result"] for row in json.loads(checked.stdout)["checks"]}
        assert [rows[name] for name in ("server", "cluster", "operator", "preflight field")] == ["ok"] * 4
    typed(api, "uninstall", "operator", "--definitions", "--yes")
    typed(api, "uninstall", "update-status", "--definitions")
    # What ClusterVersion owned goes with it.
    eventually(lambda: not greeted(client), "the release's object is gone")


def test_an_update_policy_is_carried_out(api: KubeApi, client: SyncClient, tmp_path: Path) -> None:
    """The controller of the installed manifests observes the cluster and writes the policy's status."""
    release(tmp_path)
    typed(api, "install", "operator", "--image", IMAGE, "--wait")
    typed(api, "install", "update-policy", "--image", IMAGE, "--wait")
    body = {"apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": "cluster"}, "spec": {}}
    client.send(calls.create(POLICY, body))
    where = ("--report-dir", str(tmp_path / "reports"), "--listen=")
    with started(api, client, "operator", tmp_path, *where):
        eventually(lambda: conditions(client).get("Available") == "True", "the release is applied")
        with started(api, client, "update-policy", tmp_path) as log:

            def reasons() -> set[str]:
                status = client.send(calls.get_raw(POLICY, "cluster")).get("status") or {}
                return {each["reason"] for each in status.get("conditions", ())}

            eventually(lambda: "NoCalendar" in reasons(), "the policy has a status")
            assert refused(log) == []
    typed(api, "uninstall", "update-policy", "--definitions")
    typed(api, "uninstall", "operator", "--definitions", "--yes")


def test_least_privilege_is_enough_to_advise_and_to_record(api: KubeApi, client: SyncClient, tmp_path: Path) -> None:
    """The operator does its work without a right that it lacks, and applies nothing."""
    release(tmp_path)
    typed(api, "install", "operator", "--image", IMAGE, "--least-privilege", "--wait")
    with started(api, client, "operator", tmp_path, "--listen=") as log:
        eventually(lambda: conditions(client).get("RetrievedUpdates") is not None, "the operator looked")
        status = client.send(calls.get_raw(CLUSTER_VERSION, "version"))["status"]
        assert (status["desired"]["version"], status["observedGeneration"]) == ("5.0.0", 1)
        assert not greeted(client)
        assert refused(log) == []
    typed(api, "uninstall", "operator", "--definitions", "--yes")
