"""kubectl against the sandbox's API server: what people type on the first day works as on a real cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers import Server, eventually

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.xdist_group("clients"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on PATH"),
]

Kubectl = Callable[..., str]
CHANGES = 100

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: %s}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: registry.example/web:1}
      - {name: log, image: registry.example/log:1}
"""


@pytest.fixture
def kubectl(server: Server, namespace: str) -> Kubectl:
    """Run kubectl in the test's namespace; stdout, or the test fails with stderr unless `code` says otherwise."""

    def go(*words: str, stdin: str | None = None, code: int = 0) -> str:
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig), "-n", namespace, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    return go


def _cluster_version(server: Server) -> None:
    server.set_cluster_version(
        status={
            "desired": {"version": "5.0.0", "image": "x"},
            "history": [
                {
                    "state": "Completed",
                    "version": "5.0.0",
                    "image": "x",
                    "verified": True,
                    "startedTime": "2026-01-14T09:00:00Z",
                    "completionTime": "2026-01-14T09:30:00Z",
                }
            ],
        }
    )


def test_get_prints_the_kind_s_own_columns(kubectl: Kubectl, server: Server) -> None:
    """Printer columns of the CustomResourceDefinition."""
    _cluster_version(server)
    header, row = kubectl("get", "clusterversion").splitlines()
    assert header.split() == ["NAME", "VERSION", "AVAILABLE", "PROGRESSING", "SINCE", "STATUS"]
    assert row.split()[:2] == ["version", "5.0.0"]


def test_get_in_other_forms(kubectl: Kubectl) -> None:
    """JSON, name, a path, a selector."""
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "blue")
    kubectl("label", "configmap", "settings", "tier=front")
    assert json.loads(kubectl("get", "cm", "settings", "-o", "json"))["data"] == {"colour": "blue"}
    assert kubectl("get", "cm", "-l", "tier=front", "-o", "name") == "configmap/settings\n"
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.colour}") == "blue"
    assert "not found" in kubectl("get", "cm", "nothing", code=1)


def test_describe(kubectl: Kubectl, server: Server) -> None:
    """A custom resource and a built-in kind."""
    _cluster_version(server)
    assert "API Version:  config.openshift.io/v1" in kubectl("describe", "clusterversion", "version")
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "registry.example/web:1" in kubectl("describe", "deployment", "web")


def test_explain(kubectl: Kubectl) -> None:
    """Fields with their types, out of the server's OpenAPI."""
    text = kubectl("explain", "clusterversion.spec.desiredUpdate")
    assert "desiredUpdate <Object>" in text
    assert "mode" in text
    assert "replicas" in kubectl("explain", "deployment.spec")


def test_apply_on_the_client(kubectl: Kubectl) -> None:
    """created, configured, unchanged; a field that goes from the file goes from the object."""
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "blue") == "configmap/settings created\n"
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "red") == "configmap/settings configured\n"
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "red") == "configmap/settings unchanged\n"
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP.replace("colour: %s", "size: big"))
    assert json.loads(kubectl("get", "cm", "settings", "-o", "json"))["data"] == {"size": "big"}


def test_a_file_with_a_mistake_is_refused(kubectl: Kubectl) -> None:
    """Strict validation names the field."""
    wrong = CONFIG_MAP.replace("\ndata:", "\ndada:") % "blue"
    assert 'unknown field "dada"' in kubectl("apply", "-f", "-", stdin=wrong, code=1)


def test_apply_on_the_server_with_a_conflict(kubectl: Kubectl) -> None:
    """Two managers want one field: the second is refused with the first one's name, and may force."""
    first = ("apply", "--server-side", "--field-manager=first", "-f", "-")
    second = ("apply", "--server-side", "--field-manager=second", "-f", "-")
    assert kubectl(*first, stdin=CONFIG_MAP % "blue") == "configmap/settings serverside-applied\n"
    error = kubectl(*second, stdin=CONFIG_MAP % "red", code=1)
    assert 'conflict with "first": .data.colour' in error
    kubectl(*second, "--force-conflicts", stdin=CONFIG_MAP % "red")
    found = json.loads(kubectl("get", "cm", "settings", "-o", "json", "--show-managed-fields"))
    assert found["data"] == {"colour": "red"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}
    assert "f:data" in owners["second"]
    assert "f:data" not in owners.get("first", {})


def test_three_kinds_of_patch(kubectl: Kubectl) -> None:
    """Strategic merges the list of containers by name, merge replaces, JSON changes by position."""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    container = '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:2"}]}}}}'
    kubectl("patch", "deployment", "web", "--type=strategic", "-p", container)
    both = set(kubectl("get", "deployment", "web", "-o", images).split())
    assert both == {"registry.example/web:2", "registry.example/log:1"}
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"spec":{"replicas":5}}')
    operation = '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example/x:3"}]'
    kubectl("patch", "deployment", "web", "--type=json", "-p", operation)
    assert kubectl("get", "deployment", "web", "-o", images).split()[0] == "registry.example/x:3"
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "5"


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    """The object stays, marked, until the last finalizer is taken off."""
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "blue")
    kubectl("patch", "cm", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "cm", "settings", "--wait=false")
    assert "deletionTimestamp" in json.loads(kubectl("get", "cm", "settings", "-o", "json"))["metadata"]
    kubectl("patch", "cm", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "not found" in kubectl("get", "cm", "settings", code=1)


def test_watch_through_many_changes(kubectl: Kubectl, server: Server, namespace: str, tmp_path: Path) -> None:
    """`get -w` prints every one of a hundred changes, in order."""
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "v0")
    out = tmp_path / "watch.out"
    words = ["get", "cm", "settings", "-w", "-o", "jsonpath={.data.colour}{'\\n'}"]
    with out.open("wb") as stream:
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig), "-n", namespace, *words]
        watching = subprocess.Popen(command, stdout=stream)
        try:
            eventually(lambda: "v0" in out.read_text(), "the watch has begun")
            from kubekit.api.core_v1 import ConfigMap
            from kubekit.api.scheme import resource_of
            from kubekit.kube import calls

            for number in range(1, CHANGES + 1):
                patch = {"data": {"colour": f"v{number}"}}
                server.client.send(calls.merge_patch(resource_of(ConfigMap), "settings", patch, namespace))
            eventually(lambda: f"v{CHANGES}\n" in out.read_text(), "the last change was printed")
        finally:
            watching.terminate()
            watching.wait(60)
    assert out.read_text().splitlines() == [f"v{number}" for number in range(CHANGES + 1)]


def test_auth_can_i(kubectl: Kubectl) -> None:
    """The administrator may; an account without a role may not, and gets a role."""
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    kubectl("create", "serviceaccount", "reader")
    namespace = kubectl("get", "sa", "reader", "-o", "jsonpath={.metadata.namespace}")
    account = f"--as=system:serviceaccount:{namespace}:reader"
    kubectl("auth", "can-i", "list", "configmaps", account, code=1)
    kubectl("create", "role", "reading", "--verb=get,list,watch", "--resource=configmaps")
    kubectl("create", "rolebinding", "reading", "--role=reading", f"--serviceaccount={namespace}:reader")
    assert kubectl("auth", "can-i", "list", "configmaps", account) == "yes\n"
    assert "forbidden" in kubectl("get", "secrets", account, code=1)
    kubectl("get", "configmaps", account)
