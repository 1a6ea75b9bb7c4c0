"""Tests the objects of a component, on OpenShift and on other clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from runup.install.control import installing as sources
from runup.install.control.sets import InstallError
from runup.install.decide.component import (
    COMPONENTS,
    KERNEL_MODULES,
    OPERATOR,
    UPDATE_POLICY,
    UPDATE_STATUS,
    Certificates,
    Component,
    Options,
    Platform,
)
from runup.install.decide.component_objects import component_objects
from runup.install.decide.objects import Objects

JSON = dict[str, Any]
IMAGE = "registry.example/runup@sha256:" + "5" * 64
PLATFORMS = list(Platform)
NAMES = list(COMPONENTS)


def options(component: Component, platform: Platform, **changes: Any) -> Options:
    """The options of an installation without further flags."""
    on_openshift = platform is Platform.OPENSHIFT
    usual = Options(
        image=IMAGE,
        namespace=component.namespace,
        platform=platform,
        monitoring=on_openshift,
        certificates=Certificates.SERVICE_CA if on_openshift else Certificates.OWN,
    )
    return replace(usual, **changes)


def objects(component: Component, platform: Platform, **changes: Any) -> Objects:
    """The objects of an installation."""
    return component_objects(component, sources.manifests(component, platform), options(component, platform, **changes))


def named(found: Objects, kind: str, name: str = "") -> JSON:
    """The only object of that kind and name."""
    (obj,) = (each for each in found if each["kind"] == kind and name in ("", each["metadata"]["name"]))
    return obj


def texts(value: Any) -> Iterator[str]:
    """Every text in a value, keys included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def pod_spec(found: Objects) -> JSON:
    """The specification of the component's pods."""
    spec: JSON = named(found, "Deployment")["spec"]["template"]["spec"]
    return spec


def arguments(found: Objects) -> list[str]:
    """The arguments of the component's process."""
    return list(pod_spec(found)["containers"][0]["args"])


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_image_is_the_one_that_was_named(name: str, platform: Platform) -> None:
    """In the pod and, for the operator, as its release; nothing is left of a template."""
    found = objects(COMPONENTS[name], platform)
    assert [container["image"] for container in pod_spec(found)["containers"]] == [IMAGE]
    assert (f"--release-image={IMAGE}" in arguments(found)) is (name == "operator")
    others = [obj for obj in found if obj["kind"] not in ("PrometheusRule", "CustomResourceDefinition")]
    assert not [text for text in texts(others) if "{{" in text]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_plain_cluster_lacks_is_not_asked_of_it(name: str) -> None:
    """No kind, role, account, priority, address or annotation of OpenShift's, but our own kinds and namespace."""
    component = COMPONENTS[name]
    found = objects(component, Platform.KUBERNETES)
    own = {component.namespace, "config.openshift.io", "update.openshift.io", "machineconfiguration.openshift.io"}
    own |= {
        "operator.openshift.io",
        "build.openshift.io",
        "hypershift.openshift.io",
    }  # rules about kinds that may come later give nothing
    own |= {"security.openshift.io"} if component == OPERATOR else set()  # what it gives its targets
    own |= {OPERATOR.namespace} if component == UPDATE_POLICY else set()  # the reports that its gates read
    own |= {"openshift-config", "openshift-config-managed"}  # the namespaces of admin-acks and admin-gates
    foreign = {
        text
        for obj in found
        if obj["kind"] != "CustomResourceDefinition"
        for text in texts(obj)
        if ("openshift" in text or text in ("cluster-reader", "cluster-monitoring-view")) and text not in own
    }
    assert foreign == set()
    assert {obj["apiVersion"].partition("/")[0] for obj in found} <= {
        "v1", "apps", "rbac.authorization.k8s.io", "networking.k8s.io", "apiextensions.k8s.io",
        "admissionregistration.k8s.io",
    }  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_operator_of_few_rights_has_those_that_it_gives(platform: Platform) -> None:
    """An API server refuses a Role with a right that its maker does not have, the use of an unknown kind, too."""
    role = named(objects(OPERATOR, platform, least_privilege=True), "ClusterRole", "cluster-version-operator")
    assert {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": ["nonroot-v2"],
        "verbs": ["use"],
    } in role["rules"]


