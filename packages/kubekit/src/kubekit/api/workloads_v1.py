"""`apps/v1` and `policy/v1`: the kinds and fields that runup reads."""

from kubekit.api.core_v1 import PodSpec
from kubekit.api.meta_v1 import Condition, LabelSelector, Object, ObjectMeta, Wire


class PodTemplate(Wire, frozen=True):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DeploymentSpec(Wire, frozen=True):
    """`spec` of a Deployment."""

    replicas: int = 1
    template: PodTemplate = PodTemplate()


class DeploymentStatus(Wire, frozen=True):
    """`status` of a Deployment."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True):
    """A workload of interchangeable pods."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """`spec` of a PodDisruptionBudget; counts are numbers, shares are text like `50%`."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """`status` of a PodDisruptionBudget, all counts in pods."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, frozen=True):
    """A limit on the number of pods that may be evicted at a time."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
