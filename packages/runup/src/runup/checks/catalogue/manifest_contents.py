"""Contents of manifests in files that the target does not accept, besides their API versions. Pure.

Scale targets in a removed version, schedules with a time zone, volumes and StorageClasses of plug-ins that are gone,
labels and taints that kubeadm does not give to nodes any more, metrics in rules of Prometheus, and the settings that
kubeadm's files and Cluster API's control planes give to components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import Object, ObjectMeta
from kubekit.lang.text import count
from runup.checks.catalogue.control_plane.removed_metric import RULES, Ended, RulesSpec, ended_metrics
from runup.checks.catalogue.control_plane.removed_setting import refusal
from runup.checks.catalogue.control_plane.shared.given_settings import GATE, Given, fields_in, settings_in
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.catalogue.shared.workload_reads import TemplateSpec
from runup.checks.catalogue.storage.removed_volumes import PROVISIONERS, removed_plugins
from runup.checks.catalogue.workloads.removed_node_label import NEW_LABEL, demands_label, known_taints, tolerates
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.model import Context, Finding
from runup.checks.decide.removal_tables import removal_of, table
from runup.checks.decide.stored_manifests import IN_FILES, Manifest
from runup.checks.decide.wording import names
from runup.report.report import Severity

# Where a kind says which object it scales.
_TARGETS = {
    "HorizontalPodAutoscaler": "spec.scaleTargetRef",
    "VerticalPodAutoscaler": "spec.targetRef",
    "ScaledObject": "spec.scaleTargetRef",
}
# The first minor version that refuses a time zone in a schedule (kubernetes, pkg/apis/batch/validation).
_NO_ZONE = 29
_TEMPLATES = {"Pod": "spec", "PodTemplate": "template.spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController")
_CLUSTER = (
    ("apiServer.extraArgs", "kube-apiserver"),
    ("controllerManager.extraArgs", "kube-controller-manager"),
    ("scheduler.extraArgs", "kube-scheduler"),
    ("etcd.local.extraArgs", "etcd"),
)
_KUBELET = (("nodeRegistration.kubeletExtraArgs", "kubelet"),)
# The parts of kubeadm's files with the arguments of components, by kind.
_KUBEADM = {"ClusterConfiguration": _CLUSTER, "InitConfiguration": _KUBELET, "JoinConfiguration": _KUBELET}
# Where Cluster API has such parts, by kind (cluster-api, api/bootstrap/kubeadm and api/controlplane/kubeadm).
_CLUSTER_API = {
    "KubeadmControlPlane": "spec.kubeadmConfigSpec",
    "KubeadmControlPlaneTemplate": "spec.template.spec.kubeadmConfigSpec",
    "KubeadmConfig": "spec",
    "KubeadmConfigTemplate": "spec.template.spec",
}
# Configuration files of components, with the component.
_COMPONENTS = {"KubeletConfiguration": "kubelet", "KubeProxyConfiguration": "kube-proxy"}


def content_findings(manifests: Sequence[Manifest], context: Context) -> Iterator[Finding]:
    """Yields the findings about what the manifests contain."""
    target = target_minor(context)
    if target is None:
        return
    whole = [manifest for manifest in manifests if isinstance(manifest.content, dict)]
    yield from _scale_targets(whole, target)
    jobs = [manifest for manifest in whole if (manifest.group, manifest.kind) == ("batch", "CronJob")]
    zoned = [manifest for manifest in jobs if "TZ" in str(_at(manifest.content, "spec.schedule"))]
    if zoned and target >= _NO_ZONE:
        yield _finding(
            "CronJob-TimeZone",
            zoned,
            f"{count(len(zoned), 'CronJob')} with TZ or CRON_TZ in the schedule ({_places(zoned)}), which Kubernetes "
            f"1.{_NO_ZONE} and later refuse to create.",
            "Write the zone in spec.timeZone.",
        )
    yield from _volumes(whole, target)
    yield from _classes(whole, target)
    if context.cluster is ClusterKind.KUBERNETES:
        yield from _nodes(whole, target)
        yield from _metrics(whole, target)
    yield from _settings(whole, target)


def _at(content: Any, path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    for step in path.split("."):
        content = content.get(step) if isinstance(content, dict) else None
    return content


def _places(manifests: Sequence[Manifest]) -> str:
    return names(sorted({manifest.place for manifest in manifests}))


def _finding(
    suffix: str, manifests: Sequence[Manifest], message: str, fix: str, *, severity: Severity = "critical"
) -> Finding:
    return Finding(
        name=f"{IN_FILES}-{suffix}",
        message=message,
        reason=IN_FILES,
        severity=severity,
        resources=tuple(dict.fromkeys(manifest.reference for manifest in manifests)),
        remediation=fix,
    )


def _scale_targets(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the findings about autoscalers of an object in a version that the target does not serve."""
    for kind, path in _TARGETS.items():
        old: dict[str, list[Manifest]] = {}
        for manifest in manifests:
            scaled = _at(manifest.content, path) if manifest.kind == kind else None
            api_version, of_kind = str(_at(scaled, "apiVersion") or ""), str(_at(scaled, "kind") or "")
            group, _, version = api_version.rpartition("/")
            removal = removal_of(group, version, of_kind)
            if removal is not None and removal <= target:
                old.setdefault(f"{of_kind} in {api_version}", []).append(manifest)
        if old:
            all_old = [manifest for of_type in old.values() for manifest in of_type]
            yield _finding(
                f"{kind}-Target",
                all_old,
                f"{count(len(all_old), kind)} ({_places(all_old)}) of {names(sorted(old))}, which 1.{target} does not "
                "serve, so that nothing is scaled.",
                f"Write the served version in {path}, such as apps/v1.",
                severity="warning",
            )


