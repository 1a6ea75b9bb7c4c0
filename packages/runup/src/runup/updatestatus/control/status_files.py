"""Builds an UpdateStatus from files: `--mock-clusterversion FILE` and `--dump DIR`.

The first flag reads the families of files that `oc` has for its own tests (`NAME-cv.yaml`, `NAME-co.yaml`, ...), by
oc's rules alone and at oc's time: 368975 ns after the newest transition of ClusterVersion and operators. The second
flag reads those files too, and must-gathers, trees of `oc adm inspect` and folders of YAML.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Event, Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.workloads_v1 import Deployment, Lease, PodDisruptionBudget
from kubekit.error_types import InputError
from kubekit.lang.files import read_limited
from kubekit.lang.gotext import EPOCH, datetime_of_ns, to_ns
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Infrastructure, InfrastructureStatus
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.dump.clusterversion_files import NO_FILE, document
from runup.process.names import cluster_name
from runup.rules.machine_config import CONTROL_PLANE_POOL, is_drain_wanted, is_moving, machines_behind
from runup.updatestatus.control.dump_objects import ABSENT, DumpObjects, convert_item
from runup.updatestatus.control.status_reading import StatusReading, alerts_note, complete_status
from runup.updatestatus.decide.alerts import Alert, Unreadable, read_alerts
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG, MACHINE_CONFIG_OPERATOR, is_progressing
from runup.updatestatus.decide.snapshot import Snapshot, readable, sort_pools

if TYPE_CHECKING:
    from runup.dump.load import Dump
    from runup.updatestatus.decide.freshness import Freshness

K = TypeVar("K", bound=Object)

MARK = "-cv.yaml"
# The fraction of a second (ns) that oc adds to the time of its own examples.
MOCK_FRACTION_NS = 368975


def mock(path: str, real_now: datetime) -> StatusReading:
    """Returns the status of the case whose ClusterVersion is the file `path`; raises InputError.

    `real_now` is the time by which the ages of nodes are computed, as in oc.
    """
    if MARK not in path:
        raise InputError(f"--mock-clusterversion must name a file NAME{MARK}, not {path}: its siblings are read too")

    def path_of(suffix: str) -> str:
        return path.replace(MARK, suffix, 1)

    clusters = _read_objects(path, ClusterVersion)
    if not clusters:
        raise InputError(f"{path} holds no ClusterVersion")
    operators = _read_objects(path_of("-co.yaml"), ClusterOperator)
    pools = _read_objects(path_of("-mcp.yaml"), MachineConfigPool)
    configs = _read_objects(path_of("-mc.yaml"), MachineConfig)
    nodes = _read_objects(path_of("-node.yaml"), Node)
    deployment = path_of("-mco-deployment.yaml")
    deployments = _read_objects(deployment, Deployment) if os.path.exists(deployment) else ()  # noqa: PTH110
    alerts, problem = _alerts(path_of("-alerts.json"))
    snapshot = Snapshot(
        cluster_version=clusters[0],
        cluster_operators=operators,
        machine_config_pools=pools,
        nodes=nodes,
        machine_configs=configs,
        machine_config_operator=deployments[0] if deployments else None,
        alerts=alerts,
    )
    now = newest_transition((clusters[0], *operators)) + MOCK_FRACTION_NS
    names = [pool.metadata.name for pool in pools]
    before = names.index(CONTROL_PLANE_POOL) if CONTROL_PLANE_POOL in names else 0
    status_object = complete_status(snapshot, now, node_now=real_now)
    name = cluster_name(InfrastructureStatus(), clusters[0])
    return StatusReading(
        obj=status_object,
        now_ns=now,
        alerts_problem=problem,
        worker_pools_before_master=before,
        cluster=name,
        as_oc=True,
    )


def newest_transition(objects: Iterable[ClusterVersion | ClusterOperator]) -> int:
    """Returns the newest lastTransitionTime of any condition, in ns since the epoch; 0 if it does not exist."""
    times = (
        condition.last_transition_time
        for obj in objects
        for condition in obj.status.conditions
        if condition.last_transition_time
    )
    return to_ns(max(times, default=EPOCH))


def _read_objects(path: str, kind: type[K]) -> tuple[K, ...]:
    """Returns the items of the List, or the one object, in the file `path`."""
    return tuple(convert_item(item, kind, path) for item in _items_of(document(path)))


def _items_of(document: Any) -> list[Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [] if document is None else [document]


def _alerts(path: str) -> tuple[tuple[Alert, ...] | Unreadable, str]:
    """Returns the alerts and an empty note, or the reason why they are missing and the note that oc prints for it."""
    try:
        body = read_limited(path)
    except FileNotFoundError:
        # The object may be sent on as a page: whose folder it lay in is for the terminal alone.
        return Unreadable(f"open {path.rpartition(os.sep)[2]}: {NO_FILE}"), alerts_note(f"open {path}: {NO_FILE}")
    try:
        return read_alerts(body), ""
    except codec.DecodeError as error:
        # The verb is oc's own slip, and scripts may look for the line.
        return Unreadable(str(error)), f"Ignoring alerts in 'Update Health'. Error unmarshaling alerts: %w {error}\n"


def dump(path: str, real_now: datetime, now_ns: int | None) -> StatusReading:
    """Returns the status of a dump, packed or not, or of the one case in a folder; raises InputError.

    Prefers the report of the cluster's update status controller, if the dump has one, else computes it from the
    objects. Its time is the end of the must-gather where that is recorded, else the newest transition. The dump is read
    as the sandbox's import reads it.
    """
    from pathlib import Path

    from runup.dump import archive, dump_files, load
    from runup.updatestatus.control.status_reads import READS

    try:
        with archive.open_dump(Path(path)) as folder:
            location = dump_files.find(folder)
            if location.style == "case":
                return mock(str(next(file for file in location.files if file.name.endswith(MARK))), real_now)
            only = {resource.plural for resource, _ in READS}
            dump_content = load.load(location, only=only, any_kubernetes=True)
    except dump_files.BadDump as error:
        raise InputError(error.message) from error
    from runup.dump.load import time_of_dump

    notes = [f"warning: {problem}\n" for problem in dump_content.problems]
    objects = DumpObjects(dump_content, notes)
    if not dump_content.has_cluster_version:
        return _kubernetes_dump(dump_content, objects, notes, now_ns)
    cluster = convert_item(dump_content.cluster_version, ClusterVersion, dump_content.cluster_version_file)
    moment = time_of_dump(dump_content)
    now = now_ns or (to_ns(moment) if moment else 0)
    stored_status = next(
        (obj for obj in dump_content.objects if obj["kind"] == "UpdateStatus" and obj.get("status")), None
    )
    infrastructure = next(
        (infrastructure.status for infrastructure in objects.of(Infrastructure)), InfrastructureStatus()
    )
    name = cluster_name(infrastructure, cluster)
    if stored_status is None:
        status_object = complete_status(snapshot_of(cluster, objects), now)
        return StatusReading(obj=status_object, now_ns=now, notes=tuple(notes), cluster=name)
    # Imported here because it brings a client's errors; most dumps have no such object.
    from runup.updatestatus.control.status_reading import age_sentence, read_instead, with_current_condition
    from runup.updatestatus.decide import freshness

    age = _age_of_report(dump_content, datetime_of_ns(now))
    doubt = age_sentence(age)
    if age.state == freshness.OLD:
        doubt = f"{doubt}. So the report is made of the objects of the dump"
        computed = complete_status(snapshot_of(cluster, objects), now, stored_status=stored_status)
        status_object = read_instead(computed, doubt, age, datetime_of_ns(now))
    else:
        status_object = with_current_condition(stored_status, age, datetime_of_ns(now))
    notes += [f"warning: {doubt}\n"] if doubt else []
    return StatusReading(obj=status_object, now_ns=now, notes=tuple(notes), cluster=name)


def _kubernetes_dump(dump_content: Dump, objects: DumpObjects, notes: list[str], now_ns: int | None) -> StatusReading:
    """Returns the status of the dump of a cluster without a ClusterVersion, as of the dump's own time."""
    from runup.dump.load import time_of_dump
    from runup.updatestatus.control.kubernetes_objects import of_dump

    moment = time_of_dump(dump_content)
    now = now_ns or (to_ns(moment) if moment else 0)
    snapshot = of_dump(objects, dump_content.kubernetes.version)
    notes += [f"warning: {note}\n" for note in dump_content.kubernetes.notes]
    return StatusReading(obj=complete_status(snapshot, now), now_ns=now, notes=tuple(notes), cluster=dump_content.name)


