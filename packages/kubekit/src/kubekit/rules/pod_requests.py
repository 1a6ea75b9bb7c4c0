"""Computes what a pod requests of its node, with init containers, sidecars, overhead and requests of the pod itself.

As kubernetes, `staging/src/k8s.io/component-helpers/resource/helpers.go` (PodRequests) does:
https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING
from functools import lru_cache

from kubekit.api.scheduling import SchedulingContainer, SchedulingPodSpec
from kubekit.lang.quantity import QuantityError, parse_quantity

Requested = dict[str, int]
# Resources that `spec.resources` of a pod may have in place of the sum of its containers.
_OF_POD = ("cpu", "memory")


@lru_cache(8192)
def whole_number(resource: str, quantity: str | float) -> int:
    """Returns a quantity as a whole number, rounded up: milli-cores of cpu, units of everything else.

    What is not a quantity counts as nothing: no API server has stored it.
    """
    try:
        value = parse_quantity(str(quantity))
    except QuantityError:
        return 0
    return int((value * 1000 if resource == "cpu" else value).to_integral_value(ROUND_CEILING))


def whole_numbers(quantities: Mapping[str, str | int | float]) -> Requested:
    """Returns quantities of resources as whole numbers."""
    return {name: whole_number(name, quantity) for name, quantity in quantities.items()}


def pod_requests(spec: SchedulingPodSpec) -> Requested:
    """Returns what the pod requests: the greater of what runs together and what each init container needs alone."""
    total: Requested = {}
    for container in spec.containers:
        _add_to(total, whole_numbers(container.resources.requests))
    total = _with_init_containers(total, spec.init_containers)
    if spec.resources is not None:
        requested = whole_numbers(spec.resources.requests)
        total |= {name: value for name, value in requested.items() if name in _OF_POD or name.startswith("hugepages-")}
    _add_to(total, whole_numbers(spec.overhead))
    return total


def _with_init_containers(running: Requested, containers: tuple[SchedulingContainer, ...]) -> Requested:
    """Returns the requests of the running containers, or of init containers where one needs more (KEP-753)."""
    sidecars: Requested = {}
    most: Requested = {}
    for container in containers:
        requested = whole_numbers(container.resources.requests)
        if container.restart_policy == "Always":
            # A sidecar runs on beside all that come after it.
            _add_to(running, requested)
            _add_to(sidecars, requested)
            requested = dict(sidecars)
        else:
            _add_to(requested, sidecars)
        most = {name: max(most.get(name, 0), requested.get(name, 0)) for name in most | requested}
    return {name: max(running.get(name, 0), most.get(name, 0)) for name in running | most}


def _add_to(total: Requested, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