def _volumes(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the findings about volumes, and pod templates with one, of a plug-in that the target does not have."""
    removed = removed_plugins(target)
    by_kind: dict[str, list[tuple[Manifest, set[str]]]] = {}
    for manifest in manifests:
        path = _TEMPLATES.get(manifest.kind) or ("spec.template.spec" if manifest.kind in _WORKLOADS else "")
        listed = _at(manifest.content, f"{path}.volumes") if path else None
        volumes = [volume for volume in listed if isinstance(volume, dict)] if isinstance(listed, list) else []
        plugins = {key for volume in volumes for key in volume}
        if manifest.kind == "PersistentVolume":
            plugins = {*(_at(manifest.content, "spec") or ())}
        if plugins & removed:
            by_kind.setdefault(manifest.kind, []).append((manifest, plugins & removed))
    for kind, found in by_kind.items():
        of_kind = [manifest for manifest, _ in found]
        plugins = {plugin for _, of_manifest in found for plugin in of_manifest}
        yield _finding(
            f"{kind}-Volume",
            of_kind,
            f"{count(len(of_kind), kind)} ({_places(of_kind)}) with a volume of type {names(sorted(plugins))}, which "
            f"1.{target} cannot mount.",
            "Use a volume of a CSI driver; an init container that clones the repository replaces gitRepo.",
        )


def _classes(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the finding about StorageClasses whose provisioner the target does not have."""
    removed = removed_plugins(target)
    found = [
        manifest
        for manifest in manifests
        if (manifest.group, manifest.kind) == ("storage.k8s.io", "StorageClass")
        and PROVISIONERS.get(str(_at(manifest.content, "provisioner"))) in removed
    ]
    if found:
        provisioners = names(sorted({str(_at(manifest.content, "provisioner")) for manifest in found}))
        yield _finding(
            "StorageClass-Provisioner",
            found,
            f"{count(len(found), 'StorageClass')} ({_places(found)}) of {provisioners}, which 1.{target} lacks: "
            "claims stay Pending.",
            "Write a class of a CSI driver; the provisioner of a class cannot be changed.",
            severity="warning",
        )


def _nodes(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the findings about labels that kubeadm's nodes lack, and about taints that pods do not tolerate."""
    rows = table("kubeadm-nodes")
    gone = {key: {name for _, row in rows.until(target) for name in row.get(key, ())} for key in ("labels", "taints")}
    since = {name: minor for minor, row in rows.until(target) for name in row.get("labels", ())}
    taints = known_taints(rows) - gone["taints"]
    demanding: dict[tuple[str, str], list[Manifest]] = {}
    lacking: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        path = _TEMPLATES.get(manifest.kind) or ("spec.template.spec" if manifest.kind in _WORKLOADS else "")
        try:
            spec = codec.convert(TemplateSpec, _at(manifest.content, path) or {}) if path else TemplateSpec()
        except codec.DecodeError:
            continue
        for label in gone["labels"]:
            if demands_label(spec, label):
                demanding.setdefault((manifest.kind, label), []).append(manifest)
        if any(tolerates(spec.tolerations, taint) for taint in gone["taints"]) and not any(
            tolerates(spec.tolerations, taint) for taint in taints
        ):
            lacking.setdefault(manifest.kind, []).append(manifest)
    for (kind, label), of_kind in demanding.items():
        yield _finding(
            f"{kind}-NodeLabel",
            of_kind,
            f"{count(len(of_kind), kind)} ({_places(of_kind)}) for nodes with the label {label}, which kubeadm "
            f"1.{since[label]} and later remove.",
            f"Write {NEW_LABEL}.",
            severity="warning",
        )
    for kind, of_kind in lacking.items():
        yield _finding(
            f"{kind}-Toleration",
            of_kind,
            f"{count(len(of_kind), kind)} ({_places(of_kind)}) tolerating {names(sorted(gone['taints']))}, which "
            f"kubeadm 1.{target} does not give to nodes, and none of {names(sorted(taints))}.",
            f"Add a toleration of {names(sorted(taints))}.",
            severity="warning",
        )


def _metrics(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the finding about rules of Prometheus with metrics that the target does not have or hides."""
    ended: dict[Ended, None] = {}
    found: list[Manifest] = []
    for manifest in manifests:
        if manifest.kind != RULES.kind or manifest.group != RULES.group:
            continue
        try:
            spec = codec.convert(RulesSpec, _at(manifest.content, "spec") or {})
        except codec.DecodeError:
            # The operator of Prometheus refuses such rules.
            continue
        expressions = [str(rule.expr) for rule in spec.rules]
        if of_rules := [each for text in expressions for each in ended_metrics(text, 0, target)]:
            ended.update(dict.fromkeys(of_rules))
            found.append(manifest)
    if found:
        yield _finding(
            "PrometheusRule-Metric",
            found,
            f"{count(len(found), 'PrometheusRule')} ({_places(found)}) with metrics that 1.{target} does not have: "
            f"{names(sorted(map(str, ended)))}.",
            "Name the metrics that replace them.",
            severity="warning",
        )


def _settings(manifests: Sequence[Manifest], target: int) -> Iterator[Finding]:
    """Yields the findings about settings of components that the target's do not take."""
    for manifest in manifests:
        given = list(_given(manifest))
        gates = {(each.component, each.name): each.value for each in given if each.setting == GATE}
        for each in given:
            if refused := refusal(each, target, gates):
                yield _finding(
                    f"{manifest.kind}-Setting",
                    [manifest],
                    f"{each.setting} {each.name} of {each.component} is set ({manifest.place}, {each.place}): "
                    f"{refused.why}.",
                    f"{refused.fix} {each.fix}".strip(),
                    severity=refused.severity,
                )


def _given(manifest: Manifest) -> Iterator[Given]:
    """Yields the settings that a manifest gives to components."""
    content, kind = manifest.content, manifest.kind
    holder = Object(metadata=ObjectMeta(name=manifest.name, namespace=manifest.namespace))
    fix = "Take it out."
    if component := _COMPONENTS.get(kind):
        yield from settings_in(content, (("featureGates", component),), holder=holder, key=kind, fix=fix)
        yield from fields_in(content, component, holder=holder, key=kind, fix=fix)
    parts: list[tuple[str, Any]] = [(kind, content)] if manifest.group == "kubeadm.k8s.io" else []
    if manifest.group.endswith("cluster.x-k8s.io") and kind in _CLUSTER_API:
        spec = _at(content, _CLUSTER_API[kind])
        parts += [(of_kind, _at(spec, of_kind[0].lower() + of_kind[1:])) for of_kind in _KUBEADM]
    for of_kind, part in parts:
        if isinstance(part, Mapping):
            yield from settings_in(part, _KUBEADM.get(of_kind, ()), holder=holder, key=of_kind, fix=fix)
