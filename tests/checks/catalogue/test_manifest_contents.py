"""Finds fields in manifest files that the target does not accept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.factories import NOW

from runup.evaluation.manifest_files import evaluate_manifests

ZONED = 'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n}\nspec: {schedule: "%s 0 1 * * *"}\n'
SCALED = "apiVersion: %s\nkind: %s\nmetadata: {name: n}\nspec: {%s: {apiVersion: %s, kind: Deployment, name: web}}\n"
VOLUME = "{spec: {volumes: [{name: v, %s: {}}]}}"
WORKLOAD = "apiVersion: apps/v1\nkind: %s\nmetadata: {name: n}\nspec: {template: " + VOLUME + "}\n"
STORED = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {%s: {}}}"
JOBS = (
    "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n}\nspec: {jobTemplate: {spec: {template: "
    + VOLUME
    + "}}}\n"
)
CLASS = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: %s}"
MASTER, CONTROL_PLANE = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
PLACED = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: n}, spec: {template: {spec: {%s}}}}"
REQUIRED = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
    "[{matchExpressions: [{key: %s, operator: Exists}]}]}}}"
)
TOLERATES = "tolerations: [{key: %s, operator: Exists, effect: NoSchedule}]"
RULES = (
    "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: n}, "
    "spec: {groups: [{name: g, rules: [{alert: A, expr: 'rate(%s[5m]) > 0'}]}]}}"
)
CONFIG = "apiVersion: %s\nkind: %s\n"
GATES = "apiServer: {extraArgs: %s}"
OLD, OTHER = "{feature-gates: ComponentSLIs=true}", "[{name: v, value: '2'}]"
CAPI = (
    "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: KubeadmControlPlane\nmetadata: {name: n}\n"
    "spec: {kubeadmConfigSpec: {clusterConfiguration: {" + GATES + "}}}\n"
)
TEMPLATE = (
    "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfigTemplate\nmetadata: {name: n}\n"
    "spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: %s}}}}}\n"
)
PAUSE = "{pod-infra-container-image: x}"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n%s\n"
SCHEDULER, KUBEADM, AUDIT = "kubescheduler.config.k8s.io", "kubeadm.k8s.io", "audit.k8s.io"


@pytest.mark.parametrize(
    ("text", "to", "found"),
    [
        pytest.param(ZONED % "TZ=Europe/Berlin", "1.29", "CronJob-TimeZone", id="a zone"),
        pytest.param(ZONED % "CRON_TZ=UTC", "1.36", "CronJob-TimeZone", id="another zone"),
        pytest.param(ZONED % "TZ=Europe/Berlin", "1.28", "", id="a zone, before it is refused"),
        pytest.param(ZONED % "", "1.36", "", id="no zone"),
        pytest.param(
            SCALED % ("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "extensions/v1beta1"),
            "1.36",
            "HorizontalPodAutoscaler-Target",
            id="scales what is not served",
        ),
        pytest.param(
            SCALED % ("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "apps/v1"), "1.36", "", id="scales"
        ),
        pytest.param(
            SCALED % ("keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef", "apps/v1beta2"),
            "1.36",
            "ScaledObject-Target",
            id="scales by KEDA",
        ),
        pytest.param(WORKLOAD % ("DaemonSet", "cephfs"), "1.31", "DaemonSet-Volume", id="a volume"),
        pytest.param(WORKLOAD % ("DaemonSet", "cephfs"), "1.30", "", id="a volume, before it is gone"),
        pytest.param(JOBS % "gitRepo", "1.33", "CronJob-Volume", id="a repository"),
        pytest.param(JOBS % "gitRepo", "1.32", "", id="a repository, before it is off"),
        pytest.param(STORED % "rbd", "1.31", "PersistentVolume-Volume", id="a volume of a plug-in that is gone"),
        pytest.param(STORED % "rbd", "1.30", "", id="a volume of a plug-in, before it is gone"),
        pytest.param(CLASS % "kubernetes.io/rbd", "1.31", "StorageClass-Provisioner", id="a class"),
        pytest.param(CLASS % "kubernetes.io/rbd", "1.30", "", id="a class, before its plug-in is gone"),
        pytest.param(CLASS % "rbd.csi.ceph.com", "1.31", "", id="a class of a driver"),
        pytest.param(PLACED % f"nodeSelector: {{{MASTER}: ''}}", "1.24", "DaemonSet-NodeLabel", id="a label"),
        pytest.param(PLACED % f"nodeSelector: {{{MASTER}: ''}}", "1.23", "", id="a label, before it is gone"),
        pytest.param(PLACED % f"nodeSelector: {{{CONTROL_PLANE}: ''}}", "1.36", "", id="the label that stays"),
        pytest.param(PLACED % REQUIRED % MASTER, "1.36", "DaemonSet-NodeLabel", id="a label by affinity"),
        pytest.param(
            PLACED % REQUIRED.replace("Exists", "DoesNotExist") % MASTER, "1.36", "", id="nodes without a label"
        ),
        pytest.param(PLACED % TOLERATES % MASTER, "1.36", "DaemonSet-Toleration", id="a toleration"),
        pytest.param(PLACED % TOLERATES % MASTER, "1.24", "", id="a toleration, before the taint is gone"),
        pytest.param(PLACED % "tolerations: [{operator: Exists}]", "1.36", "", id="a toleration of all"),
        pytest.param(
            PLACED % f"tolerations: [{{key: {MASTER}, operator: Exists}}, {{key: {CONTROL_PLANE}, operator: Exists}}]",
            "1.36",
            "",
            id="tolerations of both",
        ),
        pytest.param(RULES % "volume_operation_total_errors", "1.37", "PrometheusRule-Metric", id="a metric"),
        pytest.param(RULES % "volume_operation_total_errors", "1.36", "", id="a metric, before it is hidden"),
        pytest.param(RULES % "up", "1.37", "", id="a metric of another project"),
        pytest.param(STORED % "nfs", "1.36", "", id="a volume of a plug-in that stays"),
        pytest.param(JOBS % "emptyDir", "1.36", "", id="another volume"),
        pytest.param(
            CONFIG % (f"{SCHEDULER}/v1beta3", "KubeSchedulerConfiguration"),
            "1.29",
            "KubeSchedulerConfiguration",
            id="the scheduler's",
        ),
        pytest.param(
            CONFIG % (f"{SCHEDULER}/v1beta3", "KubeSchedulerConfiguration"), "1.28", "", id="the scheduler's, before"
        ),
        pytest.param(
            CONFIG % (f"{KUBEADM}/v1beta3", "ClusterConfiguration"), "1.37", "ClusterConfiguration", id="kubeadm"
        ),
        pytest.param(CONFIG % (f"{KUBEADM}/v1beta4", "ClusterConfiguration"), "1.37", "", id="kubeadm's newer"),
        pytest.param(CONFIG % (f"{AUDIT}/v1beta1", "Policy"), "1.24", "Policy", id="audit"),
        pytest.param(CAPI % OLD, "1.35", "KubeadmControlPlane-Setting", id="a gate of Cluster API"),
        pytest.param(CAPI % OLD, "1.34", "", id="a gate of Cluster API, before"),
        pytest.param(CAPI % OTHER, "1.35", "", id="another flag"),
        pytest.param(TEMPLATE % PAUSE, "1.35", "KubeadmConfigTemplate-Setting", id="a flag of Cluster API's nodes"),
        pytest.param(
            KUBELET % "featureGates: {ComponentSLIs: true}", "1.35", "KubeletConfiguration-Setting", id="kubelet"
        ),
        pytest.param(KUBELET % "eventRecordQPS: 0", "1.37", "KubeletConfiguration-Setting", id="a kubelet's field"),
        pytest.param(KUBELET % "eventRecordQPS: 50", "1.37", "", id="a kubelet's other field"),
        pytest.param("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n}\nspec: [1]\n", "1.36", "", id="odd"),
    ],
)
def test_what_manifests_contain(text: str, to: str, found: str, tmp_path: Path) -> None:
    """Each by the first minor version that does not take it, and not by the one before."""
    file = tmp_path / "a.yaml"
    file.write_text(text)
    evaluated, _ = evaluate_manifests([str(file)], to, NOW)
    assert evaluated.report is not None
    risks = [risk.name for risk in evaluated.report.risks if risk.applies == "True"]
    assert risks == ([f"RemovedAPIInManifest-{found}"] if found else [])
    assert not [risk for risk in evaluated.report.risks if risk.applies == "Unknown"]


@pytest.mark.parametrize(
    ("api_version", "kind", "addon"),
    [
        ("external-secrets.io/v1beta1", "ExternalSecret", "External Secrets 0.17"),
        ("karpenter.sh/v1beta1", "NodePool", "Karpenter 1.1"),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "Karpenter 0.33"),
        ("traefik.containo.us/v1alpha1", "IngressRoute", "Traefik 3.0"),
        ("keda.k8s.io/v1alpha1", "ScaledObject", "KEDA 2.0"),
        ("gateway.networking.k8s.io/v1alpha2", "GRPCRoute", "the Gateway API 1.2"),
        ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "Flux 2.7"),
        ("external-secrets.io/v1", "ExternalSecret", ""),
        ("gateway.networking.k8s.io/v1alpha2", "TLSRoute", ""),
        ("networking.istio.io/v1alpha3", "VirtualService", ""),
        ("argoproj.io/v1alpha1", "Application", ""),
    ],
)
def test_versions_that_add_ons_dropped(api_version: str, kind: str, addon: str, tmp_path: Path) -> None:
    """By the release notes that each row of the table cites."""
    file = tmp_path / "a.yaml"
    file.write_text(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: n}}\n")
    evaluated, _ = evaluate_manifests([str(file)], "1.36", NOW)
    assert evaluated.report is not None
    shown = [risk.message for risk in evaluated.report.risks if risk.applies == "True"]
    assert [addon in message for message in shown] == [True] * bool(addon)
