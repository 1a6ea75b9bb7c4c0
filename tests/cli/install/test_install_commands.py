"""`runup install` and `runup uninstall` as typed, on servers that have what is installed, and leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Ran, Run
from tests.cli.commands import run as run
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.install import like_openshift
from tests.install.listing import everything, settled
from tests.servers import eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubesandbox.pytest_plugin import KubeApiFactory
from runup import __version__
from runup.install.decide.component import COMPONENTS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]
IMAGE = "registry.example/runup@sha256:" + "5" * 64
NEWER = "registry.example/runup@sha256:" + "6" * 64
NAMESPACE = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
DEPLOYMENT = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
CONFIG_MAP = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRET = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
CRD = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
CLUSTER_VERSION = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
ROLE = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
UPDATE_STATUS = COMPONENTS["update-status"]


@dataclass
class Shell:
    """A server, and commands typed at it."""

    kubeconfig: Path
    client: SyncClient
    run: Run

    def typed(self, *words: str, code: int = 0) -> Ran:
        """A command that ends with `code`."""
        ran = self.run(*words, "--kubeconfig", str(self.kubeconfig))
        assert ran.code == code, ran.out + ran.err
        return ran

    def deployment(self, name: str, namespace: str) -> dict[str, Any]:
        """As it is."""
        return self.client.send(calls.get_raw(DEPLOYMENT, name, namespace))

    def make(self, resource: Resource, name: str, namespace: str = "", **content: Any) -> dict[str, Any]:
        """An object of somebody else."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
        return self.client.send(calls.create(resource, obj))

    def is_too_old_for(self, name: str) -> bool:
        """Whether the server lacks what the component's definitions use."""
        version = json.loads(self.client.send(calls.get_path("/version")))
        return (int(version["major"]), int(version["minor"])) < COMPONENTS[name].kubernetes

    def refuses(self, *words: str) -> None:
        """An installation on a server that is too old says which one would do, and writes nothing."""
        before = self.settled()
        assert "; 1.30 is the oldest that is supported" in self.typed(*words, code=1).err
        assert self.settled() == before

    def settled(self) -> dict[str, str]:
        """Everything that there is."""
        return settled(self.client)


@pytest.fixture(scope="module")
def cluster(kube_api_factory: KubeApiFactory) -> Iterator[Path]:
    """The sandbox's server with controllers and a node on which pods are declared ready."""
    with kube_api_factory(node=True) as api:
        yield api.kubeconfig


@pytest.fixture(scope="module", params=SERVERS)
def any_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That one, and a real kube-apiserver without any controller."""
    if request.param == "sandbox":
        yield request.getfixturevalue("cluster")
        return
    with ControlPlane(tmp_path_factory.mktemp("controlplane"), programs()) as plane:
        yield plane.kubeconfig


@pytest.fixture
def shell(cluster: Path, run: Run) -> Iterator[Shell]:
    """The sandbox's server."""
    yield from _shell(cluster, run)


@pytest.fixture
def server(any_server: Path, run: Run) -> Iterator[Shell]:
    """Each server in turn."""
    yield from _shell(any_server, run)


def _shell(kubeconfig: Path, run: Run) -> Iterator[Shell]:
    with SyncClient(config.load(str(kubeconfig))) as client:
        yield Shell(kubeconfig, client, run)


# Those that need nothing else on the cluster, and may be in any namespace.
ALONE = [component.name for component in COMPONENTS.values() if not component.fixed]


@pytest.mark.parametrize("name", ALONE)
def test_what_is_installed_is_healthy_and_goes_without_a_trace(shell: Shell, name: str) -> None:
    """By a listing of the whole cluster before and after."""
    before = set(shell.settled())
    done = shell.typed("install", name, "--image", IMAGE, "--wait")
    assert done.out.splitlines()[-1].startswith(f"{name} is installed and healthy: runup ")
    again = shell.typed("install", name, "--image", IMAGE)
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
    shell.typed("uninstall", name, "--definitions", "--yes")
    assert set(shell.settled()) == before


def component_row(shell: Shell, name: str) -> tuple[str, str] | None:
    """The row of `runup check` about a component: its result and text; None where it is reported among the absent."""
    ran = shell.run("check", "-o", "json", "--kubeconfig", str(shell.kubeconfig))
    found = [row for row in json.loads(ran.out)["checks"] if row["name"] == f"component {name}"]
    assert bool(found) != (f" {name}" in json.loads(ran.out)["checks"][-2]["message"]), ran.out
    return (found[0]["result"], found[0]["message"]) if found else None


