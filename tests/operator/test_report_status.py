"""`cluster-version-operator report-status`: what a cluster puts where an agent takes it to a hub."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.documents import document
from tests.servers import CRD, Server, api_server, eventually

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock, machine_now
from kubesandbox.apiserver.access import certs
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.cli.operator.main import main
from runup.fleet.decide import newest_status
from runup.fleet.decide.newest_status import NewestStatus
from runup.preflight.decide.cluster_run import CONFIG_MAP, NAMESPACE, namespace_object
from runup.sandbox import crds

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
DNS = "dns"
RELEASE = {"version": "4.15.0", "image": f"quay.io/openshift-release-dev/ocp-release@sha256:{1:064}"}
ENTRY = {"state": "Completed", "startedTime": "2026-01-10T01:00:00Z", "completionTime": "2026-01-10T02:00:00Z"}


@pytest.fixture(scope="module")
def reading_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A separate server, with all kinds that are read of an OpenShift."""
    folder = tmp_path_factory.mktemp("reporting")
    with api_server(folder) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        for file in crds.definition_files(generally_available=True):
            client.send(calls.create(CRD, document(file)))
        server = Server(kubeconfig, client)
        eventually(lambda: _serves(server), "all kinds are served")
        yield server


def _serves(server: Server) -> bool:
    with suppress(NotFound):
        for kind in (ClusterVersion, ClusterOperator, MachineConfigPool, MachineConfig):
            server.client.send(calls.list_raw(resource_of(kind)))
        return True
    return False


@pytest.fixture
def reporting(reading_server: Server) -> Iterator[Server]:
    """A cluster with one operator at 4.15.0, and the namespace of the add-on without its ConfigMap."""
    server = reading_server
    server.client.send(
        calls.apply(namespace_object().resource, namespace_object().object, field_manager="test", force=True)
    )
    conditions = [{"type": "Progressing", "status": "False"}, {"type": "Failing", "status": "False"}]
    server.set_cluster_version(
        spec={"channel": "stable-4.16"},
        status={
            "desired": RELEASE,
            "history": [{**RELEASE, **ENTRY, "verified": True}],
            "conditions": [each | {"lastTransitionTime": "2026-01-10T02:00:00Z"} for each in conditions],
            "availableUpdates": [{"version": "4.15.9", "image": f"quay.io/x@sha256:{2:064}"}],
        },
    )
    kind = resource_of(ClusterOperator)
    # Without it, it is nothing that a release updates.
    metadata = {"name": DNS, "annotations": {"include.release.openshift.io/self-managed-high-availability": "true"}}
    operator = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {}}
    made = server.client.send(calls.create(kind, operator))
    status = {"versions": [{"name": "operator", "version": "4.15.0"}], "conditions": []}
    server.client.send(calls.replace(kind, made | {"status": status}, subresource="status"))
    yield server
    for made_kind, name, namespace in ((kind, DNS, ""), (CONFIG_MAP, newest_status.NAME, NAMESPACE)):
        with suppress(NotFound):
            server.client.send(calls.delete(made_kind, name, namespace))


def reported(server: Server) -> NewestStatus:
    """What the agent would take along."""
    kept = server.client.send(calls.get(ConfigMap, newest_status.NAME, NAMESPACE))
    return newest_status.unpack(b64encode(kept.binary_data[newest_status.STATUS]).decode())


@pytest.mark.slow
def test_without_the_add_on(reporting: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody but the add-on makes the ConfigMap."""
    assert main(["report-status", "--kubeconfig", str(reporting.kubeconfig)]) == 1
    assert "ConfigMap runup-preflight/status-newest: " in (said := capfd.readouterr().err)
    assert "the add-on of `runup fleet addon` creates it" in said


@pytest.mark.slow
def test_both_halves(reporting: Server) -> None:
    """How the update goes and what is offered, of now; of alerts that cannot be read, why."""
    before = SystemClock().now()
    reporting.client.send(calls.create(CONFIG_MAP, newest_status.empty_config_map()))
    assert main(["report-status", "--kubeconfig", str(reporting.kubeconfig)]) == 0
    found = reported(reporting)
    assert (found.status_problem, found.advice_problem) == ("", "")
    assert found.update_status is not None
    assert f'"{DNS}"' in json.dumps(found.update_status)
    assert found.cluster_version is not None
    assert [each["version"] for each in found.cluster_version["status"]["availableUpdates"]] == ["4.15.9"]
    assert found.precheck_problem == "no token is currently in use for this session"
    assert -60 < (found.observed_time - before).total_seconds() < 240


@pytest.mark.slow
def test_a_half_that_cannot_be_read(reporting: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """A cluster without operators has no status, as `upgrade status` says; its updates are reported all the same."""
    reporting.client.send(calls.create(CONFIG_MAP, newest_status.empty_config_map()))
    reporting.client.send(calls.delete(resource_of(ClusterOperator), DNS))
    assert main(["report-status", "--kubeconfig", str(reporting.kubeconfig)]) == 0
    found = reported(reporting)
    assert found.update_status is None
    assert "no cluster operator information available" in found.status_problem
    assert found.cluster_version is not None
    assert "could not be read, which is reported to the hub: no cluster operator" in capfd.readouterr().err


def test_what_a_server_says_acts_on_no_terminal(
    reporting: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It refuses by the name of who asks, which has an escape in it; whoever looks at the Pod's log has a terminal."""
    reporting.client.send(calls.create(CONFIG_MAP, newest_status.empty_config_map()))
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "keepers"}
    reporting.client.send(calls.apply(ROLES, {"metadata": {"name": "keepers"}, "rules": [rule]}, field_manager="test"))
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "keepers"}
    binding = {"metadata": {"name": "keepers"}, "roleRef": role, "subjects": [group]}
    reporting.client.send(calls.apply(BINDINGS, binding, field_manager="test"))
    ca, _ = certs.load_or_create(reporting.kubeconfig.parent / "pki", machine_now())
    pair = certs.issue_client(ca, "eve\x1b[31m", ("keepers",), machine_now())
    url = config.load(str(reporting.kubeconfig)).server
    (tmp_path / "eve").write_bytes(certs.build_kubeconfig(url, ca, "eve", certs.client_credentials(pair)))
    assert main(["report-status", "--kubeconfig", str(tmp_path / "eve")]) == 0
    shown = capfd.readouterr().err
    assert ("eve\\x1b[31m" in shown, "\x1b" in shown) == (True, False), shown


def test_a_cluster_without_a_clusterversion(reporting: Server) -> None:
    """The status of Kubernetes, and the reason for which there is no advice."""
    reporting.client.send(calls.create(CONFIG_MAP, newest_status.empty_config_map()))
    reporting.remove_cluster_version()
    assert main(["report-status", "--kubeconfig", str(reporting.kubeconfig)]) == 0
    found = reported(reporting)
    assert found.cluster_version is None
    assert found.update_status is not None
    assert found.update_status["kind"] == "UpdateStatus"
    assert found.advice_problem
