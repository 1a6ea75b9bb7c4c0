"""The manifests as a release carries them: pods that can do little, and rights that the page argues for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.documents import documents

from runup.cli.operator.main import COMMANDS
from runup.kernelmodules.control import process as conversion_webhook
from runup.release.control.image_build import release_metadata
from runup.release.decide.payload import load_payload

ROOT = Path(__file__).parents[2]
JSON = dict[str, Any]
NAMESPACES = (
    "openshift-cluster-version-operator",
    "openshift-update-status-controller",
    "openshift-kernel-module-preflight",
    "runup-update",
    "runup-fleet",
)
# Whether a folder of the node has to be written, for which a pod is root.
WORKLOADS = {
    "cluster-version-operator": True,
    "update-status-controller": False,
    "kernel-module-preflight": False,
    "update-controller": False,
    "fleet-controller": False,
}
# The API server asks these from the nodes' network, which no selector of a policy takes.
WEBHOOKS = ("kernel-module-preflight",)


# What the other forms are made of (tests/deploy/test_install_forms.py).
FOLDERS = ("manifests", "update-status", "kernel-module-preflight", "update-policy", "fleet-update")


def manifests() -> Iterator[JSON]:
    """Every object of deploy/ that is written by hand."""
    for folder in FOLDERS:
        for path in sorted((ROOT / "deploy" / folder).rglob("*.yaml")):
            yield from documents(path)


def named(kind: str, name: str) -> JSON:
    """The only object of that kind and name."""
    (found,) = (obj for obj in manifests() if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_can_do_little(name: str) -> None:
    """Seccomp, no privileges, limits; root only for a folder of the node."""
    pod = named("Deployment", name)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["readOnlyRootFilesystem"] is True and security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    assert {"hostPID", "hostIPC", "hostNetwork"}.isdisjoint(pod)
    folders = [volume["hostPath"]["path"] for volume in pod.get("volumes", ()) if "hostPath" in volume]
    assert bool(folders) is WORKLOADS[name]
    assert (security.get("runAsUser") == 0) is WORKLOADS[name]
    assert pod["securityContext"].get("runAsNonRoot", False) is not WORKLOADS[name]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_release_has_the_program(name: str) -> None:
    """A release's image starts `cluster-version-operator`, whose commands the others are; it has no other program."""
    (container,) = named("Deployment", name)["spec"]["template"]["spec"]["containers"]
    assert "command" not in container
    assert container["args"][0] in COMMANDS


@pytest.mark.parametrize("name", WORKLOADS)
def test_an_event_loop_that_stands_still_is_ended(name: str) -> None:
    """By a probe of what the loop answers, without the certificate that may come later; not on a busy machine."""
    (container,) = named("Deployment", name)["spec"]["template"]["spec"]["containers"]
    probe = container["livenessProbe"]
    assert probe["httpGet"] == {"path": "/healthz", "port": "health"}
    (port,) = (port["containerPort"] for port in container["ports"] if port["name"] == "health")
    assert f"--health-listen=0.0.0.0:{port}" in container["args"]
    # Longer than the process needs to lose its lease and end by itself (137 s).
    assert probe["failureThreshold"] * probe["periodSeconds"] == 180
    assert (probe["timeoutSeconds"], probe["initialDelaySeconds"]) == (15, 60)


