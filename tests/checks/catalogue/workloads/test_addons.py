"""Tests add-ons, kube-proxy, node images and support calendars against a target of Kubernetes.

The ranges are those of the tables; these tests cover the choice of the row, and the result without a row.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import config_map_json, context, node, node_json, pod, snapshot

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod, PodDemands
from runup.api.platform_v1 import EC2NodeClass
from runup.checks.catalogue import CHECKS
from runup.checks.decide.addon_images import is_addon, running_addons, version_number
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.removal_tables import document
from runup.checks.decide.snapshots import snapshot_of

BY_NAME = {check.name: check for check in CHECKS}


def running_pod(image: str, name: str = "it-1") -> PlacedPod:
    """A pod of an add-on."""
    return with_fields(pod(name, "system"), demands=PodDemands(addons=(image,)))


def on_image(os_image: str, kubelet: str = "v1.34.0", **metadata: dict[str, str]) -> Node:
    """A node of an operating system."""
    return node(kubelet=kubelet, info={"osImage": os_image}, **metadata)


def outcome(name: str, target: str, *objects: Object, now: datetime | None = None, **states: object) -> CheckOutcome:
    """Of the check on these objects, for an update to 1.`target`."""
    update = with_fields(context("1.34.2", f"{target}.0", f"{target}.0"), cluster=ClusterKind.KUBERNETES)
    return run_check(BY_NAME[name], snapshot(*objects, **states), with_fields(update, now=now or update.now))  # type: ignore[arg-type]


CILIUM = "AddonIncompatible-Cilium info"
CERT_MANAGER = "quay.io/jetstack/cert-manager-controller"
ADDONS = {
    "nothing runs": ((), "1.35", []),
    "in its range": ((f"{CERT_MANAGER}:v1.19.1",), "1.35", []),
    "behind its range, and another version has the target": (
        (f"{CERT_MANAGER}:v1.18.2",),
        "1.35",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "no version has the target": ((f"{CERT_MANAGER}:v1.21.0",), "1.37", ["AddonIncompatibleUnknown warning"]),
    "older than all versions of the table, which are too old": (
        (f"{CERT_MANAGER}:v1.9.0",),
        "1.35",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "older than all versions of the table, of which one fits": (
        (f"{CERT_MANAGER}:v1.9.0",),
        "1.33",
        ["AddonIncompatibleUnknown warning"],
    ),
    "too old for the newest Kubernetes of the table, and so for a newer one": (
        (f"{CERT_MANAGER}:v1.18.2",),
        "1.39",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "between two versions, of which the older is too old": (
        ("quay.io/calico/node:v3.30.2",),
        "1.33",
        ["AddonIncompatible-Calico warning"],
    ),
    "between two versions, of which the older fits": (("quay.io/calico/node:v3.30.2",), "1.32", []),
    "too old for the newest Kubernetes with a least version": (
        ("public.ecr.aws/karpenter/controller:1.6.1",),
        "1.39",
        ["AddonIncompatible-Karpenter warning"],
    ),
    "the least version of the table, for a newer Kubernetes": (
        ("public.ecr.aws/karpenter/controller:1.13.0",),
        "1.39",
        ["AddonIncompatibleUnknown warning"],
    ),
    "a mirror with one name": (
        ("rancher/mirrored-jetstack-cert-manager-controller:v1.18.2",),
        "1.35",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "a mirror of Calico": (("rancher/mirrored-calico-node:v3.29.1",), "1.35", ["AddonIncompatible-Calico warning"]),
    "RKE2's build of Calico": (
        ("rancher/hardened-calico:v3.29.1-build20250101",),
        "1.35",
        ["AddonIncompatible-Calico warning"],
    ),
    "a flat mirror": (("registry.local/istio-pilot:1.26.3",), "1.35", ["AddonIncompatible-Istio warning"]),
    "Bitnami's build": (("bitnami/argo-cd:3.1.4-debian-12-r0",), "1.36", ["AddonIncompatible-ArgoCD info"]),
    "Bitnami's build where it went": (
        ("docker.io/bitnamilegacy/cert-manager:1.12.3",),
        "1.35",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "the build of another publisher": (("quay.io/isovalent/cilium:v1.15.3-cee.1",), "1.35", [CILIUM]),
    "Kyverno": (("reg.kyverno.io/kyverno/kyverno:v1.14.4",), "1.33", ["AddonIncompatible-Kyverno info"]),
    "Kyverno in its range": (("ghcr.io/kyverno/kyverno:v1.15.1",), "1.33", []),
    "Kyverno's other images": (("ghcr.io/kyverno/kyvernopre:v1.14.4",), "1.35", []),
    "KEDA": (("ghcr.io/kedacore/keda:2.18.1",), "1.35", ["AddonIncompatible-KEDA info"]),
    "KEDA in its range": (("ghcr.io/kedacore/keda:2.20.0",), "1.35", []),
    "Gatekeeper, beyond what is known": (
        ("openpolicyagent/gatekeeper:v3.23.1",),
        "1.35",
        ["AddonIncompatibleUnknown warning"],
    ),
    "Gatekeeper": (("openpolicyagent/gatekeeper:v3.14.0",), "1.31", ["AddonIncompatible-Gatekeeper info"]),
    "Strimzi, which does not read the version of 1.33": (
        ("quay.io/strimzi/operator:0.43.0",),
        "1.34",
        ["AddonIncompatible-Strimzi warning"],
    ),
    "Strimzi before what is known": (
        ("quay.io/strimzi/operator:0.43.0",),
        "1.32",
        ["AddonIncompatibleUnknown warning"],
    ),
    "a Strimzi that reads it": (("quay.io/strimzi/operator:0.47.0",), "1.35", []),
    "another program with the name of an add-on": (("rancher/hardened-cluster-autoscaler:v1.9.0",), "1.35", []),
    "another project's image whose path ends alike": (("quay.io/example/my-calico/node:v3.1.0",), "1.35", []),
    "newer than the table": ((f"{CERT_MANAGER}:v1.30.0",), "1.35", ["AddonIncompatibleUnknown warning"]),
    "by digest": ((f"{CERT_MANAGER}@sha256:1234",), "1.35", ["AddonIncompatibleUnknown warning"]),
    "a mirror": (
        (f"registry.local:5000/mirror/{CERT_MANAGER}:v1.18.2",),
        "1.35",
        ["AddonIncompatible-cert-manager warning"],
    ),
    "two versions, of which one is old": (
        ("docker.io/istio/pilot:1.28.3", "docker.io/istio/pilot:1.29.0"),
        "1.35",
        ["AddonIncompatible-Istio warning"],
    ),
    "a variant of an image": (("docker.io/istio/pilot:1.29.0-distroless",), "1.35", []),
    "two versions, both old": (
        ("docker.io/istio/pilot:1.26.3", "docker.io/istio/pilot:1.27.0"),
        "1.35",
        ["AddonIncompatible-Istio warning"],
    ),
    "a service's own, which it updates itself": (("gke.gcr.io/cilium/cilium:v1.16.8-gke.18",), "1.35", []),
    "untested is not incompatible": (("quay.io/cilium/cilium:v1.15.6",), "1.33", ["AddonIncompatible-Cilium info"]),
    "the first for a minor version": (("public.ecr.aws/karpenter/controller:1.6.0",), "1.34", []),
    "before the first for it": (
        ("public.ecr.aws/karpenter/controller:1.5.9",),
        "1.34",
        ["AddonIncompatible-Karpenter warning"],
    ),
    "an open range": (("registry.k8s.io/metrics-server/metrics-server:v0.7.2",), "1.37", []),
    "of the minor version before": (
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.1",),
        "1.35",
        ["AddonIncompatible-cluster-autoscaler info"],
    ),
    "of the target's": (("registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0",), "1.35", []),
}


@pytest.mark.parametrize("row", ADDONS)
def test_addons(row: str) -> None:
    """What their projects say that they work with."""
    images, target, expected = ADDONS[row]
    pods = [running_pod(image, f"it-{index}") for index, image in enumerate(images)]
    found = outcome("AddonIncompatible", target, *pods).findings
    assert [f"{each.name} {each.severity}" for each in found] == expected


def test_whose_range_it_is_and_as_of_when() -> None:
    """Not the newest is never incompatible, and a reader can look the range up."""
    (finding,) = outcome("AddonIncompatible", "1.35", running_pod(f"{CERT_MANAGER}:v1.18.2")).findings
    assert "https://cert-manager.io/docs/releases/, as of 2026-10" in finding.message
    assert "1.19, 1.20 and 1.21 are for 1.35" in finding.message
    assert [each.text for each in finding.resources] == ["Pod system/it-1"]


def test_every_row_names_its_source_and_date() -> None:
    """A range without them could not be evaluated by anybody."""
    table = document("addons")
    assert all(row["source"].startswith("https://") for row in (*table["addons"], *table["retired"]))
    assert all(str(row["date"]).startswith("20") for row in table["addons"])
    assert [row["name"] for row in table["addons"] if not {"ranges", "least", "sameMinor"} & row.keys()] == []


@pytest.mark.parametrize(
    ("image", "known"),
    [
        (f"{CERT_MANAGER}:v1.18.2", True),
        ("calico/node:v3.31.0", True),
        ("registry.k8s.io/kube-proxy:v1.34.0", True),
        ("quay.io/example/my-calico/node-agent:v1", False),
        ("quay.io/example/my-calico/node:v1", False),
        ("rancher/mirrored-cilium-cilium:v1.18.0", True),
        ("example/not-kube-proxy:v1.34.0", False),
        ("", False),
    ],
)
def test_images_of_addons(image: str, known: bool) -> None:
    """The end of the repository counts, whatever registry it comes from."""
    assert is_addon(image) is known


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("v1.19.1", (1, 19, 1)),
        ("1.28", (1, 28)),
        ("v1.33.3-minimal-eksbuild.4", (1, 33, 3)),
        ("v1.32.0_ubi", (1, 32, 0)),
        ("latest", ()),
        ("", ()),
        ("1.2.3.4", ()),
    ],
)
def test_versions_of_tags(tag: str, expected: tuple[int, ...]) -> None:
    """A builder's suffix after the version does not count; other texts have no version."""
    assert version_number(tag) == expected