def test_update_policies_are_installed_next_to_the_operator(shell: Shell) -> None:
    """The operator must come first. Both are healthy, and leave nothing behind, their roles in other namespaces too."""
    before = set(shell.settled())
    name = "update-policy"
    refused = shell.typed("install", name, "--image", IMAGE, code=1).err
    assert "`runup install operator` creates both" in refused
    shell.typed("install", "operator", "--image", IMAGE)
    operator = set(shell.settled())
    done = shell.typed("install", name, "--image", IMAGE, "--wait")
    assert done.out.splitlines()[-1] == "update-policy is installed and healthy: runup upgrade policy explain"
    again = shell.typed("install", name, "--image", IMAGE)
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
    ready = f"runup {__version__} in namespace runup-update, 1 of 1 pods ready, its account has its rights"
    assert component_row(shell, name) == ("ok", ready)
    shell.typed("uninstall", name, "--definitions")
    assert set(shell.settled()) == operator
    shell.typed("uninstall", "operator", "--definitions", "--yes")
    assert set(shell.settled()) == before


@pytest.mark.parametrize("name", ALONE)
def test_a_check_says_what_is_installed(shell: Shell, name: str) -> None:
    """Before, when it is ready, and after it was removed; in whichever namespace."""
    assert component_row(shell, name) is None
    shell.make(NAMESPACE, f"checked-{name}")
    shell.typed("install", name, "--image", IMAGE, "--namespace", f"checked-{name}", "--wait")
    replicas = shell.deployment(COMPONENTS[name].deployment, f"checked-{name}")["spec"]["replicas"]
    ready = f"runup {__version__} in namespace checked-{name}, {replicas} of {replicas} pods ready"
    assert component_row(shell, name) == ("ok", f"{ready}, its account has its rights")
    shell.typed("uninstall", name, "--namespace", f"checked-{name}", "--definitions", "--yes")
    assert component_row(shell, name) is None


# The namespaces of the ConfigMaps with gates and acknowledgements.
_OF_GATES = ("openshift-config", "openshift-config-managed")


@pytest.mark.parametrize("name", ALONE)
def test_a_server_takes_every_object(server: Shell, name: str) -> None:
    """In a namespace that is somebody else's and stays; a dry run first, which writes nothing and foretells."""
    # No controller empties a namespace of a server alone, so that all of them must be somebody else's.
    for namespace in (f"theirs-{name}", *(_OF_GATES if name == "operator" else ())):
        server.make(NAMESPACE, namespace)
    before = server.settled()
    words = ("install", name, "--image", IMAGE, "--namespace", f"theirs-{name}")
    if server.is_too_old_for(name):
        server.refuses(*words, "--dry-run=server")
        server.refuses(*words)
        return
    foretold = server.typed(*words, "--dry-run=server").out
    assert everything(server.client) == before
    done = server.typed(*words).out
    assert foretold == "".join(f"{line} (server dry run)\n" for line in done.splitlines())
    assert f"namespace/theirs-{name} left to its owner" in done
    assert "unchanged" in server.typed(*words).out
    assert "configured" not in server.typed(*words).out
    foretold = server.typed("uninstall", name, "--definitions", "--yes", "--dry-run=server").out
    done = server.typed("uninstall", name, "--definitions", "--yes").out
    assert foretold == "".join(f"{line} (server dry run)\n" for line in done.splitlines())
    # Names alone: a definition that was there for a moment renumbers what the server publishes about itself.
    assert set(server.settled()) == set(before)


def test_without_definitions_users_objects_stay(shell: Shell) -> None:
    """And are there again after the next installation."""
    shell.typed("install", "update-status", "--image", IMAGE)
    statuses = Resource(
        group="update.openshift.io", version="v1alpha1", kind="UpdateStatus", plural="updatestatuses", namespaced=False
    )
    made = shell.make(statuses, "cluster", spec={})
    shell.typed("uninstall", "update-status")
    shell.typed("install", "update-status", "--image", IMAGE)
    assert shell.client.send(calls.get_raw(statuses, "cluster"))["metadata"]["uid"] == made["metadata"]["uid"]
    shell.typed("uninstall", "update-status")
    # What an uninstallation left, the next one finds.
    gone = shell.typed("uninstall", "update-status", "--definitions").out
    assert gone.split() == [
        "customresourcedefinition.apiextensions.k8s.io/hostedclusterupdatestatuses.update.openshift.io",
        "deleted",
        "customresourcedefinition.apiextensions.k8s.io/updatestatuses.update.openshift.io",
        "deleted",
    ]
    refused = shell.typed("uninstall", "update-status", "--definitions", code=1).err
    assert "no namespace has a ConfigMap runup-install-update-status" in refused


