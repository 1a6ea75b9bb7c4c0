"""Kinds as a cluster's own controllers and its kubelet need them, with complete pod templates and specs as plain dicts.

Unlike in the slim types of the other modules, nothing of a template is lost when it is copied into a ReplicaSet or Pod.
"""

from datetime import datetime
from typing import Any

from kubekit.api.meta_v1 import Condition, ConditionStatus, LabelSelector, Object, Wire


class WholePod(Object, frozen=True, kw_only=True):
    """A Pod with spec and status as on the wire."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class WholeReplicaSetSpec(Wire, frozen=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    min_ready_seconds: int = 0


class WholeReplicaSetStatus(Wire, frozen=True, kw_only=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class WholeReplicaSet(Object, frozen=True, kw_only=True):
    """A ReplicaSet: a number of pods of one template."""

    spec: WholeReplicaSetSpec = WholeReplicaSetSpec()
    status: WholeReplicaSetStatus = WholeReplicaSetStatus()


class RollingUpdate(Wire, frozen=True):
    """The limits of a rolling update; numbers, or shares such as `25%`."""

    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class DeploymentStrategy(Wire, frozen=True):
    """The strategy of a Deployment: RollingUpdate or Recreate."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentCondition(Wire, frozen=True, kw_only=True):
    """A condition of a Deployment; `last_update_time` changes with every progress, the other only with the status."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


class WholeDeploymentSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Deployment; the deadline in seconds."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    progress_deadline_seconds: int = 600
    paused: bool = False


class WholeDeploymentStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[DeploymentCondition, ...] = ()


class WholeDeployment(Object, frozen=True, kw_only=True):
    """A Deployment with its complete template."""

    spec: WholeDeploymentSpec = WholeDeploymentSpec()
    status: WholeDeploymentStatus = WholeDeploymentStatus()


class WholeJobSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Job; times in seconds. Without `completions` one success is enough, whatever the parallelism."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    template: dict[str, Any] = {}


class WholeJobStatus(Wire, frozen=True, kw_only=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class WholeJob(Object, frozen=True, kw_only=True):
    """A Job with its complete template."""

    spec: WholeJobSpec = WholeJobSpec()
    status: WholeJobStatus = WholeJobStatus()


class WholeNode(Object, frozen=True, kw_only=True):
    """A Node with spec and status as on the wire."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class WholeService(Object, frozen=True, kw_only=True):
    """A Service with its spec as on the wire."""

    spec: dict[str, Any] = {}


class WholeEndpoints(Object, frozen=True, kw_only=True):
    """An Endpoints object with its subsets as on the wire."""

    subsets: tuple[dict[str, Any], ...] = ()


class WholeEndpointSlice(Object, frozen=True, kw_only=True):
    """An EndpointSlice with its endpoints and ports as on the wire."""

    endpoints: tuple[dict[str, Any], ...] = ()
    ports: tuple[dict[str, Any], ...] = ()
