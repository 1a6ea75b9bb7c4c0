"""The room that ResourceQuotas leave in a simulation: a recreated pod counts twice while the old one terminates.

https://kubernetes.io/docs/concepts/policy/resource-quotas/. Quotas with scopes, and limits, are not simulated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kubekit.api.scheduling import ResourceQuota
from kubekit.rules.pod_requests import whole_number
from runup.rehearse.decide.drains.cluster_state import PodState
from runup.rehearse.decide.drains.pod_shapes import Shape

_PODS = ("pods", "count/pods")


def is_simulated(quota: ResourceQuota) -> bool:
    """Returns whether the quota is over all pods of its namespace."""
    return not quota.spec.scopes and quota.spec.scope_selector is None


class Quotas:
    """The quotas of a cluster, by namespace, and what the pods use of them."""

    def __init__(self, quotas: Iterable[ResourceQuota], pods: Iterable[PodState]) -> None:
        self._hard: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for quota in quotas:
            if is_simulated(quota):
                for name, value in quota.spec.hard.items():
                    resource = _limited_resource(name)
                    if resource:
                        hard = (quota.metadata.name, resource, whole_number(resource, value))
                        self._hard[quota.metadata.namespace].append(hard)
        self._used: dict[str, dict[str, int]] = {namespace: defaultdict(int) for namespace in self._hard}
        for pod in pods:
            self.take(pod.shape)

    def why_not(self, shape: Shape) -> str:
        """Returns which quota refuses one more pod of the shape, or an empty string."""
        if shape.namespace not in self._hard:
            return ""
        used, requested = self._used[shape.namespace], dict(_uses_of_pod(shape))
        for name, resource, hard in self._hard[shape.namespace]:
            request = requested.get(resource, 0)
            if request and used[resource] + request > hard:
                return f"exceeded quota: {name}"
        return ""

    def take(self, shape: Shape, pods: int = 1) -> None:
        """Counts a pod that was made or, with -1, is gone."""
        used = self._used.get(shape.namespace)
        if used is not None:
            for resource, value in _uses_of_pod(shape):
                used[resource] += pods * value


def _limited_resource(name: str) -> str:
    """Returns the resource whose requests a name in a quota's `spec.hard` limits: `cpu` for `cpu` and `requests.cpu`.

    Returns an empty string for what is not simulated: limits, storage, and numbers of other objects.
    """
    if name in _PODS:
        return "pods"
    if name in ("cpu", "memory", "ephemeral-storage"):
        return name
    resource = name.removeprefix("requests.")
    return resource if resource != name and resource != "storage" else ""


def _uses_of_pod(shape: Shape) -> Iterator[tuple[str, int]]:
    yield "pods", 1
    yield from shape.requested.items()
