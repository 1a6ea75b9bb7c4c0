"""A LimitRange refuses the platform's next pods, or limits their containers.

Applies when a namespace of the platform has a LimitRange, and the next pods of a workload there exceed its maximum,
fall below its minimum, lack a required value, or request more than the limit that it sets by default (critical). It
also applies when the LimitRange sets a limit of cpu or memory for containers without one (warning). Its defaults are
applied to the pod templates first. Deployments, DaemonSets and StatefulSets are evaluated, limits of type Container and
Pod.

Why it matters: the API server refuses the pods that the update creates, or their containers are killed when they use
more memory than the limit. The platform's own containers have requests but no limits.

Remedy: delete the LimitRange, `oc delete limitrange NAME -n NAMESPACE`; no release has one.

Accepting it is right where the limits are high enough for the platform's containers.

Source of the rule: kubernetes, `plugin/pkg/admission/limitranger` and `pkg/apis/core/v1/defaults.go`
(SetDefaults_LimitRangeItem); openshift/enhancements, CONVENTIONS.md (resources and limits).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubekit.lang.text import count
from runup.api.clusterversion_json import mapping, mappings
from runup.checks.catalogue.shared.limit_ranges import LIMIT_RANGES, LimitRange, refusal, with_defaults
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS, platform_workloads, pod_of
from runup.checks.writing import Context, Findings, Slim, Snapshot, declared, full_name, names, risk, yield_from_all
from runup.rules.platform_namespaces import is_system

NAME = "PlatformPodsLimited"
EXAMPLE = """
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: kube-system}
spec: {limits: [{type: Container, default: {memory: 64Mi}, defaultRequest: {memory: 64Mi}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system}
spec: {template: {spec: {containers: [{name: kube-proxy, resources: {requests: {memory: 70Mi}}}]}}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each LimitRange that refuses pods of the platform, or limits their containers."""
    ranges = [each for each in snapshot.listed(LIMIT_RANGES) if is_system(each.metadata.namespace)]
    if not ranges:
        return
    pods: dict[str, list[tuple[str, dict[str, Any]]]] = {}

    def collect(resource: Slim) -> Findings:
        for workload in platform_workloads(snapshot, resource):
            namespace, name = workload["metadata"]["namespace"], workload["metadata"].get("name", "")
            pods.setdefault(namespace, []).append((f"{resource.kind} {name}", mapping(pod_of(workload), "spec")))
        yield from ()

    def report() -> Findings:
        for limit_range in sorted(ranges, key=full_name):
            yield from _finding(limit_range, pods.get(limit_range.metadata.namespace, ()))

    # Workloads of a kind that could not be listed do not hide the others.
    yield from yield_from_all(*(lambda kind=kind: collect(kind) for kind in WORKLOADS), report)


def _finding(limit_range: LimitRange, pods: Iterable[tuple[str, dict[str, Any]]]) -> Findings:
    refused = {
        name: why
        for name, spec in pods
        if (why := refusal(limit_range, _resources(spec, "containers"), _resources(spec, "initContainers")))
    }
    limited = {name: why for name, spec in pods if name not in refused and (why := _new_limits(limit_range, spec))}
    if not (refused or limited):
        return
    found, verb = (refused, "refuses") if refused else (limited, "sets limits for the containers of")
    listing = names([f"{name} ({why})" for name, why in found.items()])
    metadata = limit_range.metadata
    yield risk(
        f"{NAME}-{metadata.namespace}-{metadata.name}",
        f"LimitRange {full_name(limit_range)} {verb} {'the next pods of ' if refused else ''}"
        f"{count(len(found), 'workload')} of the platform: {listing}.",
        [limit_range],
        severity="critical" if refused else "warning",
        fix=f"Delete it: `oc delete limitrange {metadata.name} -n {metadata.namespace}`.",
        kind=LIMIT_RANGES,
    )


def _new_limits(limit_range: LimitRange, spec: Mapping[str, Any]) -> str:
    """Returns in words the limits that containers of a pod do not have themselves, or an empty string."""
    added: dict[str, None] = {}
    for resources in (*_resources(spec, "initContainers"), *_resources(spec, "containers")):
        own = mapping(resources, "limits")
        added |= dict.fromkeys(sorted(with_defaults(limit_range, resources)[1].keys() - own.keys() & {"cpu", "memory"}))
    return names(list(added))


def _resources(spec: Mapping[str, Any], containers: str) -> list[dict[str, Any]]:
    return [mapping(container, "resources") for container in mappings(spec, containers)]


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(LIMIT_RANGES, *WORKLOADS),
    rank=623,
    severity="critical",
)
