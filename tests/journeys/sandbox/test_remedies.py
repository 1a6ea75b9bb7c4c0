"""The remedies of checks, typed: what a finding or its page says to run makes the finding disappear.

Each row plants the example of a check on the sandbox's API server, runs the remedy with kubectl, reads the objects back
and runs the check again.

Remedies that no API server can carry out have no row: to repair or replace nodes, images, certificates, disks and etcd
members; to update or reinstall other products (add-ons, operators of OLM, CSI drivers, Ceph, cloud accounts); to move
data; to wait. Neither have those whose effect another component writes into a status: the machine-config operator
(KubeletConfigs, managed boot images), OLM (approved InstallPlans), the node maintenance operator (its taint), the
controllers of quotas and budgets, and a router's conditions.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import load as load_kubeconfig
from kubekit.lang import yaml as kyaml
from kubesandbox.testing import KubeApi, kube_api
from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.snapshots import snapshot_of

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on PATH")

JSON = dict[str, Any]
BY_NAME = {check.name: check for check in CHECKS}
SHORT = {"MachineConfigPool": "mcp", "MachineHealthCheck": "mhc", "SecurityContextConstraints": "scc"}
ANY_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Groups of *.k8s.io are Kubernetes' own; those below are defined by others all the same.
APPROVED = {"api-approved.kubernetes.io": "unapproved, for a test"}
NOTHING = {"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["nothings"]}
# Kinds of which the server has objects that are no part of an example.
SHARED = (
    "CustomResourceDefinition",
    "Namespace",
    "FlowSchema",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)
DEFINED = ("migration.k8s.io", "k8s.ovn.org")


class Row(NamedTuple):
    """A check, the command as its page or finding prints it, what is typed for its placeholders, and the cluster.

    A remedy that names a field instead of a command has the field as `printed`, and the whole command in `typed`. Words
    of the example are replaced by `changes`; `more` are further objects. `page` is the risk if the check has several.
    """

    check: str
    printed: str
    typed: dict[str, str] | str
    changes: tuple[tuple[str, str], ...] = ()
    more: str = ""
    page: str = ""


READY = 'metadata: {name: worker-1}\nstatus: {conditions: [{type: Ready, status: "True"}]}\n'
ACKS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-acks, namespace: openshift-config}\n"
GATE = "ack-5.0-kube-1.37-api-removals-in-5.1"
OPERATOR_NETWORK = "apiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\n"
CORDONED = (
    "apiVersion: v1\nkind: Node\nmetadata: {name: worker-0}\nspec: {unschedulable: true}\n"
    'status: {conditions: [{type: Ready, status: "True"}]}\n'
)
PAUSED = (
    "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: worker}\n"
    "spec: {paused: true}\nstatus: {machineCount: 2}\n"
)
NO_OVERRIDES = '{"spec":{"unsupportedConfigOverrides":null}}'

ROWS = (
    Row("AdminAck", """oc -n openshift-config patch cm admin-acks --type=merge -p '{"data":{"GATE":"true"}}'""",
        {"GATE": GATE}, more=ACKS),
    Row("AdmissionPolicyDeniesUpdate", "delete its bindings", "delete validatingadmissionpolicybindings --all"),
    Row("AdmissionPolicyParamMissing", "delete the policy's bindings",
        "delete validatingadmissionpolicybindings --all"),
    Row("CgroupV1",
        """oc patch nodes.config.openshift.io cluster --type=merge -p '{"spec":{"cgroupMode":"v2"}}'""", {}),
    Row("CloudCredentialsNotReady", "annotate CloudCredential cluster with it",
        "annotate cloudcredential cluster cloudcredential.openshift.io/upgradeable-to=5.2.0"),
    Row("ClusterVersionOverrides", "Remove these entries from spec.overrides",
        """patch clusterversion version --type=merge -p '{"spec":{"overrides":null}}'"""),
    Row("ExecNeedsCreate", "Grant create of these subresources, too, in the same rule",
        """patch clusterrole debuggers --type=json -p '[{"op":"add","path":"/rules/0/verbs/-","value":"create"}]'"""),
    Row("MachineConfigPoolPaused", """oc patch mcp/<pool> --type=merge -p '{"spec":{"paused":false}}'""",
        {"<pool>": "worker"}, more=PAUSED),
    Row("NodeHealth", "oc adm uncordon NAME", {"NAME": "worker-0"}, more=CORDONED, page="NodeCordoned"),
    Row("RemovedNodeLabel", "Write node-role.kubernetes.io/control-plane in the template",
        """patch deployment backup -n ops --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":"""
        """{"node-role.kubernetes.io/master":null,"node-role.kubernetes.io/control-plane":""}}}}}'"""),
    Row("WebhookRemovedVersion", "Name a version in the rule that the target serves",
        """patch validatingwebhookconfiguration fairness --type=json """
        """-p '[{"op":"replace","path":"/webhooks/0/rules/0/apiVersions","value":["v1"]}]'"""),
    Row("AdmissionPolicyRemovedVersion", "Name a version in the rule that the target serves",
        """patch validatingadmissionpolicy service-ranges --type=json """
        """-p '[{"op":"replace","path":"/spec/matchConstraints/resourceRules/0/apiVersions","value":["v1"]}]'"""),
    Row("CRDStoredVersionDropped", "oc patch crd NAME --subresource=status --type=merge -p ...",
        {"NAME": "machines.machine.openshift.io", "...": """'{"status":{"storedVersions":["v1beta1"]}}'"""}),
    Row("EgressIPOneNode", "oc label node NAME k8s.ovn.org/egress-assignable=", {"NAME": "worker-1"},
        changes=(("metadata: {name: worker-1}\n", READY),)),
    Row("GatewayAPIForeign", "delete them", "delete crd tcproutes.gateway.networking.k8s.io"),
    Row("ImageRegistryEphemeral", "a volume",
        """patch configs.imageregistry.operator.openshift.io cluster --type=merge """
        """-p '{"spec":{"storage":{"emptyDir":null,"pvc":{"claim":""}}}}'"""),
    Row("InternalSubnetOverlap",
        """oc patch network.operator.openshift.io cluster --type=merge -p '{"spec":{"defaultNetwork":"""
        """{"ovnKubernetesConfig":{"ipv4":{"internalTransitSwitchSubnet":"RANGE"}}}}}'""",
        {"RANGE": "100.99.0.0/16"}, more=OPERATOR_NETWORK),
    Row("MachineHealthCheckActive",
        'oc -n openshift-machine-api annotate mhc NAME cluster.x-k8s.io/paused=""', {"NAME": "workers"}),
    Row("MaxUnavailableUnsafe", """oc patch mcp/master --type=merge -p '{"spec":{"maxUnavailable":1}}'""", {}),
    Row("NetworkMigrationUnfinished",
        """oc patch network.operator.openshift.io cluster --type=merge -p '{"spec":{"migration":null}}'""", {},
        changes=((", migration: {networkType: OVNKubernetes}", ""), ("networkType: OpenShiftSDN", "")),
        more=f"{OPERATOR_NETWORK}spec: {{migration: {{networkType: OVNKubernetes}}}}\n"),
    Row("PlatformNodeSelector", "oc annotate namespace NAME openshift.io/node-selector=",
        {"NAME": "openshift-network-console"}),
    Row("PlatformPodsCutOff", "delete those", "delete networkpolicy --all -n openshift-dns-operator"),
    Row("PlatformPodsLimited", "oc delete limitrange defaults -n kube-system", {}),
    Row("PodReferencesMissing", "Recreate what is missing", "create priorityclass important --value=1"),
    Row("PodSecurityViolated", "the namespace's label pod-security.kubernetes.io/enforce",
        "label namespace shop --overwrite pod-security.kubernetes.io/enforce=privileged"),
    Row("PodsNotPlaceable", "oc label node", "label node worker-0 disk=fast"),
    Row("PodsPinnedToNode", "oc label node", "label node worker-1 --overwrite licensed=yes"),
    Row("RemovedAdmissionPlugin", "Take it out of KubeAPIServer cluster",
        f"patch kubeapiserver cluster --type=merge -p '{NO_OVERRIDES}'"),
    Row("RemovedFeatureGate", "Take it out of KubeletConfig workers",
        """patch kubeletconfig workers --type=merge -p '{"spec":{"kubeletConfig":{"featureGates":null}}}'"""),
    Row("RemovedFlag", "Take it out of KubeAPIServer cluster",
        f"patch kubeapiserver cluster --type=merge -p '{NO_OVERRIDES}'"),
    Row("RouterAlone",
        """oc -n openshift-ingress-operator patch ingresscontroller NAME --type=merge -p '{"spec":{"replicas":2}}'""",
        {"NAME": "partners"}),
    Row("RoutersFillNodes", "ask for fewer",
        """-n openshift-ingress-operator patch ingresscontroller default --type=merge -p '{"spec":{"replicas":1}}'"""),
    Row("SecurityContextConstraintsPreferred", "priority: null",
        """patch scc backup-vendor --type=merge -p '{"priority":null}'"""),
    Row("SpreadOnOneNode", "give them a PodDisruptionBudget",
        "create poddisruptionbudget web -n shop --selector=app=web --min-available=1"),
    Row("StorageVersionMigrationFailed",
        "oc get storageversionmigration NAME -o yaml | oc replace --force -f -",
        {"NAME": "flowcontrol-flowschema-storage-version-migration"}),
    Row("TargetOnlyMirrored", "Name a mirror that nodes may use",
        """patch imagedigestmirrorset releases --type=merge -p '{"spec":{"imageDigestMirrors":[{"source":"""
        """"quay.io/example/release","mirrors":["other.example.com/release"]}]}}'"""),
    Row("TargetRegistryRefused", "name the registry in `spec.registrySources.allowedRegistries`",
        """patch image.config.openshift.io cluster --type=merge """
        """-p '{"spec":{"registrySources":{"allowedRegistries":["quay.io"]}}}'"""),
    Row("UnmanagedPods", "delete them", "delete pod --all -n shop --wait=false --force"),
    Row("UnsupportedConfigOverrides", "take the overrides out",
        f"patch kubescheduler cluster --type=merge -p '{NO_OVERRIDES}'"),
    Row("WebhookBlocksUpdate", "Delete ValidatingWebhookConfiguration policies",
        "delete validatingwebhookconfiguration policies"),
)  # fmt: skip