def test_the_label_has_the_version_of_an_image_by_digest() -> None:
    """As charts label their pods."""
    labelled = pod("it-1", "system", labels={"app.kubernetes.io/version": "v1.18.2"})
    by_digest = with_fields(labelled, demands=PodDemands(addons=(f"{CERT_MANAGER}@sha256:1234",)))
    (finding,) = outcome("AddonIncompatible", "1.35", by_digest).findings
    assert "cert-manager v1.18.2 is for Kubernetes 1.29 to 1.33" in finding.message


NAME_LABEL, CHART_LABEL, VERSION_LABEL = "app.kubernetes.io/name", "helm.sh/chart", "app.kubernetes.io/version"


@pytest.mark.parametrize(
    ("image", "labels", "is_told"),
    [
        pytest.param("mirror.example/pki/controller:v1.18.2", {NAME_LABEL: "cert-manager"}, True, id="a name"),
        pytest.param(
            "mirror.example/pki/controller:2026-01-build7",
            {NAME_LABEL: "cert-manager", VERSION_LABEL: "v1.18.2"},
            True,
            id="a name, with the version in a label",
        ),
        pytest.param(
            "mirror.example/pki/hook:7",
            {NAME_LABEL: "webhook", CHART_LABEL: "cert-manager-v1.18.2", VERSION_LABEL: "v1.18.2"},
            True,
            id="a chart",
        ),
        pytest.param(
            "mirror.example/redis:1.2.0",
            {NAME_LABEL: "redis", CHART_LABEL: "cert-manager-v1.18.2"},
            False,
            id="a chart without the add-on's version",
        ),
        pytest.param(
            "mirror.example/x:v1.18.2",
            {NAME_LABEL: "cert-manager-viewer", CHART_LABEL: "cert-manager-viewer-1.18.2", VERSION_LABEL: "v1.18.2"},
            False,
            id="another program",
        ),
        pytest.param("mcr.microsoft.com/pki:v1.18.2", {NAME_LABEL: "cert-manager"}, False, id="of a service"),
        pytest.param("mirror.example/pki:v1.20.0", {NAME_LABEL: "cert-manager"}, False, id="a version that fits"),
    ],
)
def test_an_addon_of_another_image_is_found_by_its_labels(image: str, labels: dict[str, str], is_told: bool) -> None:
    """Labels that Helm and the projects' own manifests write."""
    labelled = pod("it-1", "system", labels=labels, spec={"containers": [{"name": "main", "image": image}]})
    shown = [each.name for each in outcome("AddonIncompatible", "1.35", labelled).findings]
    assert shown == ["AddonIncompatible-cert-manager"] * is_told