@pytest.fixture
def installed(shell: Shell) -> Iterator[Shell]:
    """The update status controller is installed, and gone after the test."""
    shell.typed("install", "update-status", "--image", IMAGE)
    yield shell
    shell.typed("uninstall", "update-status", "--definitions")


def test_an_upgrade_is_in_place_and_a_downgrade_is_an_upgrade(installed: Shell) -> None:
    """Objects keep their identity; the inventory names what is there."""
    before = installed.deployment("update-status-controller", UPDATE_STATUS.namespace)
    for image in (NEWER, IMAGE):
        done = installed.typed("install", "update-status", "--image", image).out
        changed = [line for line in done.splitlines() if not line.endswith("unchanged")]
        assert changed == [
            "deployment.apps/update-status-controller in openshift-update-status-controller configured",
        ]
        after = installed.deployment("update-status-controller", UPDATE_STATUS.namespace)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["template"]["spec"]["containers"][0]["image"] == image
        parent = calls.get_raw(CONFIG_MAP, "runup-install-update-status", UPDATE_STATUS.namespace)
        assert installed.client.send(parent)["data"]["image"] == image


def test_what_another_version_had_is_pruned(installed: Shell) -> None:
    """By the label of the set and the kinds of the inventory, also of a kind that this version does not have."""
    parent = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
    name, namespace = "runup-install-update-status", UPDATE_STATUS.namespace
    kinds = "applyset.kubernetes.io/contains-group-kinds"
    found = installed.client.send(calls.get_raw(parent, name, namespace))
    set_id = found["metadata"]["labels"]["applyset.kubernetes.io/id"]
    labels = {"applyset.kubernetes.io/part-of": set_id}
    for resource, each in ((SECRET, "old"), (ROLE, "old-role")):
        place = {"namespace": namespace} if resource.namespaced else {}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind}
        installed.client.send(calls.create(resource, {**obj, "metadata": {"name": each, "labels": labels, **place}}))
    installed.make(SECRET, "theirs", namespace)
    patch = {"metadata": {"annotations": {kinds: found["metadata"]["annotations"][kinds] + ",Secret"}}}
    installed.client.send(calls.merge_patch(parent, name, patch, namespace))
    done = installed.typed("install", "update-status", "--image", IMAGE).out
    pruned = [line for line in done.splitlines() if line.endswith("pruned")]
    assert pruned == [
        f"secret/old in {namespace} pruned",
        "clusterrole.rbac.authorization.k8s.io/old-role pruned",
    ]
    installed.client.send(calls.get_raw(SECRET, "theirs", namespace))
    assert (
        "Secret" not in installed.client.send(calls.get_raw(parent, name, namespace))["metadata"]["annotations"][kinds]
    )


def test_which_installation_is_meant_is_asked(installed: Shell) -> None:
    """Any writer of ConfigMaps can fake an inventory in another namespace, so nothing is removed on a guess."""
    installed.make(NAMESPACE, "tenant")
    labels = {"install.runup.dev/component": "update-status"}
    for name in ("runup-install-update-status", "another"):
        metadata = {"name": name, "namespace": "tenant", "labels": labels}
        parent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        installed.client.send(calls.create(CONFIG_MAP, parent))
    asked = installed.typed("uninstall", "update-status", code=1).err
    assert "in namespaces openshift-update-status-controller, tenant: name one with --namespace" in asked
    refused = installed.typed("install", "update-status", "--image", IMAGE, code=1).err
    assert "is installed in namespace tenant" in refused
    assert installed.typed("uninstall", "update-status", "--namespace", "tenant").out == ""
    installed.client.send(calls.delete(NAMESPACE, "tenant"))


def test_what_somebody_else_set_is_not_taken_away(installed: Shell) -> None:
    """The field and its manager are named, with the flag that takes it all the same."""
    patch = {"spec": {"template": {"spec": {"priorityClassName": None, "terminationGracePeriodSeconds": 5}}}}
    name, namespace = "update-status-controller", UPDATE_STATUS.namespace
    installed.client.send(calls.merge_patch(DEPLOYMENT, name, patch, namespace))
    # A field that is not ours is nobody's matter here.
    installed.typed("install", "update-status", "--image", IMAGE)
    patch = {"spec": {"replicas": 0}}
    installed.client.send(calls.merge_patch(DEPLOYMENT, name, patch, namespace, field_manager="kubectl-scale"))
    refused = installed.typed("install", "update-status", "--image", IMAGE, code=1).err
    assert "kubectl-scale" in refused
    assert ".spec.replicas" in refused
    assert "--force-conflicts" in refused
    installed.typed("install", "update-status", "--image", IMAGE, "--force-conflicts")
    assert installed.deployment(name, namespace)["spec"]["replicas"] == 1