def _age_of_report(dump_content: Dump, now: datetime) -> Freshness:
    """Returns how old the controller's report in a dump is, by its Lease if the dump has it."""
    from runup.process.lease_age import LeaseRecord
    from runup.updatestatus.decide import freshness

    lease = next(
        (
            obj
            for obj in dump_content.objects
            if obj["kind"] == "Lease"
            and (obj["metadata"].get("namespace"), obj["metadata"]["name"]) == (freshness.NAMESPACE, freshness.LEASE)
        ),
        None,
    )
    if lease is None:
        return freshness.Freshness(freshness.UNKNOWN, None, "the dump has no Lease, which would show it")
    try:
        return freshness.freshness(codec.convert(LeaseRecord, lease), now)
    except codec.DecodeError as error:
        return freshness.Freshness(freshness.UNKNOWN, None, f"Lease {freshness.LEASE} could not be read: {error}")


def snapshot_of(cluster: ClusterVersion, objects: DumpObjects) -> Snapshot:
    """Returns the snapshot that the report is computed from; Pods and budgets only where Nodes drain."""
    # Imported here because the example files of oc need none of it.
    from runup.api.machineconfig_v1 import MachineConfigNode
    from runup.api.platform_v1 import CertificateSigningRequest, VolumeAttachment
    from runup.rules.platform_namespaces import is_system
    from runup.rules.refused_writes import NOT_CREATED
    from runup.rules.update_components import LEASES, NAMESPACES

    operators, nodes, pools = objects.known(ClusterOperator), objects.known(Node), objects.known(MachineConfigPool)
    deployments, pods, budgets = objects.known(Deployment), objects.known(Pod), objects.known(PodDisruptionBudget)
    draining = {node.metadata.name for node in readable(nodes) if is_drain_wanted(node)}
    moving_nodes = draining | {node.metadata.name for node in readable(nodes) if is_moving(node)}
    moving = (machines_behind(pool) > 0 for pool in readable(pools))
    updating = is_progressing(cluster) or any(moving)
    # A cluster has no such Deployment if all are known, or if it has no ClusterOperator of that name either.
    matching = (
        deployment for deployment in readable(deployments) if deployment.metadata.name == MACHINE_CONFIG_OPERATOR
    )
    expected = updating and not objects.is_complete(Deployment)
    expected = expected and any(operator.metadata.name == MACHINE_CONFIG for operator in readable(operators))
    return Snapshot(
        cluster_version=cluster,
        cluster_operators=_by_name(operators),
        machine_config_pools=sort_pools(pools) if isinstance(pools, tuple) else pools,
        nodes=_by_name(nodes),
        machine_configs=objects.known(MachineConfig),
        machine_config_operator=next(matching, Unreadable(ABSENT) if expected else None),
        pending_pods=_select_known(pods, lambda pod: pod.status.phase == "Pending", matters=updating),
        draining_pods=_select_known(pods, lambda pod: pod.spec.node_name in moving_nodes, matters=bool(moving_nodes)),
        pod_disruption_budgets=_select_known(budgets, lambda _: True, matters=bool(draining)),
        incomplete=objects.incomplete(),
        # Where the pods could not be read, that is said about the pending ones.
        component_pods=_select_known(pods, lambda pod: is_system(pod.metadata.namespace), matters=False),
        component_deployments=tuple(
            deployment for deployment in readable(deployments) if deployment.metadata.namespace in NAMESPACES
        ),
        leases=tuple(lease for lease in objects.of(Lease) if (lease.metadata.namespace, lease.metadata.name) in LEASES),
        certificate_requests=objects.of(CertificateSigningRequest),
        volume_attachments=objects.of(VolumeAttachment),
        machine_config_nodes=objects.of(MachineConfigNode),
        events=tuple(event for event in objects.of(Event) if event.reason == NOT_CREATED),
    )


def _select_known(
    objects: tuple[K, ...] | Unreadable, is_wanted: Callable[[K], bool], *, matters: bool
) -> tuple[K, ...] | Unreadable:
    """Returns the objects that `is_wanted` selects. An Unreadable is kept only where the report depends on the kind."""
    if isinstance(objects, Unreadable):
        return objects if matters else ()
    return tuple(obj for obj in objects if is_wanted(obj))


def _by_name(objects: tuple[K, ...] | Unreadable) -> tuple[K, ...] | Unreadable:
    return tuple(sorted(objects, key=lambda obj: obj.metadata.name)) if isinstance(objects, tuple) else objects
