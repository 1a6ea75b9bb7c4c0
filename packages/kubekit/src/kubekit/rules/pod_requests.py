"""Computes what a pod requests of its node, with init containers, sidecars, overhead and requests of the pod itself.

As kubernetes, `staging/src/k8s.io/component-helpers/resource/helpers.go` (PodRequests) does:
https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from kubekit.api.scheduling import SchedulingPodSpec
from kubekit.lang.quantity import QuantityError, whole_units

Requested = dict[str, int]
A = TypeVar("A")
Combine = Callable[[Mapping[str, A], Mapping[str, A]], dict[str, A]]


@lru_cache(8192)
def whole_number(resource: str, quantity: str | float) -> int:
    """Returns a quantity rounded up: milli-cores of cpu, units of all else; 0 for what is not a quantity."""
    try:
        return whole_units(str(quantity), 1000 if resource == "cpu" else 1)
    except QuantityError:
        return 0


def whole_numbers(quantities: Mapping[str, str | int | float]) -> Requested:
    """Returns quantities of resources as whole numbers."""
    return {name: whole_number(name, quantity) for name, quantity in quantities.items()}


def is_pod_level(resource: str) -> bool:
    """Returns whether `spec.resources` of a pod may have the resource in place of the sum of its containers."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def total_of_containers(
    containers: Iterable[Mapping[str, A]],
    init_containers: Iterable[tuple[Mapping[str, A], bool]],
    of_pod: Mapping[str, A],
    *,
    add: Combine[A],
    larger: Combine[A],
) -> dict[str, A]:
    """Returns the greater of what runs together and what each init container needs alone, for each resource (KEP-753).

    Each init container comes with whether it is a sidecar. `of_pod` replaces the sum if the pod itself sets
    resources. `add` and `larger` combine two mappings, resource by resource. Without the overhead.
    """
    running: dict[str, A] = {}
    for amounts in containers:
        running = add(running, amounts)
    sidecars: dict[str, A] = {}
    most: dict[str, A] = {}
    for amounts, is_sidecar in init_containers:
        if is_sidecar:
            # It runs together with all containers that start later.
            running, sidecars = add(running, amounts), add(sidecars, amounts)
            most = larger(most, sidecars)
        else:
            most = larger(most, add(amounts, sidecars))
    return larger(running, most) | {name: amount for name, amount in of_pod.items() if is_pod_level(name)}


def pod_requests(spec: SchedulingPodSpec) -> Requested:
    """Returns what the pod requests: the greater of what runs together and what each init container needs alone."""
    total = total_of_containers(
        [whole_numbers(container.resources.requests) for container in spec.containers],
        [
            (whole_numbers(container.resources.requests), container.restart_policy == "Always")
            for container in spec.init_containers
        ],
        whole_numbers(spec.resources.requests) if spec.resources is not None else {},
        add=_sums,
        larger=lambda a, b: {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}},
    )
    return _sums(total, whole_numbers(spec.overhead))


def qos_class(spec: Mapping[str, Any]) -> str:
    """Returns the quality of service class of a pod (kubernetes, `pkg/apis/core/v1/helper/qos`)."""
    all_limited, any_amount = True, False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        requests, limits = (
            {name: (resources.get(key) or {}).get(name) for name in ("cpu", "memory")} for key in ("requests", "limits")
        )
        any_amount |= any((*requests.values(), *limits.values()))
        all_limited &= all(limit and requests[name] in (None, limit) for name, limit in limits.items())
    if not any_amount:
        return "BestEffort"
    return "Guaranteed" if all_limited else "Burstable"


def _sums(first: Mapping[str, int], other: Mapping[str, int]) -> Requested:
    return {name: first.get(name, 0) + other.get(name, 0) for name in {**first, **other}}
