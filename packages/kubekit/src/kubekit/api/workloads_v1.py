"""`apps/v1`, `policy/v1`, `batch/v1` and `coordination.k8s.io/v1`: the kinds and fields that runup reads."""

from datetime import datetime

from kubekit.api.core_v1 import PodSpec
from kubekit.api.meta_v1 import Condition, LabelSelector, Object, ObjectMeta, Wire


class PodTemplate(Wire, frozen=True):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DeploymentSpec(Wire, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class DeploymentStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True, kw_only=True):
    """A workload of interchangeable pods."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetSpec(Wire, frozen=True):
    template: PodTemplate = PodTemplate()


class DaemonSet(Object, frozen=True, kw_only=True):
    """A workload with a pod on each node."""

    spec: DaemonSetSpec = DaemonSetSpec()


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """`spec` of a PodDisruptionBudget; counts are numbers, shares are text like `50%`."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Wire, frozen=True, kw_only=True):
    """`status` of a PodDisruptionBudget, all counts in pods."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """A limit on the number of pods that may be evicted at a time."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class JobStatus(Wire, frozen=True, kw_only=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """A workload that ends."""

    status: JobStatus = JobStatus()


class CronJobSpec(Wire, frozen=True):
    schedule: str = ""
    suspend: bool = False


class CronJobStatus(Wire, frozen=True):
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, frozen=True, kw_only=True):
    """Jobs that are started at given times."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Lease; durations in seconds."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Object, frozen=True):
    """A lease, by which one of several processes is the leader."""

    spec: LeaseSpec = LeaseSpec()