def test_the_managing_operator_is_left_alone(shell: Shell) -> None:
    """A Deployment of that name anywhere is enough; nothing is written."""
    shell.make(NAMESPACE, "openshift-cluster-version")
    pod = {"containers": [{"name": "cluster-version-operator", "image": "quay.io/release"}]}
    labels = {"k8s-app": "cluster-version-operator"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    shell.make(DEPLOYMENT, "cluster-version-operator", "openshift-cluster-version", spec=spec)
    before = set(shell.settled())
    for flags in ((), ("--take-over",)):
        refused = shell.typed("install", "operator", "--image", IMAGE, *flags, code=1).err
        assert "openshift-cluster-version/cluster-version-operator (quay.io/release)" in refused
        assert set(shell.settled()) == before
    patch = {"spec": {"replicas": 0}}
    shell.client.send(calls.merge_patch(DEPLOYMENT, "cluster-version-operator", patch, "openshift-cluster-version"))
    assert "--take-over" in shell.typed("install", "operator", "--image", IMAGE, code=1).err
    shell.typed("install", "operator", "--image", IMAGE, "--take-over", "--dry-run=server")
    shell.client.send(calls.delete(NAMESPACE, "openshift-cluster-version"))
    eventually(lambda: not [each for each in shell.settled() if "openshift-cluster-version/" in each], "it is gone")


def test_a_plain_cluster_gets_a_cluster_version_which_is_kept(shell: Shell) -> None:
    """With a separate name, also when the operator goes and comes back."""
    shell.typed("install", "operator", "--image", IMAGE)
    first = shell.client.send(calls.get_raw(CLUSTER_VERSION, "version"))["spec"]["clusterID"]
    shell.typed("uninstall", "operator")
    refused = shell.typed("uninstall", "operator", "--definitions", code=1).err
    assert "add --yes" in refused
    shell.typed("install", "operator", "--image", IMAGE)
    assert shell.client.send(calls.get_raw(CLUSTER_VERSION, "version"))["spec"]["clusterID"] == first
    shell.typed("uninstall", "operator", "--definitions", "--yes")


def test_what_preflights_left_goes_with_the_operator(shell: Shell) -> None:
    """The rights of a dedicated account: nobody is there any more to end that preflight."""
    shell.typed("install", "operator", "--image", IMAGE)
    shell.make(ROLE, "cluster-version-operator-preflight", rules=[])
    gone = shell.typed("uninstall", "operator", "--definitions", "--yes").out
    assert "clusterrole.rbac.authorization.k8s.io/cluster-version-operator-preflight deleted" in gone
    assert not [each for each in shell.settled() if "cluster-version-operator-preflight" in each]


def test_an_uninstallation_that_was_refused_is_typed_again(shell: Shell) -> None:
    """At what preflights left: the second one finds it, and what else the first one did not remove."""
    before = set(shell.settled())
    shell.typed("install", "operator", "--image", IMAGE)
    shell.make(ROLE, "cluster-version-operator-preflight", rules=[])
    held = {"expression": "request.name != 'cluster-version-operator-preflight'", "message": "it is held"}
    rules = {"matchConstraints": {"resourceRules": [DELETIONS_OF_ROLES]}, "validations": [held]}
    shell.make(POLICY, "held", spec=rules)
    shell.make(BINDING, "held", spec={"policyName": "held", "validationActions": ["Deny"]})
    assert "it is held" in shell.typed("uninstall", "operator", "--definitions", "--yes", code=1).err
    for resource in (BINDING, POLICY):
        shell.client.send(calls.delete(resource, "held"))
    shell.typed("uninstall", "operator", "--definitions", "--yes")
    assert set(shell.settled()) == before


ADMISSION = "admissionregistration.k8s.io"
POLICY = Resource(
    group=ADMISSION,
    version="v1",
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    namespaced=False,
)
BINDING = Resource(
    group=ADMISSION,
    version="v1",
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    namespaced=False,
)
DELETIONS_OF_ROLES: dict[str, Any] = {
    "operations": ["DELETE"],
    "apiGroups": [ROLE.group],
    "apiVersions": ["*"],
    "resources": ["clusterroles"],
}


def test_a_certificate_is_kept_as_long_as_it_is_good(shell: Shell) -> None:
    """And the definitions trust the authority that it is from."""
    shell.typed("install", "kernel-modules", "--image", IMAGE)
    secret = calls.get_raw(SECRET, "kernel-module-preflight-serving-cert", "openshift-kernel-module-preflight")
    first = shell.client.send(secret)["data"]
    shell.typed("install", "kernel-modules", "--image", NEWER)
    assert shell.client.send(secret)["data"] == first
    definition = shell.client.send(calls.get_raw(CRD, "preflightvalidationsocp.kmm.sigs.x-k8s.io"))
    assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == first["ca.crt"]
    shell.typed("uninstall", "kernel-modules", "--definitions")


def test_what_does_not_become_healthy_says_why(kube_api_factory: KubeApiFactory, run: Run) -> None:
    """After the time that was given, with the words of its pods; what was applied stays, to be looked at."""
    with kube_api_factory(node=False) as api, SyncClient(config.load(str(api.kubeconfig))) as client:
        shell = Shell(api.kubeconfig, client, run)
        failed = shell.typed("install", "update-status", "--image", IMAGE, "--wait", "--timeout", "3", code=1).err
        assert failed.startswith("error: after 3 s: waiting on ")
        assert "pod update-status-controller-" in failed
        shell.typed("uninstall", "update-status", "--definitions")


def test_what_is_printed_is_what_is_applied(server: Shell) -> None:
    """But for the label of the set; nothing is written."""
    before = server.settled()
    printed = server.typed("install", "update-status", "--image", IMAGE, "-o", "yaml").out
    assert everything(server.client) == before
    objects = [obj for obj in yaml.safe_load_all(printed) if obj]
    done = server.typed("install", "update-status", "--image", IMAGE, "--dry-run=server").out
    assert [obj["metadata"]["name"] for obj in objects] == [
        line.partition("/")[2].split()[0] for line in done.splitlines()
    ]


@pytest.fixture(scope="module", params=SERVERS)
def openshift_server(
    request: pytest.FixtureRequest, kube_api_factory: KubeApiFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Each server with what OpenShift has."""
    with ExitStack() as stack:
        if request.param == "sandbox":
            kubeconfig = stack.enter_context(kube_api_factory(node=True)).kubeconfig
        else:
            plane = ControlPlane(tmp_path_factory.mktemp("controlplane"), programs())
            kubeconfig = stack.enter_context(plane).kubeconfig
        with SyncClient(config.load(str(kubeconfig))) as client:
            like_openshift.furnish(client)
        yield kubeconfig


@pytest.fixture
def openshift(openshift_server: Path, run: Run) -> Iterator[Shell]:
    """A server with what OpenShift has."""
    yield from _shell(openshift_server, run)


@pytest.mark.parametrize("name", ["update-status", "kernel-modules", "update-policy", "fleet-update"])
def test_what_works_beside_openshifts_operator_is_taken_whole(openshift: Shell, name: str) -> None:
    """With monitors and alerts; the namespace is made beforehand, since nobody empties one on a bare server."""
    component = COMPONENTS[name]
    openshift.make(NAMESPACE, component.namespace)
    before = set(openshift.settled())
    if openshift.is_too_old_for(name):
        openshift.refuses("install", name, "--image", IMAGE)
        return
    done = openshift.typed("install", name, "--image", IMAGE).out
    assert f"servicemonitor.monitoring.coreos.com/{component.deployment} in {component.namespace} created" in done
    again = openshift.typed("install", name, "--image", IMAGE).out.splitlines()
    assert again[0] == f"namespace/{component.namespace} left to its owner"
    assert {line.split()[-1] for line in again[1:]} == {"unchanged"}
    openshift.typed("uninstall", name, "--definitions")
    assert set(openshift.settled()) == before


def test_openshifts_operator_is_refused_where_it_cannot_be_seen(openshift: Shell) -> None:
    """Its ClusterVersion reports it, as on a hosted control plane; its definition is left to it in any case."""
    before = openshift.settled()
    refused = openshift.typed("install", "operator", "--image", IMAGE, code=1).err
    assert "keeps this cluster's ClusterVersion" in refused
    assert openshift.settled() == before
    tried = openshift.typed("install", "operator", "--image", IMAGE, "--take-over", "--dry-run=server").out
    assert "clusterversions.config.openshift.io" not in tried
    assert "clusterrolebinding.rbac.authorization.k8s.io/cluster-version-operator-applies created" in tried