@pytest.fixture(scope="module")
def api() -> Iterator[KubeApi]:
    """A server of all kinds that the checks of the rows read; those of other groups take any field."""
    reads = {read for row in ROWS for read in BY_NAME[row.check].reads}
    with tempfile.TemporaryDirectory() as folder, kube_api(folder, controllers=False) as started:
        custom = [
            read
            for read in reads
            if read.group in DEFINED or ("." in read.group and not read.group.endswith(".k8s.io"))
        ]
        started.load([definition(read) for read in {(each.group, each.plural): each for each in custom}.values()])
        yield started


def definition(read: Resource) -> JSON:
    """The definition of a kind whose objects may have any fields, and a status of their own if they are migrated."""
    names: JSON = {"kind": read.kind, "plural": read.plural, "singular": read.kind.lower()}
    if read.kind in SHORT:
        names["shortNames"] = [SHORT[read.kind]]
    version: JSON = {"name": read.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": ANY_OBJECT}}
    if read.group == "migration.k8s.io":
        version["subresources"] = {"status": {}}
    scope = "Namespaced" if read.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{read.plural}.{read.group}", "annotations": APPROVED},
        "spec": {"group": read.group, "scope": scope, "names": names, "versions": [version]},
    }


def completed(given: JSON) -> JSON:
    """An object of an example with the fields that a server demands."""
    obj = json.loads(json.dumps(given))
    spec, kind = obj.get("spec") or {}, obj["kind"]
    templates = [obj] if kind == "Pod" else [spec["template"]] if kind in ("Deployment", "DaemonSet") else []
    if kind in ("Deployment", "DaemonSet"):
        spec.setdefault("selector", {"matchLabels": {"app": "web"}})
        spec["template"].setdefault("metadata", {}).setdefault("labels", spec["selector"]["matchLabels"])
    for template in templates:
        containers = template.setdefault("spec", {}).setdefault("containers", [{"name": "a"}])
        for container in containers:
            container.setdefault("image", "registry.example/a:1")
    for owner in obj["metadata"].get("ownerReferences", ()):
        owner |= {"apiVersion": owner.get("apiVersion", "apps/v1"), "uid": owner.get("uid", "1")}
    for webhook in obj.get("webhooks", ()):
        webhook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
    if kind == "ValidatingAdmissionPolicy":
        spec.setdefault("validations", [{"expression": "true"}])
        spec.setdefault("matchConstraints", {"resourceRules": [NOTHING]})
    if kind == "CustomResourceDefinition":
        spec.setdefault("scope", "Cluster")
        for version in spec["versions"]:
            version["schema"] = {"openAPIV3Schema": ANY_OBJECT}
        obj["metadata"].setdefault("annotations", {}).update(APPROVED)
    return obj


