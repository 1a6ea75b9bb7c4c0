"""A LimitRange refuses the platform's next pods, or limits their containers.

Applies when a namespace of the platform has a LimitRange, and the next pods of a workload there exceed its maximum,
fall below its minimum, lack a required value, or request more than the limit that it sets by default (critical). It
also applies when the LimitRange sets a limit of cpu or memory for containers that have none (warning). Its defaults are
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
from decimal import Decimal
from typing import Any

from kubekit.api.meta_v1 import Object, Wire
from kubekit.lang.text import count
from runup.api.clusterversion_json import mapping, mappings
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS, platform_workloads, pod_of
from runup.checks.catalogue.shared.pods import quantity_or_none
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
_Quantities = dict[str, str | int | float]
_Amounts = Mapping[str, Decimal]


class LimitRangeItem(Wire, frozen=True, kw_only=True):
    """Limits of each Container, Pod, or other object."""

    type: str = ""
    max: _Quantities = {}
    min: _Quantities = {}
    default: _Quantities = {}
    default_request: _Quantities = {}
    max_limit_request_ratio: _Quantities = {}


class LimitRangeSpec(Wire, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Object, frozen=True, kw_only=True):
    """Limits of each object in a namespace, and defaults of containers."""

    spec: LimitRangeSpec = LimitRangeSpec()


LIMIT_RANGES = Slim(group="", version="v1", kind="LimitRange", plural="limitranges", namespaced=True, type=LimitRange)


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
    refused = {name: why for name, spec in pods if (why := _refusal(limit_range, spec))}
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


def _amounts(quantities: Mapping[str, Any]) -> dict[str, Decimal]:
    parsed = {key: quantity_or_none(value) for key, value in quantities.items() if isinstance(value, str | int | float)}
    return {key: amount for key, amount in parsed.items() if amount is not None}


def _of_container(limit_range: LimitRange, container: Mapping[str, Any]) -> tuple[_Amounts, _Amounts]:
    """Returns requests and limits of a container, with the defaults of the LimitRange."""
    resources = mapping(container, "resources")
    limits = _amounts(mapping(resources, "limits"))
    requests = limits | _amounts(mapping(resources, "requests"))
    for item in limit_range.spec.limits:
        if item.type == "Container":
            default = _amounts(item.max) | _amounts(item.default)
            default_request = _amounts(item.min) | default | _amounts(item.default_request)
            requests = default_request | requests
            limits = default | limits
    return requests, limits


def _refusal(limit_range: LimitRange, spec: Mapping[str, Any]) -> str:
    """Returns why the API server refuses a pod, or an empty string."""
    containers = [_of_container(limit_range, each) for each in mappings(spec, "containers")]
    initial = [_of_container(limit_range, each) for each in mappings(spec, "initContainers")]
    for requests, limits in (*initial, *containers):
        for resource in sorted(requests.keys() & limits.keys()):
            if requests[resource] > limits[resource]:
                return f"its request of {resource} is above the default limit"
    whole = (_sum(requests for requests, _ in containers), _sum(limits for _, limits in containers))
    for item in limit_range.spec.limits:
        checked = {"Container": [*initial, *containers], "Pod": [whole]}.get(item.type, [])
        for requests, limits in checked:
            if why := _exceeded(item, requests, limits):
                return why
    return ""


def _sum(amounts: Iterable[_Amounts]) -> _Amounts:
    total: dict[str, Decimal] = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _exceeded(item: LimitRangeItem, requests: _Amounts, limits: _Amounts) -> str:
    """Returns which limit of the item a container or pod does not meet, or an empty string."""
    for resource, least in _amounts(item.min).items():
        if resource not in requests or min(requests[resource], limits.get(resource, least)) < least:
            return f"{resource} is below the minimum"
    for resource, most in _amounts(item.max).items():
        if resource not in limits:
            return f"it has no limit of {resource}"
        if max(limits[resource], requests.get(resource, most)) > most:
            return f"{resource} is above the maximum"
    for resource, ratio in _amounts(item.max_limit_request_ratio).items():
        if not requests.get(resource) or resource not in limits or limits[resource] / requests[resource] > ratio:
            return f"its limit of {resource} is too high for its request"
    return ""


def _new_limits(limit_range: LimitRange, spec: Mapping[str, Any]) -> str:
    """Returns in words the limits that containers of a pod do not have themselves, or an empty string."""
    added: dict[str, None] = {}
    for container in (*mappings(spec, "initContainers"), *mappings(spec, "containers")):
        own = mapping(mapping(container, "resources"), "limits")
        added |= dict.fromkeys(sorted(_of_container(limit_range, container)[1].keys() - own.keys() & {"cpu", "memory"}))
    return names(list(added))


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(LIMIT_RANGES, *WORKLOADS),
    rank=623,
    severity="critical",
)