def test_the_pods_of_a_version() -> None:
    """Pods of other images are not among them."""
    rows = [{"name": "cert-manager", "image": "/cert-manager-controller"}]
    (found,) = running_addons([running_pod(f"{CERT_MANAGER}:v1.18.2"), pod()], rows)
    assert (found.tag, [each.metadata.name for each in found.pods]) == ("v1.18.2", ["it-1"])


PROXY = "registry.k8s.io/kube-proxy"


@pytest.mark.parametrize(
    ("images", "target", "expected"),
    [
        pytest.param((), "1.35", [], id="another proxy"),
        pytest.param((f"{PROXY}:v1.32.1",), "1.35", [], id="three behind"),
        pytest.param((f"{PROXY}:v1.31.1",), "1.35", ["KubeProxySkew"], id="four behind"),
        pytest.param((f"{PROXY}:v1.36.1",), "1.35", ["KubeProxySkew"], id="newer"),
        pytest.param((f"{PROXY}@sha256:1",), "1.35", ["KubeProxySkewUnknown"], id="by digest"),
        pytest.param((f"{PROXY}:v1.24.1",), "1.27", ["KubeProxySkew"], id="before 1.25 only two"),
    ],
)
def test_kube_proxy(images: tuple[str, ...], target: str, expected: list[str]) -> None:
    """https://kubernetes.io/releases/version-skew-policy/#kube-proxy."""
    found = outcome("KubeProxySkew", target, node(), *map(running_pod, images)).findings
    assert [each.name for each in found] == expected