class Planted:
    """The objects of a row on the server."""

    def __init__(self, client: SyncClient, check: Check, objects: list[JSON]) -> None:
        self.client, self.check = client, check
        kinds = {(each.api_version, each.kind): each for each in check.reads}
        self.objects = [(kinds[obj["apiVersion"], obj["kind"]], completed(obj)) for obj in objects]
        for namespace in sorted({str(obj["metadata"].get("namespace", "default")) for obj in objects} - {"default"}):
            self._create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        # Labels of a namespace may refuse pods that are already in it.
        for resource, obj in sorted(self.objects, key=lambda each: each[1]["kind"] == "Namespace"):
            self._create(resource, obj)

    def _create(self, resource: Resource, obj: JSON) -> None:
        metadata = obj["metadata"]
        try:
            made = self.client.send(calls.get_raw(resource, metadata["name"], metadata.get("namespace", "")))
            made = self.client.send(calls.replace(resource, {**obj, "metadata": {**made["metadata"], **metadata}}))
        except NotFound:
            made = self.client.send(calls.create(resource, obj))
        if "status" in obj and made.get("status") != obj["status"]:
            status = {**(made.get("status") or {}), **obj["status"]}
            self.client.send(calls.replace(resource, {**made, "status": status}, subresource="status"))

    def found(self) -> set[str]:
        """What the check finds on the server."""
        objects: list[JSON] = []
        for read in dict.fromkeys(self.check.reads):
            own = self._own(read)
            objects += [{"apiVersion": read.api_version, "kind": read.kind, **obj} for obj in own]
        _, context = check_page.example(self.check)
        findings = run_check(self.check, snapshot_of(self.check.reads, objects), context).findings
        return {finding.name for finding in findings}

    def _own(self, read: Resource) -> list[JSON]:
        """The objects of a kind, without definitions of the test's own kinds and what the server brings."""
        names = {one["metadata"]["name"] for resource, one in self.objects if resource.kind == read.kind}
        listed: list[JSON] = []
        # The server does not serve every version that a check reads.
        with suppress(NotFound):
            listed = list(self.client.send(calls.list_raw(read, namespace_of(read))).items)
        return [obj for obj in listed if read.kind not in SHARED or obj["metadata"]["name"] in names]

    def remove(self) -> None:
        """Takes the objects, and what a remedy made, off the server."""
        for read in dict.fromkeys(self.check.reads):
            for metadata in (obj["metadata"] for obj in self._own(read) if read.kind != "Namespace"):
                delete = calls.delete(read, metadata["name"], metadata.get("namespace", ""), grace_period_s=0)
                with suppress(NotFound):
                    self.client.send(delete)


NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)


def type_in(api: KubeApi, command: str) -> None:
    """Runs the kubectl commands of a line."""
    kubectl = f"kubectl --kubeconfig {shlex.quote(str(api.kubeconfig))}"
    line = " | ".join(
        f"{kubectl} {part.strip().removeprefix('oc ').removeprefix('adm ')}" for part in command.split("|")
    )
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.fixture
def plant(api: KubeApi) -> Iterator[Callable[[Check, list[JSON]], Planted]]:
    """Plants objects, and removes them after the test."""
    planted: list[Planted] = []
    with SyncClient(load_kubeconfig(str(api.kubeconfig))) as client:

        def on_server(check: Check, objects: list[JSON]) -> Planted:
            planted.append(Planted(client, check, objects))
            return planted[-1]

        yield on_server
        for each in planted:
            each.remove()


@pytest.mark.parametrize("row", ROWS, ids=[row.check for row in ROWS])
def test_the_remedy_ends_the_finding(row: Row, api: KubeApi, plant: Callable[[Check, list[JSON]], Planted]) -> None:
    """The check applies to what is planted, and no longer once its remedy is typed."""
    text = BY_NAME[row.check].example
    for old, new in row.changes:
        assert old in text
        text = text.replace(old, new)
    check = replace(BY_NAME[row.check], example=text)
    documents = [each for each in kyaml.load_all(f"{text}\n---\n{row.more}") if each and "kind" in each]
    planted = plant(
        check, [each for each in documents if (each["metadata"].get("annotations") or {}).get("example") != "target"]
    )
    risk = row.page or row.check
    assert risk in {name.partition("-")[0] for name in planted.found()}
    page = " ".join(Path("docs/reference/checks", f"{risk}.md").read_text().split())
    assert row.printed in page or any(row.printed in fix for fix in fixes(check))
    command = row.typed if isinstance(row.typed, str) else row.printed
    for word, meant in () if isinstance(row.typed, str) else row.typed.items():
        command = command.replace(word, meant)
    type_in(api, command)
    assert planted.found() == set()


def fixes(check: Check) -> list[str]:
    """The remedies of the findings on the check's example."""
    snapshot, context = check_page.example(check)
    return [finding.remediation for finding in run_check(check, snapshot, context).findings]
