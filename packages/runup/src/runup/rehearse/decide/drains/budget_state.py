"""The state of a PodDisruptionBudget in a simulation: its healthy pods, and how many may be evicted at the moment."""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules.eviction_rules import BudgetNow, desired_healthy, disruptions_allowed, rule_of_budget


class BudgetState:
    """A budget with its counts: `expected`, `healthy` and `desired` pods.

    They are expectedPods, currentHealthy and desiredHealthy of its status, and 0 until all pods are known.
    """

    __slots__ = ("_failing", "desired", "expected", "healthy", "name", "namespace", "source")

    def __init__(self, source: PodDisruptionBudget) -> None:
        self.source = source
        self.namespace, self.name = source.metadata.namespace, source.metadata.name
        self.expected = self.healthy = self.desired = 0
        failed = find(source.status.conditions, "DisruptionAllowed")
        # The disruption controller then lets the budget allow nothing (pkg/controller/disruption, failSafe).
        self._failing = failed is not None and failed.reason == "SyncFailed"

    def set_desired_healthy(self, matching_pods: int, scale: int) -> None:
        """Sets `expected` and `desired`, as the disruption controller sets status.expectedPods and desiredHealthy.

        `matching_pods` is the number of pods that the budget selects, `scale` the sum of the replicas of their owners.
        A budget whose values cannot be computed allows no disruption from then on.
        """
        spec = self.source.spec
        # maxUnavailable and percentages are of the pods that there should be, minAvailable as a number is not.
        is_share = spec.max_unavailable is not None or isinstance(spec.min_available, str)
        self.expected = scale if is_share else matching_pods
        try:
            self.desired = desired_healthy(spec.min_available, spec.max_unavailable, self.expected)
        except ValueError:
            self._failing = True

    def current_counts(self) -> BudgetNow:
        """Returns the counts of its status at this moment."""
        allowed = 0 if self._failing else disruptions_allowed(self.expected, self.healthy, self.desired)
        policy = self.source.spec.unhealthy_pod_eviction_policy
        return BudgetNow(allowed=allowed, healthy=self.healthy, desired=self.desired, policy=policy)

    @property
    def refusal(self) -> str:
        """Returns why it lets nothing go, in numbers."""
        rule = rule_of_budget(self.source)
        if self._failing:
            return f"{rule}: the disruption controller cannot compute it, and so it allows nothing"
        return f"{rule}: {self.healthy} of {self.expected} healthy, {self.desired} demanded"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