@pytest.mark.parametrize(
    ("kubelet", "tag", "target", "expected"),
    [
        pytest.param("v1.34.2", "v1.34.2", "1.38", ["info"], id="kubeadm updates it with each step"),
        pytest.param("v1.34.2-eks-113cf36", "v1.34.2", "1.38", ["warning"], id="an add-on that nobody else updates"),
        pytest.param("v1.34.2", "v1.34.2", "1.37", [], id="recent enough for the whole way"),
        pytest.param("v1.34.2", "v1.31.2", "1.38", ["critical"], id="too old for the first step"),
    ],
)
def test_kube_proxy_on_a_way_of_several_minors(kubelet: str, tag: str, target: str, expected: list[str]) -> None:
    """An add-on that is too old for the target is updated on the way."""
    found = outcome("KubeProxySkew", target, node(kubelet=kubelet), running_pod(f"{PROXY}:{tag}")).findings
    assert [each.severity for each in found] == expected


@pytest.mark.parametrize(
    ("kubelet", "words"),
    [("v1.34.2-eks-113cf36", "aws eks update-addon"), ("v1.34.2", "Update kube-proxy first.")],
)
def test_the_way_out_is_the_services_own(kubelet: str, words: str) -> None:
    """On EKS kube-proxy is an add-on; elsewhere nobody knows how it was installed."""
    (found,) = outcome("KubeProxySkew", "1.35", node(kubelet=kubelet), running_pod(f"{PROXY}:v1.30.0")).findings
    assert words in found.remediation


EKS = {"eks.amazonaws.com/nodegroup": "web"}