@pytest.mark.parametrize("taint", ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_node_that_is_gone_is_left(name: str, taint: str) -> None:
    """A pod that tolerates its end for ever is not started elsewhere, and nobody operates the cluster meanwhile."""
    tolerations = named("Deployment", name)["spec"]["template"]["spec"]["tolerations"]
    ended = [each for each in tolerations if each.get("effect", "NoExecute") == "NoExecute"]
    ended = [each for each in ended if each.get("key", taint) == taint]
    # Without one of its own a pod gets 300 s from admission (DefaultTolerationSeconds).
    assert all(0 < each.get("tolerationSeconds", 0) <= 300 for each in ended)


def test_the_operator_can_remove_the_reports_of_preflights() -> None:
    """A read-only mount left every preflight's folder on the node for ever."""
    pod = named("Deployment", "cluster-version-operator")["spec"]["template"]["spec"]
    (mount,) = (m for m in pod["containers"][0]["volumeMounts"] if m["mountPath"] == "/etc/cvo/preflight")
    assert not mount.get("readOnly", False)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_nobody_talks_where_no_policy_lets_him(namespace: str) -> None:
    """Each namespace denies everything, then allows by pod."""
    policies = [
        obj for obj in manifests() if obj["kind"] == "NetworkPolicy" and obj["metadata"]["namespace"] == namespace
    ]
    denied = [policy["spec"] for policy in policies if policy["spec"]["podSelector"] == {}]
    assert denied == [{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}]
    for policy in policies:
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_operators_namespace_is_as_upstreams() -> None:
    """As upstream's end-to-end tests have it (test/cvo/cvo.go): an empty run level and a policy `default-deny`."""
    namespace = "openshift-cluster-version-operator"
    assert named("Namespace", namespace)["metadata"]["labels"]["openshift.io/run-level"] == ""
    policies = [obj["metadata"] for obj in manifests() if obj["kind"] == "NetworkPolicy"]
    assert {"default-deny"} <= {each["name"] for each in policies if each["namespace"] == namespace}


def test_every_network_policy_is_about_a_pod_that_there_is() -> None:
    """A selector that fits nobody protects nobody."""
    labels = [named("Deployment", name)["spec"]["template"]["metadata"]["labels"] for name in WORKLOADS]
    labels.append({"app": "cluster-version-operator-preflight"})
    for policy in (obj for obj in manifests() if obj["kind"] == "NetworkPolicy"):
        selected = policy["spec"]["podSelector"].get("matchLabels", {})
        assert any(selected.items() <= each.items() for each in labels), policy["metadata"]


Row = tuple[str, str, str, str, str]


def argued() -> set[Row]:
    """The table of docs/explanation/security.md."""
    section = (ROOT / "docs" / "explanation" / "security.md").read_text().partition("## Rights of the operator")[2]
    rows = re.findall(r"^\| (cluster|own namespace) \| (.*) \|$", section, re.MULTILINE)
    found = set()
    for where, rest in rows:
        groups, resources, names, verbs, why = (cell.strip() for cell in rest.split("|"))
        assert why, rest
        found.add((where, groups, resources, names, verbs))
    return found


def given() -> Iterator[Row]:
    """The rules of the manifests, in the words of the table."""
    for kind, where in (("ClusterRole", "cluster"), ("Role", "own namespace")):
        for rule in named(kind, "cluster-version-operator")["rules"]:
            groups = ", ".join(group or "core" for group in rule["apiGroups"])
            names = ", ".join(rule.get("resourceNames", ()))
            yield where, groups, ", ".join(rule["resources"]), names, ", ".join(rule["verbs"])


def test_each_right_of_the_operator_is_argued_for_and_none_is_argued_for_that_it_has_not() -> None:
    """The page and the manifests are one, rule by rule."""
    assert argued() == set(given())


def test_nobody_is_bound_to_more_than_these_roles() -> None:
    """One binding to cluster-admin, the operator's, that applies releases; none to another release's role."""
    bindings = [obj for obj in manifests() if obj["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    ours = [binding for binding in bindings if binding["subjects"][0]["namespace"] in NAMESPACES]
    own = {*WORKLOADS, "kernel-module-preflight-owner", "cluster-monitoring-view", "cluster-admin"}
    # Its rights to read hosted clusters.
    own |= {"update-status-controller-hosted-clusters"}
    # What container checks run as, and the operator's right to make their pods.
    own |= {"cluster-version-operator-preflight-check", "cluster-reader"}
    own = own - {"update-controller", "fleet-controller"} | {"runup-fleet-controller"}
    own |= {"runup-update-controller", "runup-update-controller-pools", "runup-update-controller-hub"}
    assert {binding["roleRef"]["name"] for binding in ours} == own
    (all_,) = (binding for binding in ours if binding["roleRef"]["name"] == "cluster-admin")
    assert [subject["name"] for subject in all_["subjects"]] == ["cluster-version-operator"]
    others = {(b["roleRef"]["name"], b["subjects"][0]["namespace"], b["subjects"][0]["name"]) for b in bindings}
    others -= {(b["roleRef"]["name"], b["subjects"][0]["namespace"], b["subjects"][0]["name"]) for b in ours}
    prometheus = ("openshift-monitoring", "prometheus-k8s")
    assert others == {("prometheus-k8s", *prometheus), ("cluster-version-operator-metrics", *prometheus)}
    found = {b["metadata"]["namespace"] for b in bindings if b["roleRef"]["name"] == "prometheus-k8s"}
    assert found == set(NAMESPACES)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.slow
def test_monitoring_finds_and_reads_the_metrics(name: str) -> None:
    """From the monitor to the service, its pods, their port and certificate, and through the network policy."""
    monitor, service = (named(kind, name) for kind in ("ServiceMonitor", "Service"))
    pod = named("Deployment", name)["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    namespace = service["metadata"]["namespace"]
    (endpoint,), (port,) = monitor["spec"]["endpoints"], service["spec"]["ports"]
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [namespace]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert (endpoint["port"], endpoint["scheme"]) == (port["name"], "https")
    assert endpoint["tlsConfig"]["serverName"] == f"{service['metadata']['name']}.{namespace}.svc"
    assert "insecureSkipVerify" not in endpoint["tlsConfig"]
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    (served,) = (each for each in container["ports"] if each["name"] == port["targetPort"])
    flags = dict(arg.removeprefix("--").split("=", 1) for arg in container["args"] if arg.startswith("--"))
    assert flags["listen"] == f"0.0.0.0:{served['containerPort']}"
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "serving-cert")
    assert {flags["serving-cert-file"], flags["serving-key-file"]} == {
        f"{mount['mountPath']}/tls.{end}" for end in ("crt", "key")
    }
    (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == "serving-cert")
    secret = service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
    assert volume["secret"] == {"secretName": secret, "optional": True}
    (rule,) = named("NetworkPolicy", name)["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": served["containerPort"]}]
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-monitoring"}}}
    assert rule.get("from", []) == ([] if name in WEBHOOKS else [monitoring])
    assert named("ClusterRole", "cluster-version-operator-metrics")["rules"] == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]


def test_no_rule_writes_everything_or_acts_as_somebody_else() -> None:
    """Wildcards are for reading alone; no escalation, no impersonation, no Secret that could be written."""
    for obj in manifests():
        for rule in obj.get("rules", ()) if obj["kind"] in ("ClusterRole", "Role") else ():
            reads = set(rule["verbs"]) <= {"get", "list", "watch"}
            about = {*rule.get("apiGroups", ()), *rule.get("resources", ()), *rule.get("nonResourceURLs", ())}
            assert reads or not {"*", "secrets"} & about, rule
            assert not {"*", "escalate", "bind", "impersonate"} & set(rule["verbs"]), rule


def test_every_manifest_of_the_operator_can_be_rendered() -> None:
    """One that cannot is left out of the release with a warning: braces of alerts are no fields of a template."""
    files = {f"manifests/{path.name}": path.read_bytes() for path in (ROOT / "deploy" / "manifests").glob("*.yaml")}
    files["release-manifests/release-metadata"] = release_metadata("5.0.0", (), (), {})
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.0"}}
    files["release-manifests/image-references"] = json.dumps(stream).encode()
    assert load_payload(files, source="deploy", release_image="registry.example/release").warnings == ()


def test_the_api_server_finds_who_converts() -> None:
    """From the definitions to the Service, its port and the path; OpenShift's authority is asked to vouch for it."""
    service = named("Service", "kernel-module-preflight")
    asked = [obj["spec"]["conversion"]["webhook"]["clientConfig"]["service"] for obj in manifests() if _converts(obj)]
    assert len(asked) == 2
    for each in asked:
        assert (each["namespace"], each["name"]) == (service["metadata"]["namespace"], service["metadata"]["name"])
        assert each["port"] in [port["port"] for port in service["spec"]["ports"]]
        assert each["path"] == conversion_webhook.PATH


def _converts(obj: JSON) -> bool:
    if obj["kind"] != "CustomResourceDefinition" or "conversion" not in obj["spec"]:
        return False
    return bool(obj["metadata"]["annotations"]["service.beta.openshift.io/inject-cabundle"] == "true")


def test_one_command_applies_all_files() -> None:
    """`kubectl apply -k` takes what is named, and nothing else."""
    folder = ROOT / "deploy" / "kernel-module-preflight"
    listed = yaml.safe_load((folder / "Kustomization").read_text())["resources"]
    assert listed == sorted(file.name for file in folder.glob("*.yaml"))
