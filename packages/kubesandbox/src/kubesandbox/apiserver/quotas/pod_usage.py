"""Usage of a pod: requests and limits of its containers, and the scopes that it is in. Pure.

As pkg/quota/v1/evaluator/core/pods.go of Kubernetes and k8s.io/component-helpers/resource count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kubekit.rules.pod_requests import is_pod_level, total_of_containers
from kubesandbox.apiserver.objects.defaults import quality_of_service
from kubesandbox.apiserver.quotas.amounts import Amounts, add_amounts, larger_of_both

JSON = dict[str, Any]

NAMES = frozenset(
    {"count/pods", "cpu", "memory", "ephemeral-storage", "pods"}
    | {f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")}
)
# A pod must state these where a quota has them. It was a mistake, says Kubernetes; so no others were added.
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"


def is_pod_resource(name: str) -> bool:
    """Returns whether a quota's resource of this name is one of pods."""
    if name in NAMES or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}")):
        return True
    # Extended resources have a domain, and no limit apart from their request.
    return (
        name.startswith("requests.") and "/" in name and not name.removeprefix("requests.").startswith("kubernetes.io/")
    )


def usage_of_pod(pod: JSON, now: datetime) -> dict[str, str]:
    """Returns what a pod uses; one that has ended, or that is long past its deletion, only itself as an object."""
    used = {"count/pods": "1"}
    if not _is_counted(pod, now):
        return used
    spec = pod.get("spec") or {}
    return {**used, **_compute_resources(_total_of_containers(spec, "requests"), _total_of_containers(spec, "limits"))}


def missing_resources(pod: JSON, names: Iterable[str]) -> str:
    """Returns which of `names` a pod must state and which containers do not, empty if none: `cpu for: a,b`."""
    spec = pod.get("spec") or {}
    if _has_pod_resources(spec):
        return ""
    required, lacking = _REQUIRED.intersection(names), dict[str, set[str]]()
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        stated = _compute_resources(
            _requests_or_limits(container, "requests"), _requests_or_limits(container, "limits")
        )
        for name in required - stated.keys():
            lacking.setdefault(name, set()).add(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))


def in_scope(pod: JSON, scope: str, operator: str, values: Iterable[str]) -> bool:
    """Returns whether a pod is in a scope of a quota."""
    spec = pod.get("spec") or {}
    if scope in {"Terminating", "NotTerminating"}:
        return is_terminating(pod) == (scope == "Terminating")
    if scope in {"BestEffort", "NotBestEffort"}:
        return (quality_of_service(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return any(_crosses_namespaces(term) for term in _affinity_terms(spec.get("affinity") or {}))
    if scope != "PriorityClass":
        return False
    name = spec.get("priorityClassName") or ""
    if operator in {"In", "NotIn"}:
        return (name in values) == (operator == "In") if name else operator == "NotIn"
    return bool(name) == (operator == "Exists")


def is_terminating(pod: JSON) -> bool:
    """Returns whether a pod has a deadline, which is what quotas call terminating."""
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_counted(pod: JSON, now: datetime) -> bool:
    """Returns whether a pod uses resources: it has not ended, and is not long past its deletion."""
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return False
    metadata = pod["metadata"]
    deleted, grace_s = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace_s is None:
        return True
    return now <= datetime.fromisoformat(deleted) + timedelta(seconds=grace_s)


def _compute_resources(requests: Amounts, limits: Amounts) -> dict[str, str]:
    """Returns requests and limits by the names that quotas have for them."""
    result = {"pods": "1"}
    for name, amount in requests.items():
        if name in _NATIVE or name.startswith(_HUGE_PAGES):
            result |= {name: amount, f"requests.{name}": amount}
        elif "/" in name:
            result[f"requests.{name}"] = amount
    return result | {f"limits.{name}": amount for name, amount in limits.items() if name in _NATIVE}


def _requests_or_limits(holder: Mapping[str, Any], side: str) -> dict[str, str]:
    amounts = (holder.get("resources") or {}).get(side) or {}
    return {name: str(amount) for name, amount in amounts.items()}


def _has_pod_resources(spec: JSON) -> bool:
    """Returns whether the pod has resources of its own, besides those of its containers."""
    return any(is_pod_level(name) for side in ("requests", "limits") for name in _requests_or_limits(spec, side))


def _total_of_containers(spec: JSON, side: str) -> dict[str, str]:
    """Returns the requests or limits of a pod: of its containers together, or of the init container that needs most."""
    total = total_of_containers(
        [_requests_or_limits(container, side) for container in spec.get("containers") or ()],
        [
            (_requests_or_limits(container, side), container.get("restartPolicy") == "Always")
            for container in spec.get("initContainers") or ()
        ],
        _requests_or_limits(spec, side),
        add=add_amounts,
        larger=larger_of_both,
    )
    overhead = {name: str(amount) for name, amount in (spec.get("overhead") or {}).items()}
    # A limit that nobody set stays without one.
    return add_amounts(total, overhead if side == "requests" else {k: v for k, v in overhead.items() if k in total})


def _affinity_terms(affinity: JSON) -> Iterator[JSON]:
    """Yields each required and preferred term of pod affinity and anti-affinity."""
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _crosses_namespaces(term: JSON) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