@pytest.mark.parametrize(
    ("nodes", "target", "words"),
    [
        pytest.param((), "1.35", "", id="an empty cluster"),
        pytest.param((on_image("Talos (v1.11.2)"),), "1.34", "", id="in Talos' matrix"),
        pytest.param((on_image("Talos (v1.11.2)"),), "1.35", "Talos 1.11 is for Kubernetes up to 1.34", id="behind it"),
        pytest.param((on_image("Talos (v1.9.4)"),), "1.33", "Talos 1.9 is for Kubernetes up to 1.32", id="of 1.9"),
        pytest.param((on_image("Talos (v1.0.1)"),), "1.26", "Talos 1.0 is for Kubernetes up to 1.25", id="before all"),
        pytest.param((on_image("Rocky Linux 8.10 (Green Obsidian)"),), "1.35", "cgroup v1 by default", id="Rocky 8"),
        pytest.param((on_image("AlmaLinux 8.10 (Cerulean Leopard)"),), "1.35", "cgroup v1 by default", id="Alma 8"),
        pytest.param((on_image("Oracle Linux Server 8.10"),), "1.35", "cgroup v1 by default", id="Oracle 8"),
        pytest.param((on_image("CentOS Stream 8"),), "1.35", "cgroup v1 by default", id="Stream 8"),
        pytest.param((on_image("CentOS Linux 7 (Core)"),), "1.35", "cgroup v1 by default", id="CentOS 7"),
        pytest.param((on_image("Ubuntu 18.04.6 LTS"),), "1.35", "cgroup v1 by default", id="Ubuntu 18.04"),
        pytest.param((on_image("Debian GNU/Linux 9 (stretch)"),), "1.35", "cgroup v1 by default", id="Debian 9"),
        pytest.param((on_image("Rocky Linux 9.4 (Blue Onyx)"),), "1.35", "", id="Rocky 9"),
        pytest.param((on_image("Oracle Linux Server 9.2"),), "1.35", "", id="Oracle 9"),
        pytest.param((on_image("Red Hat Enterprise Linux 10.0 (Coughlan)"),), "1.35", "", id="RHEL 10"),
        pytest.param((on_image("Debian GNU/Linux 11 (bullseye)"),), "1.35", "", id="Debian 11"),
        pytest.param((on_image("Amazon Linux 2", labels=EKS),), "1.33", "up to 1.32", id="no image of EKS"),
        pytest.param((on_image("Amazon Linux 2"),), "1.33", "", id="an image of one's own"),
        pytest.param((on_image("Amazon Linux 2023", labels=EKS),), "1.35", "", id="its successor"),
        pytest.param((on_image("Ubuntu 20.04.6 LTS"),), "1.34", "", id="cgroup v1 before 1.35"),
        pytest.param((on_image("Ubuntu 20.04.6 LTS"),), "1.35", "cgroup v1 by default", id="cgroup v1 from 1.35 on"),
        pytest.param((on_image("Ubuntu 22.04.5 LTS"),), "1.35", "", id="cgroup v2"),
        pytest.param((on_image("Red Hat Enterprise Linux 8.10 (Ootpa)"),), "1.35", "cgroup v1 by default", id="RHEL 8"),
        pytest.param((on_image("Red Hat Enterprise Linux 9.8 (Plow)"),), "1.35", "", id="RHEL 9.8 is not 8"),
    ],
)
def test_node_images(nodes: tuple[Node, ...], target: str, words: str) -> None:
    """By what the kubelet reports as its operating system."""
    found = outcome("NodeImageTooOld", target, *nodes).findings
    assert [each.name for each in found] == ["NodeImageTooOld"] * bool(words)
    assert not words or words in found[0].message


def test_a_newer_image_than_the_table_has_is_unknown() -> None:
    """Also for a target that its newest release takes: a newer one may no longer take it."""
    for target in ("1.35", "1.38"):
        (found,) = outcome("NodeImageTooOld", target, on_image("Talos (v1.30.0)")).findings
        assert (found.name, found.applies.value) == ("NodeImageTooOldUnknown", "Unknown")


@pytest.mark.parametrize(
    ("kernel", "target", "expected"),
    [
        pytest.param("10.0.14393.7336", "1.33", ["NodeImageTooOld warning"], id="before Windows Server 2019"),
        pytest.param("10.0.17763.5820", "1.36", [], id="Windows Server 2019"),
        pytest.param("10.0.19041.1415", "1.35", ["NodeImageTooOld warning"], id="2004 counts as 1903"),
        pytest.param("10.0.19042.1889", "1.35", ["NodeImageTooOld warning"], id="20H2"),
        pytest.param("10.0.20348.2402", "1.36", [], id="Windows Server 2022"),
        pytest.param("10.0.26100.1742", "1.35", ["NodeImageTooOldUnknown warning"], id="newer than the table"),
    ],
)
def test_windows_builds(kernel: str, target: str, expected: list[str]) -> None:
    """CHANGELOG-1.24 and 1.26; https://kubernetes.io/docs/concepts/windows/intro/#windows-os-version-support."""
    on_windows = node(
        info={"operatingSystem": "windows", "osImage": "Windows Server Datacenter", "kernelVersion": kernel}
    )
    findings = outcome("NodeImageTooOld", target, on_windows).findings
    assert [f"{each.name} {each.severity}" for each in findings] == expected


@pytest.mark.parametrize(
    ("name", "target", "expected"), [("2019", "1.32", 0), ("2019", "1.33", 1), ("2022", "1.36", 0), ("2022", "1.37", 1)]
)
def test_windows_on_aks(name: str, target: str, expected: int) -> None:
    """https://github.com/Azure/AKS/releases/tag/2026-05-29 and 2026-06-19."""
    info = {"operatingSystem": "windows", "osImage": f"Windows Server {name} Datacenter", "kernelVersion": "10.0.20348"}
    on_aks = node(info=info, labels={"kubernetes.azure.com/agentpool": "win"})
    assert len(outcome("NodeImageTooOld", target, on_aks).findings) == expected


