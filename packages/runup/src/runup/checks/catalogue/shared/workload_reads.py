"""Declares how Deployments and StatefulSets are read for all checks: strategy, failures, what their pods need.

Of a template is kept where its pods may be placed and what it refers to; there may be tens of thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, Object, Wire
from kubekit.api.pod_parts import IN_TREE_PLUGINS, PlacedPod
from kubekit.api.scheduling import NodeAffinity, PodAffinity, Toleration
from kubekit.rules.owners import workload_of
from runup.checks.catalogue.shared.pods import PODS, drained_pods_by_namespace
from runup.checks.catalogue.shared.result_cache import cache_groups
from runup.checks.writing import Slim, Snapshot, full_name, slim_metadata

# In-tree volume plug-ins that some version of Kubernetes removes, switches off or hands over to a CSI driver.
IN_TREE = frozenset(plugin for _, plugin in IN_TREE_PLUGINS)


class RollingUpdate(Wire, frozen=True):
    """Numbers of pods that a roll-out may have too many and too few, as numbers or shares."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(Wire, frozen=True):
    """`strategy` of a Deployment: RollingUpdate, which is the default, or Recreate."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class Affinity(Wire, frozen=True):
    """`affinity` of a pod: to nodes, and away from other pods."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class ResourceAmounts(Wire, frozen=True):
    """The requests and limits of a container."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class TemplatePort(Wire, frozen=True):
    """A port of a container; `host_port` is the one that it takes of its node, 0 for none."""

    host_port: int = 0
    container_port: int = 0


class LimitedContainer(Wire, frozen=True):
    """A container with its resources and ports."""

    name: str = ""
    resources: ResourceAmounts = ResourceAmounts()
    ports: tuple[TemplatePort, ...] = ()


class TemplateSpec(Wire, frozen=True, kw_only=True):
    """The pod `spec` in a workload's template: the fields about placement, and references to other objects."""

    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    runtime_class_name: str = ""
    service_account_name: str = ""
    containers: tuple[LimitedContainer, ...] = ()
    init_containers: tuple[LimitedContainer, ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    host_network: bool = False

    @property
    def takes_host_ports(self) -> bool:
        """Reports whether a pod takes a port of its node; with the node's network, each of its ports is one."""
        return any(
            port.host_port or (self.host_network and port.container_port)
            for container in self.containers
            for port in container.ports
        )


class TemplateAnnotations(Wire, frozen=True):
    """Annotations of a pod: its additional networks, as JSON or as names with commas between them, and constraints."""

    networks: str = msgspec.field(default="", name="k8s.v1.cni.cncf.io/networks")
    required_scc: str = msgspec.field(default="", name="openshift.io/required-scc")


class TemplateMeta(Wire, frozen=True):
    """The part of a template's metadata that checks read."""

    labels: dict[str, str] = {}
    annotations: TemplateAnnotations = TemplateAnnotations()


class Template(Wire, frozen=True):
    """The pods of a workload, as they are made."""

    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()


class WorkloadSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Deployment or a StatefulSet. `keeps_apart`, set when it is read: no node may run two of its pods."""

    replicas: int = 1
    keeps_apart: bool = False
    strategy: DeploymentStrategy = DeploymentStrategy()
    pod_management_policy: str = ""
    template: Template = Template()


class WorkloadStatus(Wire, frozen=True):
    """`status` of a workload without its counts."""

    conditions: tuple[Condition, ...] = ()


class Workload(Object, frozen=True, kw_only=True):
    """A Deployment or a StatefulSet."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def _slim_workload(workload: Workload) -> Workload:
    """Returns the workload without its metadata and conditions, except for what checks ask about."""
    failure, template = find(workload.status.conditions, "ReplicaFailure"), workload.spec.template
    # A selector cannot be compared in a set, and the labels are long.
    placement = Affinity(node_affinity=template.spec.affinity.node_affinity)
    slim = Template(
        metadata=TemplateMeta(annotations=template.metadata.annotations),
        spec=replace(template.spec, volumes=_in_tree_volumes(template), affinity=placement),
    )
    return Workload(
        metadata=slim_metadata(workload),
        spec=replace(workload.spec, template=slim, keeps_apart=_keeps_apart(workload)),
        status=WorkloadStatus((failure,) if failure else ()),
    )


def _keeps_apart(workload: Workload) -> bool:
    """Returns whether the required anti-affinity of a workload's pods lets no node run two of them."""
    namespace, template = workload.metadata.namespace, workload.spec.template
    return any(
        term.topology_key == "kubernetes.io/hostname"
        and term.label_selector is not None
        and term.label_selector.matches(template.metadata.labels)
        and (namespace in term.namespaces or not (term.namespaces or term.namespace_selector))
        for term in template.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    )


def _in_tree_volumes(template: Template) -> tuple[dict[str, Any], ...]:
    """Returns the volumes of a template that are of in-tree plug-ins, as their names alone."""
    return tuple({key: {}} for volume in template.spec.volumes for key in volume if key in IN_TREE)


def inline_plugins(workload: Workload | Job) -> frozenset[str]:
    """Returns the in-tree plug-ins of the volumes that the workload's template has itself."""
    return frozenset(key for volume in workload.spec.template.spec.volumes for key in volume)


DEPLOYMENTS = Slim(
    group="apps",
    version="v1",
    kind="Deployment",
    plural="deployments",
    namespaced=True,
    type=Workload,
    keep=_slim_workload,
)
STATEFUL_SETS = Slim(
    group="apps",
    version="v1",
    kind="StatefulSet",
    plural="statefulsets",
    namespaced=True,
    type=Workload,
    keep=_slim_workload,
)


class JobTemplate(Wire, frozen=True):
    """The Jobs of a CronJob, as they are made."""

    spec: WorkloadSpec = WorkloadSpec()


class ScheduledSpec(Wire, frozen=True):
    """`spec` of a CronJob."""

    suspend: bool = False
    job_template: JobTemplate = JobTemplate()


class ScheduledWorkload(Object, frozen=True):
    """A CronJob."""

    spec: ScheduledSpec = ScheduledSpec()


def _slim_scheduled(scheduled: ScheduledWorkload) -> Workload:
    """Returns a CronJob as the workload that its Jobs are; one that is suspended has no replicas."""
    spec = replace(scheduled.spec.job_template.spec, replicas=0 if scheduled.spec.suspend else 1)
    return _slim_workload(Workload(metadata=scheduled.metadata, spec=spec))


DAEMON_SETS = Slim(
    group="apps",
    version="v1",
    kind="DaemonSet",
    plural="daemonsets",
    namespaced=True,
    type=Workload,
    keep=_slim_workload,
)
CRON_JOBS = Slim(
    group="batch",
    version="v1",
    kind="CronJob",
    plural="cronjobs",
    namespaced=True,
    type=ScheduledWorkload,
    keep=_slim_scheduled,
)


class ConditionPattern(Wire, frozen=True):
    """A condition of a failed pod."""

    type: str = ""


class FailureRule(Wire, frozen=True):
    """A rule of a Job's `podFailurePolicy` for failed pods with one of the conditions."""

    action: str = ""
    on_pod_conditions: tuple[ConditionPattern, ...] = ()


class FailurePolicy(Wire, frozen=True):
    """A Job's rules for failed pods."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Job."""

    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    suspend: bool = False
    pod_failure_policy: FailurePolicy = FailurePolicy()
    template: Template = Template()


class JobStatus(Wire, frozen=True):
    """`status` of a Job."""

    active: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True, kw_only=True):
    """Pods that run to their end."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def _slim_job(job: Job) -> Job:
    """Returns the Job; of its template only the in-tree plug-ins of its volumes are kept."""
    template = Template(spec=TemplateSpec(volumes=_in_tree_volumes(job.spec.template)))
    return replace(job, spec=replace(job.spec, template=template))


def has_ended(job: Job) -> bool:
    """Returns whether the Job is complete or has failed."""
    conditions = (find(job.status.conditions, name) for name in ("Complete", "Failed"))
    return any(condition is not None and condition.status == "True" for condition in conditions)


JOBS = Slim(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True, type=Job, keep=_slim_job)


def with_pods_that_move(snapshot: Snapshot, kind: Slim) -> Iterator[tuple[Workload, list[PlacedPod]]]:
    """Yields (workload, its pods that a drain evicts) for the workloads of a kind, in order. Raises Unreadable."""
    pods_by_namespace = drained_pods_by_namespace(snapshot.listed(PODS))
    workloads = sorted(snapshot.listed(kind), key=full_name)
    # The others may have hundreds of thousands of pods.
    namespaces = dict.fromkeys(workload.metadata.namespace for workload in workloads)
    moving = _PODS_BY_OWNER[kind.kind]({name: pods_by_namespace.get(name, []) for name in namespaces})
    for workload in workloads:
        pods = moving[workload.metadata.namespace].get(workload.metadata.name)
        if pods and workload.spec.replicas:
            yield workload, pods


def _pods_by_owner(kind: str, pods: list[PlacedPod]) -> dict[str, list[PlacedPod]]:
    """Returns pods of a namespace by the name of the workload of that kind that makes them again."""
    by_owner: dict[str, list[PlacedPod]] = {}
    # The pods of a workload are next to each other in a server's list, and share their owners.
    for owners, owned in groupby(pods, key=attrgetter("metadata.owner_references")):
        made_by = workload_of(owners)
        if made_by is not None and made_by[0] == kind:
            by_owner.setdefault(made_by[1], []).extend(owned)
    return by_owner


_PODS_BY_OWNER = {kind: cache_groups(partial(_pods_by_owner, kind)) for kind in ("Deployment", "StatefulSet")}


def needs_surge(deployment: Workload) -> bool:
    """Returns whether a roll-out makes a new pod before it takes an old one away (apps/v1, RollingUpdateDeployment).

    Shares of maxSurge are rounded up, those of maxUnavailable down; 25% is the default of both.
    """
    spec = deployment.spec
    if not spec.replicas or spec.strategy.type == "Recreate":
        return False
    rolling = spec.strategy.rolling_update or RollingUpdate()
    unavailable = _scaled_value(rolling.max_unavailable, spec.replicas, up=False)
    return unavailable == 0 and _scaled_value(rolling.max_surge, spec.replicas, up=True) > 0


def _scaled_value(value: int | str | None, replicas: int, *, up: bool) -> int:
    """Returns a number or percentage of `replicas` as a number of pods, as intstr.GetScaledValueFromIntOrPercent."""
    if isinstance(value, int):
        return value
    share = (value or "25%").removesuffix("%")
    if not share.isdigit():
        # What cannot be read no API server has stored; it claims nothing.
        return 0 if up else 1
    return -(-int(share) * replicas // 100) if up else int(share) * replicas // 100