@pytest.mark.parametrize("name", NAMES)
def test_every_binding_has_its_role(name: str) -> None:
    """Among the objects, or one that every cluster has."""
    found = objects(COMPONENTS[name], Platform.KUBERNETES)
    roles = {(obj["kind"], obj["metadata"]["name"]) for obj in found if obj["kind"] in ("Role", "ClusterRole")}
    roles |= {("ClusterRole", name) for name in ("view", "cluster-admin")}
    bound = {(obj["roleRef"]["kind"], obj["roleRef"]["name"]) for obj in found if "roleRef" in obj}
    assert bound <= roles
    assert all(obj["rules"] for obj in found if obj["kind"] in ("Role", "ClusterRole"))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_what_others_need_comes_first(name: str, platform: Platform) -> None:
    """The namespace, definitions, accounts and roles before bindings; the workload after all of them."""
    kinds = [obj["kind"] for obj in objects(COMPONENTS[name], platform)]
    assert kinds[0] == "Namespace"
    for earlier, later in (
        ("CustomResourceDefinition", "ServiceAccount"),
        ("ClusterRole", "ClusterRoleBinding"),
        ("Role", "RoleBinding"),
        ("ClusterRoleBinding", "Deployment"),
        ("NetworkPolicy", "Deployment"),
        ("Deployment", "ServiceMonitor"),
    ):
        if earlier in kinds and later in kinds:
            assert max(i for i, kind in enumerate(kinds) if kind == earlier) < kinds.index(later)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [component.name for component in COMPONENTS.values() if not component.fixed])
