"""The Python clients that people use, each with its own ideas of the API: list, watch, create, patch."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server, eventually

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls

pytestmark = pytest.mark.xdist_group("clients")


def _seen(server: Server, namespace: str) -> Any:
    return server.client.send(calls.get_raw(resource_of(ConfigMap), "settings", namespace))["data"]


def test_kubernetes(server: Server, namespace: str) -> None:
    """The official client, and its dynamic one for the custom resource."""
    import kubernetes
    from kubernetes.dynamic import DynamicClient

    api = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    core = kubernetes.client.CoreV1Api(api)
    body = kubernetes.client.V1ConfigMap(
        metadata=kubernetes.client.V1ObjectMeta(name="settings"), data={"colour": "blue"}
    )
    core.create_namespaced_config_map(namespace, body)
    listed = core.list_namespaced_config_map(namespace)
    assert [item.metadata.name for item in listed.items if item.metadata.name == "settings"] == ["settings"]
    seen: list[tuple[str, str]] = []
    watch = kubernetes.watch.Watch()

    def follow() -> None:
        version = listed.metadata.resource_version
        for event in watch.stream(core.list_namespaced_config_map, namespace, resource_version=version):
            seen.append((event["type"], event["object"].data["colour"]))
            watch.stop()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    core.patch_namespaced_config_map("settings", namespace, {"data": {"colour": "red"}})
    eventually(lambda: seen, "the watch saw the change")
    assert seen == [("MODIFIED", "red")]
    assert _seen(server, namespace) == {"colour": "red"}
    server.set_cluster_version()
    versions = DynamicClient(api).resources.get(api_version="config.openshift.io/v1", kind="ClusterVersion")
    assert versions.get(name="version").spec.clusterID
    patched = versions.patch(
        name="version", body={"spec": {"channel": "stable-5.1"}}, content_type="application/merge-patch+json"
    )
    assert patched.spec.channel == "stable-5.1"


def test_lightkube(server: Server, namespace: str) -> None:
    """Typed, with server-side apply."""
    import lightkube
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap as LightConfigMap

    kubeconfig = lightkube.KubeConfig.from_file(str(server.kubeconfig))
    client = lightkube.Client(config=kubeconfig, namespace=namespace, field_manager="lightkube")
    client.create(LightConfigMap(metadata=ObjectMeta(name="settings"), data={"colour": "blue"}))
    found = [item.metadata.name for item in client.list(LightConfigMap) if item.metadata]
    assert "settings" in found
    client.patch(LightConfigMap, "settings", {"data": {"colour": "red"}})
    for operation, item in client.watch(LightConfigMap, fields={"metadata.name": "settings"}):
        assert (operation, item.data) == ("ADDED", {"colour": "red"})
        break
    applied = LightConfigMap(
        apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="settings"), data={"size": "big"}
    )
    client.apply(applied)
    assert _seen(server, namespace) == {"colour": "red", "size": "big"}


def test_kr8s(server: Server, namespace: str) -> None:
    """Finds kinds by discovery."""
    import kr8s
    from kr8s.objects import ConfigMap as Kr8sConfigMap

    api = kr8s.api(kubeconfig=str(server.kubeconfig), namespace=namespace)
    item = Kr8sConfigMap(
        {"metadata": {"name": "settings", "namespace": namespace}, "data": {"colour": "blue"}}, api=api
    )
    item.create()
    assert "settings" in [found.name for found in api.get("configmaps", namespace=namespace)]
    item.patch({"data": {"colour": "red"}})
    for event, found in api.watch("configmaps", namespace=namespace):
        if found.name == "settings":
            assert (event, found.data) == ("ADDED", {"colour": "red"})
            break
    server.set_cluster_version(spec={"channel": "stable-5.0"})
    versions = list(api.get("clusterversions.config.openshift.io"))
    assert [version.raw["spec"]["channel"] for version in versions] == ["stable-5.0"]


HANDLER = """\
import kopf

@kopf.on.create("configmaps", labels={"painted": kopf.ABSENT})
@kopf.on.update("configmaps", field="data.colour")
def paint(body, patch, **_):
    patch.metadata.labels["painted"] = body["data"]["colour"]
"""


def test_kopf_runs_a_handler(server: Server, namespace: str, tmp_path: Path) -> None:
    """An operator of somebody else's framework: watches, handles, patches, keeps its own annotation."""
    handler = tmp_path / "handler.py"
    handler.write_text(HANDLER)
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--namespace", namespace, "--standalone", str(handler)]
    body = {"metadata": {"name": "settings", "namespace": namespace}, "data": {"colour": "blue"}}

    def label() -> Any:
        found = server.client.send(calls.get_raw(resource_of(ConfigMap), "settings", namespace))
        return found["metadata"].get("labels", {}).get("painted")

    with log.open("wb") as stream:
        environment = {"KUBECONFIG": str(server.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        running = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
        try:
            server.client.send(calls.create(resource_of(ConfigMap), body))
            eventually(lambda: label() == "blue" or running.poll() is not None, "the new object was painted")
            assert running.poll() is None, log.read_text()
            patch = {"data": {"colour": "red"}}
            server.client.send(calls.merge_patch(resource_of(ConfigMap), "settings", patch, namespace))
            eventually(lambda: label() == "red", "the changed object was painted again")
        finally:
            running.terminate()
            running.wait(60)