@pytest.mark.parametrize(
    ("source", "target", "kernel", "expected"),
    [
        pytest.param("1.32.3", "1.33", "4.18.0-553.el8_10.x86_64", ["NodeImageTooOld-Kernel warning"], id="refused"),
        pytest.param("1.32.3", "1.34", "4.18.0-553.el8_10.x86_64", ["NodeImageTooOld-Kernel warning"], id="on the way"),
        pytest.param("1.31.3", "1.32", "4.18.0-553.el8_10.x86_64", [], id="before it is verified"),
        pytest.param("1.32.3", "1.33", "4.19.0-26-amd64", [], id="the oldest that 1.33 takes"),
        pytest.param("1.33.3", "1.34", "4.19.0-26-amd64", ["NodeImageTooOld-Kernel info"], id="a warning of kubeadm"),
        pytest.param("1.33.3", "1.34", "5.15.0-91-generic", [], id="new enough"),
        pytest.param("1.33.3", "1.34", "", ["NodeImageTooOldUnknown warning"], id="none is reported"),
    ],
)
def test_kernels_that_kubeadm_takes(source: str, target: str, kernel: str, expected: list[str]) -> None:
    """k8s.io/system-validators v1.9.2 (1.33) and v1.10.2 (1.34), validators/types_unix.go."""
    of_kubeadm = node(
        info={"osImage": "Debian GNU/Linux 12 (bookworm)", "kernelVersion": kernel},
        annotations={"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock"},
    )
    update = with_fields(context(source, f"{target}.0", f"{target}.0"), cluster=ClusterKind.KUBERNETES)
    findings = run_check(BY_NAME["NodeImageTooOld"], snapshot(of_kubeadm), update).findings
    assert [f"{each.name} {each.severity}" for each in findings] == expected


@pytest.mark.parametrize(
    ("arguments", "kubelet_config", "expected"),
    [
        pytest.param('["server"]', "cgroupDriver: systemd", 1, id="nobody"),
        pytest.param('["server"]', "failCgroupV1: true", 1, id="the default"),
        pytest.param('["server"]', "failCgroupV1: false", 0, id="kubeadm's ConfigMap"),
        pytest.param('["server","--kubelet-arg=fail-cgroupv1=false"]', "", 0, id="an argument of k3s"),
    ],
)
def test_cgroup_v1_that_kubelets_are_told_to_take(arguments: str, kubelet_config: str, expected: int) -> None:
    """CHANGELOG-1.35 names this way out."""
    check = BY_NAME["NodeImageTooOld"]
    objects = [
        node_json(info={"osImage": "Rocky Linux 8.10"}, annotations={"k3s.io/node-args": arguments}),
        config_map_json("kubelet-config", "kube-system", kubelet=kubelet_config),
    ]
    update = with_fields(context("1.34.2", "1.35.0", "1.35.0"), cluster=ClusterKind.KUBERNETES)
    assert len(run_check(check, snapshot_of(check.reads, objects), update).findings) == expected