def test_another_namespace_is_meant_everywhere(name: str, platform: Platform) -> None:
    """By objects, subjects, webhooks, monitors and names in certificates."""
    component = COMPONENTS[name]
    found = objects(component, platform, namespace="mine", monitoring=True, certificates=Certificates.CERT_MANAGER)
    definitions = [obj for obj in found if obj["kind"] == "CustomResourceDefinition"]
    assert not [text for obj in found if obj not in definitions for text in texts(obj) if component.namespace in text]
    assert named(found, "Namespace", "mine")
    for obj in definitions:
        if "conversion" in obj["spec"]:
            assert obj["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["namespace"] == "mine"
    monitor = named(found, "ServiceMonitor")
    assert monitor["spec"]["endpoints"][0]["tlsConfig"]["serverName"] == f"{component.deployment}.mine.svc"


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_without_monitoring_nothing_is_for_prometheus(name: str, platform: Platform) -> None:
    """No monitor, no alert, no right."""
    found = objects(COMPONENTS[name], platform, monitoring=False)
    assert "monitoring.coreos.com/v1" not in {obj["apiVersion"] for obj in found}
    assert not [text for text in texts(list(found)) if text == "prometheus-k8s"]


@pytest.mark.parametrize("name", NAMES)
def test_on_a_plain_cluster_another_prometheus_reads(name: str) -> None:
    """With the authority of the component's own Secret, since there is no service CA."""
    component = COMPONENTS[name]
    found = objects(component, Platform.KUBERNETES, monitoring=True, prometheus=("metrics", "scraper"))
    tls = named(found, "ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"]
    assert tls["ca"] == {"secret": {"name": f"{component.deployment}-serving-cert", "key": "ca.crt"}}
    assert "caFile" not in tls
    subjects = named(found, "RoleBinding", "prometheus-k8s")["subjects"]
    assert subjects == [{"kind": "ServiceAccount", "name": "scraper", "namespace": "metrics"}]


def test_who_is_let_in_is_the_namespace_of_prometheus() -> None:
    """The policy of the update status controller lets in nobody else."""
    found = objects(UPDATE_STATUS, Platform.KUBERNETES, monitoring=True, prometheus=("metrics", "scraper"))
    (rule,) = named(found, "NetworkPolicy", "update-status-controller")["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "metrics"}}}]


@pytest.mark.parametrize("component", [OPERATOR, UPDATE_STATUS, UPDATE_POLICY], ids=lambda component: component.name)
def test_who_has_no_certificate_serves_nothing(component: Component) -> None:
    """No Service, no port, nobody let in; the probe of a process that stops stays."""
    found = objects(component, Platform.KUBERNETES)
    assert "Service" not in {obj["kind"] for obj in found}
    assert not [each for each in arguments(found) if each.startswith(("--listen", "--serving-"))]
    assert any(each.startswith("--health-listen=") for each in arguments(found))
    assert [each["name"] for each in pod_spec(found)["containers"][0]["ports"]] == ["health"]
    assert not [obj for obj in found if obj["kind"] == "NetworkPolicy" and "ingress" in obj["spec"]]


def test_cert_manager_makes_the_certificate_and_vouches_for_it() -> None:
    """An issuer, a certificate for the Service's names, and the annotation of its injector."""
    found = objects(KERNEL_MODULES, Platform.KUBERNETES, certificates=Certificates.CERT_MANAGER, namespace="mine")
    spec = named(found, "Certificate")["spec"]
    assert spec["secretName"] == "kernel-module-preflight-serving-cert"
    assert spec["dnsNames"][0] == "kernel-module-preflight.mine.svc"
    assert spec["issuerRef"] == {"kind": "Issuer", "name": named(found, "Issuer")["metadata"]["name"]}
    injected = {
        (obj["metadata"].get("annotations") or {}).get("cert-manager.io/inject-ca-from")
        for obj in found
        if obj["kind"] == "CustomResourceDefinition" and "conversion" in obj["spec"]
    }
    assert injected == {"mine/kernel-module-preflight-serving-cert"}


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_of_a_plain_cluster_can_run(name: str) -> None:
    """A user where root is refused, no node selector that a managed cluster fits nowhere, volumes that are mounted."""
    spec = pod_spec(objects(COMPONENTS[name], Platform.KUBERNETES))
    security = spec["securityContext"]
    assert security.get("runAsUser") == (65534 if security.get("runAsNonRoot") else None)
    assert "nodeSelector" not in spec
    (preferred,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchExpressions"][0]["key"] == "node-role.kubernetes.io/control-plane"
    mounts = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} if spec.get("volumes") else set()
    assert mounts == {volume["name"] for volume in spec.get("volumes", ())}


def test_the_pods_of_kernel_modules_stay_apart_on_a_plain_cluster() -> None:
    """The preference for other nodes is kept next to the one for the control plane."""
    affinity = pod_spec(objects(KERNEL_MODULES, Platform.KUBERNETES))["affinity"]
    assert set(affinity) == {"podAntiAffinity", "nodeAffinity"}


def test_a_port_of_the_api_server_is_let_out() -> None:
    """Pods reach the API server at its own port, behind the Service's 443."""
    found = objects(UPDATE_STATUS, Platform.KUBERNETES, api_ports=(6443, 16443))
    rules = named(found, "NetworkPolicy", "update-status-controller")["spec"]["egress"]
    assert [port["port"] for port in rules[0]["ports"]] == [443, 6443, 16443]
    # Name servers have other labels on each cluster.
    assert all("to" not in rule for rule in rules)


def test_a_plain_operator_opens_the_gates_itself() -> None:
    """There is no FeatureGate; releases come from registries, since no priority class is there for their pods."""
    found = objects(OPERATOR, Platform.KUBERNETES)
    assert "--open-gates=ClusterUpdatePreflight,ClusterUpdateAcceptRisks" in arguments(found)
    assert "--release-source=registry" in arguments(found)
    assert not [each for each in arguments(found) if each.startswith("--prometheus-")]
    environment = {each["name"]: each.get("value") for each in pod_spec(found)["containers"][0]["env"]}
    assert environment["CLUSTER_PROFILE"] == "kubernetes"
    defined = {obj["metadata"]["name"] for obj in found if obj["kind"] == "CustomResourceDefinition"}
    assert defined == {"clusterversions.config.openshift.io", "clusteroperators.config.openshift.io"}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_rights_to_pause_pools_are_an_option(platform: Platform) -> None:
    """Without the option nothing in the installation may change a pool."""
    name = "runup-update-controller-pools"
    assert name not in set(texts(list(objects(COMPONENTS["update-policy"], platform))))
    role = named(objects(COMPONENTS["update-policy"], platform, with_pools=True), "ClusterRole", name)
    assert role["rules"][0]["verbs"] == ["patch"]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_least_privileged_operator_cannot_apply(platform: Platform) -> None:
    """Nobody is bound to cluster-admin; its pod is not root and has no folder of the node."""
    found = objects(OPERATOR, platform, least_privilege=True)
    assert "cluster-admin" not in {obj.get("roleRef", {}).get("name") for obj in found}
    asked = {"--record-only", "--report-sink=configmap", "--preflight-service-account=dedicated"}
    assert asked <= set(arguments(found))
    assert len([each for each in arguments(found) if each.startswith("--release-source=")]) == 1
    spec = pod_spec(found)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]
    assert "runAsUser" not in spec["containers"][0]["securityContext"]
    assert "privileged" not in set(texts([obj for obj in found if obj["kind"] != "CustomResourceDefinition"]))


def test_on_openshift_a_component_is_what_its_manifests_say() -> None:
    """Every object, without the annotations that only a release's operator reads."""
    found = objects(UPDATE_STATUS, Platform.OPENSHIFT)
    assert named(found, "Deployment")["spec"]["template"]["spec"]["priorityClassName"] == "openshift-user-critical"
    assert named(found, "Role", "prometheus-k8s")
    service = named(found, "Service")["metadata"]["annotations"]
    assert service == {"service.beta.openshift.io/serving-cert-secret-name": "update-status-controller-serving-cert"}
    keys = {key for obj in found for key in obj["metadata"].get("annotations", {})}
    assert not [key for key in keys if "release.openshift.io" in key or key.startswith("capability.")]
    bound = {obj["roleRef"]["name"] for obj in found if "roleRef" in obj}
    assert "cluster-monitoring-view" in bound


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        pytest.param({"folder": "nowhere"}, "deploy/nowhere", id="no manifest"),
        pytest.param({"definitions": ("a.yaml", "b.yaml")}, "a.yaml, b.yaml", id="no definition"),
    ],
)
def test_an_installation_that_lacks_files(change: dict[str, Any], lacks: str) -> None:
    """Missing parts are named: half a component is never installed."""
    with pytest.raises(InstallError, match=f"^this installation of runup lacks {lacks}: install it again$"):
        sources.manifests(replace(OPERATOR, **change), Platform.KUBERNETES)