@pytest.mark.parametrize(
    ("spec", "target", "kubelet", "expected"),
    [
        pytest.param({"amiSelectorTerms": [{"alias": "al2@latest"}]}, "1.33", "-eks-1", 1, id="an alias"),
        pytest.param({"amiFamily": "AL2"}, "1.33", "-eks-1", 1, id="the family alone"),
        pytest.param(
            {"amiFamily": "AL2", "amiSelectorTerms": [{"alias": "al2023@v20250101"}]}, "1.33", "-eks-1", 0, id="another"
        ),
        pytest.param({"amiFamily": "AL2"}, "1.32", "-eks-1", 0, id="the last version with these images"),
        pytest.param({"amiFamily": "AL2"}, "1.33", "", 0, id="no cluster of EKS"),
    ],
)
def test_images_of_karpenters_classes(spec: dict[str, object], target: str, kubelet: str, expected: int) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html."""
    node_class = codec.convert(EC2NodeClass, {"metadata": {"name": "default"}, "spec": spec})
    objects = (on_image("Bottlerocket OS 1.20.0", kubelet=f"v1.31.0{kubelet}"), node_class)
    assert len(outcome("NodeImageTooOld", target, *objects).findings) == expected


@pytest.mark.parametrize(
    ("kubelet", "target", "day", "expected"),
    [
        pytest.param("v1.34.2", "1.35", (2026, 11, 23), "", id="upstream, months to go"),
        pytest.param("v1.34.2", "1.35", (2027, 1, 10), "Support of Kubernetes 1.35 ends on 2027-02-28", id="weeks"),
        pytest.param("v1.34.2", "1.35", (2027, 3, 1), "ended on 2027-02-28", id="over"),
        pytest.param("v1.34.2-eks-113cf36", "1.35", (2027, 1, 10), "", id="the service goes on for longer"),
        pytest.param(
            "v1.31.2-eks-113cf36",
            "1.32",
            (2026, 11, 23),
            "paid support ends on 2027-03-23",
            id="only paid support is left",
        ),
        pytest.param("v1.38.2", "1.39", (2027, 3, 1), "", id="newer than the calendar"),
        pytest.param("v1.17.2", "1.18", (2026, 11, 23), "1.18 ended at the latest on 2021-10-28", id="older than it"),
        pytest.param(
            "v1.33.4+k3s1", "1.34", (2026, 11, 23), "Support of Kubernetes 1.34 ended", id="k3s has none here"
        ),
        pytest.param("v1.33.5-gke.1", "1.34", (2026, 11, 23), "of GKE 1.34 ended on 2026-10-01", id="GKE has its own"),
        pytest.param("v1.33.5-aks", "1.34", (2026, 11, 23), "of AKS 1.34 ends on 2026-11-30", id="AKS, days"),
        pytest.param("v1.28.5-gke.1", "1.29", (2026, 11, 23), "1.29 ended at the latest on", id="older than GKE's"),
    ],
)
def test_calendars(kubelet: str, target: str, day: tuple[int, int, int], expected: str) -> None:
    """The distribution's own, else that of Kubernetes; with its source."""
    now = datetime(*day, 12, tzinfo=UTC)
    labels = {"kubernetes.azure.com/agentpool": "np1"} if kubelet.endswith("-aks") else {}
    found = outcome("TargetSupportEnded", target, node(kubelet=kubelet, labels=labels), now=now).findings
    assert [each.name for each in found] == ["TargetSupportEnded"] * bool(expected)
    assert not expected or (expected in found[0].message and "as of 20" in found[0].message)


def test_a_calendar_that_is_over_does_not_say_that_the_target_is_supported() -> None:
    """All that it has has ended, and the target is newer."""
    on_aks = node(kubelet="v1.37.5", labels={"kubernetes.azure.com/agentpool": "np1"})
    (found,) = outcome("TargetSupportEnded", "1.38", on_aks, now=datetime(2029, 1, 1, tzinfo=UTC)).findings
    assert (found.name, found.applies.value) == ("TargetSupportEndedUnknown", "Unknown")
    assert "the calendar of AKS" in found.message
    assert outcome("TargetSupportEnded", "1.38", on_aks, now=datetime(2026, 3, 1, tzinfo=UTC)).findings == ()


@pytest.mark.parametrize(
    ("day", "word"), [(datetime(2026, 1, 1, tzinfo=UTC), "ends"), (datetime(2026, 11, 1, tzinfo=UTC), "ended")]
)
def test_what_nobody_maintains(day: datetime, word: str) -> None:
    """It informs, before and after the day."""
    image = "registry.k8s.io/ingress-nginx/controller:v1.14.0@sha256:1"
    (found,) = outcome("AddonRetired", "1.35", running_pod(image), now=day).findings
    assert (found.name, found.severity) == ("AddonRetired-ingress-nginx", "info")
    assert f"v1.14.0 {word} on 2026-03-24" in found.message
    assert outcome("AddonRetired", "1.35", pod()).findings == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AddonIncompatible", PlacedPod),
        ("AddonRetired", PlacedPod),
        ("KubeProxySkew", PlacedPod),
        ("NodeImageTooOld", Node),
        ("TargetSupportEnded", Node),
    ],
)
def test_what_is_not_readable(name: str, kind: type[Object]) -> None:
    """Nothing is known then."""
    assert outcome(name, "1.35", unreadable={kind: "no rights"}).result == "Unknown"
