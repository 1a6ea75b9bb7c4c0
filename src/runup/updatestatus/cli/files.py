"""`--mock-clusterversion FILE` and `--dump DIR`: files in, the UpdateStatus that they come to out.

The first reads the families of files that `oc` has for its own tests (`NAME-cv.yaml`, `NAME-co.yaml`, ...), by oc's
rules alone and at oc's time: 368975 ns after the newest transition of ClusterVersion and operators. The second reads
those too, and must-gathers, trees of `oc adm inspect` and folders of YAML.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from kubekit.lang import yaml as kyaml
from kubekit.lang.gotext import nanoseconds
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Infrastructure, InfrastructureStatus
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.update_v1alpha1 import UpdateStatus
from runup.cli.errors import CommandError
from runup.cli.render.cluster_name import cluster_name
from runup.updatestatus.cli.making import assessed
from runup.updatestatus.cli.source import EPOCH, Found, alerts_note
from runup.updatestatus.decide.alerts import read_alerts
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG, MACHINE_CONFIG_OPERATOR, is_progressing
from runup.updatestatus.decide.node_words import CONTROL_PLANE_POOL
from runup.updatestatus.decide.snapshot import (
    LISTED,
    Alert,
    Snapshot,
    Unreadable,
    in_report_order,
    is_drain_wanted,
    readable,
)

if TYPE_CHECKING:
    from runup.dump.load import Dump

K = TypeVar("K", bound=Object)

MARK = "-cv.yaml"
MOCK_FRACTION_NS = 368975
NO_FILE = "no such file or directory"

# What a report reads of a dump: the plurals, which name files and folders of must-gather.
_KINDS = tuple(
    resource_of(kind).plural
    for kind in (
        ClusterVersion,
        ClusterOperator,
        MachineConfigPool,
        MachineConfig,
        Node,
        Deployment,
        Pod,
        PodDisruptionBudget,
        UpdateStatus,
        Infrastructure,
    )
)
_STATUSES = ("True", "False", "Unknown")


def mock(path: str, real_now: datetime) -> Found:
    """The case whose ClusterVersion is `path`; raises CommandError. `real_now` is for the ages of nodes, as in oc."""
    if MARK not in path:
        raise CommandError(f"--mock-clusterversion must name a file NAME{MARK}, not {path}: its siblings are read too")

    def part(suffix: str) -> str:
        return path.replace(MARK, suffix, 1)

    clusters = _listed(path, ClusterVersion)
    if not clusters:
        raise CommandError(f"{path} holds no ClusterVersion")
    operators = _listed(part("-co.yaml"), ClusterOperator)
    pools = _listed(part("-mcp.yaml"), MachineConfigPool)
    configs = _listed(part("-mc.yaml"), MachineConfig)
    nodes = _listed(part("-node.yaml"), Node)
    deployment = part("-mco-deployment.yaml")
    deployments = _listed(deployment, Deployment) if os.path.exists(deployment) else ()  # noqa: PTH110
    alerts, problem = _alerts(part("-alerts.json"))
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
    told = assessed(snapshot, now, node_now=real_now)
    name = cluster_name(InfrastructureStatus(), clusters[0])
    return Found(told, now, alerts_problem=problem, pools_before_master=before, cluster=name)


def newest_transition(objects: Iterable[ClusterVersion | ClusterOperator]) -> int:
    """The newest lastTransitionTime of any condition, in ns since the epoch; 0 without any."""
    times = (
        condition.last_transition_time
        for obj in objects
        for condition in obj.status.conditions
        if condition.last_transition_time
    )
    return nanoseconds(max(times, default=EPOCH) - EPOCH)


def _listed(path: str, kind: type[K]) -> tuple[K, ...]:
    """The objects of a List, or the one object, in `path`."""
    return tuple(_converted(item, kind, path) for item in _items(_document(path)))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib takes as long to import as a file to be read)
        return file.read()


def _document(path: str) -> Any:
    try:
        return kyaml.load(_read(path), name=path)
    except FileNotFoundError as error:
        raise CommandError(f"open {path}: {NO_FILE}") from error
    except kyaml.YamlError as error:
        raise CommandError(str(error)) from error


def _items(document: Any) -> list[Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [] if document is None else [document]


def _converted(item: Any, kind: type[K], path: str) -> K:
    try:
        try:
            return codec.convert(kind, item)
        except codec.DecodeError:
            return codec.convert(kind, _with_statuses(item))
    except codec.DecodeError as error:
        raise CommandError(f"{path}: not a {resource_of(kind).kind}: {error}") from error


def _with_statuses(item: Any) -> Any:
    """`item` with Unknown for each condition's status that is absent or no status: neither True nor False."""
    status = item.get("status") if isinstance(item, dict) else None
    rows = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return item
    told = [{**row, "status": row["status"] if row.get("status") in _STATUSES else "Unknown"} for row in rows]
    return {**item, "status": {**status, "conditions": told}}


def _alerts(path: str) -> tuple[tuple[Alert, ...] | Unreadable, str]:
    """The alerts, or why there are none and what oc prints for that."""
    try:
        body = _read(path)
    except FileNotFoundError:
        # The object may be sent on as a page: whose folder it lay in is for the terminal alone.
        return Unreadable(f"open {path.rpartition(os.sep)[2]}: {NO_FILE}"), alerts_note(f"open {path}: {NO_FILE}")
    try:
        return read_alerts(body), ""
    except codec.DecodeError as error:
        # The verb is oc's own slip, and scripts may look for the line.
        return Unreadable(str(error)), f"Ignoring alerts in 'Update Health'. Error unmarshaling alerts: %w {error}\n"


def dump(path: str, real_now: datetime, now_ns: int | None) -> Found:
    """The cluster of a dump, packed or not, or of one case in a folder of several; raises CommandError.

    The report of its update status controller, if it has one, else what its objects come to. Its time is the end of the
    must-gather where that is recorded, else the newest transition. It is read as the sandbox's import reads it.
    """
    from pathlib import Path

    from runup.dump import archive, layout, load

    try:
        with archive.opened(Path(path)) as folder:
            found = layout.find(folder)
            if found.style == "case":
                return mock(str(next(file for file in found.files if file.name.endswith(MARK))), real_now)
            read = load.load(found, only=_KINDS)
    except layout.BadDump as error:
        raise CommandError(error.message) from error
    return _told(read, now_ns)


def _told(read: Dump, now_ns: int | None) -> Found:
    from runup.dump.load import moment_of

    notes = [f"warning: {problem}\n" for problem in read.problems]
    objects = _Objects(read, notes)
    cluster = next(each for each in objects.of(ClusterVersion) if each.metadata.name == "version")
    moment = moment_of(read)
    now = now_ns or (nanoseconds(moment - EPOCH) if moment else 0)
    written = next((obj for obj in read.objects if obj["kind"] == "UpdateStatus" and obj.get("status")), None)
    infrastructure = next((each.status for each in objects.of(Infrastructure)), InfrastructureStatus())
    name = cluster_name(infrastructure, cluster)
    if written is not None:
        return Found(written, now, tuple(notes), cluster=name)
    snapshot = _snapshot(cluster, objects)
    return Found(assessed(snapshot, now), now, tuple(notes), cluster=name)


class _Objects:
    """A dump's objects by type. One that cannot be read as what it says it is is told, and costs itself only."""

    def __init__(self, read: Dump, notes: list[str]) -> None:
        self._dump, self._notes = read, notes

    def of(self, kind: type[K]) -> tuple[K, ...]:
        """Those that the dump has."""
        resource, found = resource_of(kind), []
        for obj in self._dump.objects:
            if obj["kind"] != resource.kind or obj["apiVersion"].rpartition("/")[0] != resource.group:
                continue
            try:
                found.append(_converted(obj, kind, obj["metadata"]["name"]))
            except CommandError as error:
                self._notes.append(f"warning: left out: {error}\n")
        return tuple(found)

    def known(self, kind: type[K]) -> tuple[K, ...] | Unreadable:
        """Those that the dump has; a dump without a kind does not mean that the cluster had none."""
        found = self.of(kind)
        resource = resource_of(kind)
        whole = (resource.group, resource.plural) in self._dump.collected.whole
        return found if found or whole else Unreadable(_ABSENT)

    def incomplete(self) -> dict[str, str]:
        """The fields of a snapshot of which the dump has a part, and what it has."""
        held, found = self._dump.collected, {}
        for field, (group, kind) in _FIELDS.items():
            resource = (group, self._dump.plurals.get((group, kind), ""))
            if resource in held.partly:
                found[field] = held.why_partly(resource)
        return found


_ABSENT = "the dump holds none"
_KIND_OF = {
    kind.__name__: (resource_of(kind).group, kind.__name__)
    for kind in (ClusterOperator, MachineConfigPool, Node, MachineConfig, Pod, PodDisruptionBudget)
}
_FIELDS = {field: _KIND_OF[kind] for field, kind in LISTED.items()}


def _snapshot(cluster: ClusterVersion, objects: _Objects) -> Snapshot:
    operators, nodes, pools = objects.known(ClusterOperator), objects.known(Node), objects.known(MachineConfigPool)
    deployments, pods, budgets = objects.known(Deployment), objects.known(Pod), objects.known(PodDisruptionBudget)
    draining = {node.metadata.name for node in readable(nodes) if is_drain_wanted(node)}
    updating = _is_updating(cluster, pools)
    return Snapshot(
        cluster_version=cluster,
        cluster_operators=_by_name(operators),
        machine_config_pools=in_report_order(pools) if isinstance(pools, tuple) else pools,
        nodes=_by_name(nodes),
        machine_configs=objects.known(MachineConfig),
        machine_config_operator=_operator_of_machines(operators, deployments, matters=updating),
        pending_pods=_those(pods, lambda pod: pod.status.phase == "Pending", matters=updating),
        draining_pods=_those(pods, lambda pod: pod.spec.node_name in draining, matters=bool(draining)),
        pod_disruption_budgets=_those(budgets, lambda _: True, matters=bool(draining)),
        incomplete=objects.incomplete(),
    )


def _is_updating(cluster: ClusterVersion, pools: tuple[MachineConfigPool, ...] | Unreadable) -> bool:
    moving = (pool.status.updated_machine_count < pool.status.machine_count for pool in readable(pools))
    return is_progressing(cluster) or any(moving)


def _those(found: tuple[K, ...] | Unreadable, wanted: Callable[[K], bool], *, matters: bool) -> Any:
    """Those that are wanted. That a kind is not in the dump is said where something would be told of it."""
    if isinstance(found, Unreadable):
        return found if matters else ()
    return tuple(each for each in found if wanted(each))


def _operator_of_machines(
    operators: tuple[ClusterOperator, ...] | Unreadable,
    deployments: tuple[Deployment, ...] | Unreadable,
    *,
    matters: bool,
) -> Deployment | Unreadable | None:
    """The Deployment whose image says whether it is updated; some clusters have neither it nor its ClusterOperator."""
    named = (each for each in readable(deployments) if each.metadata.name == MACHINE_CONFIG_OPERATOR)
    expected = matters and any(each.metadata.name == MACHINE_CONFIG for each in readable(operators))
    return next(named, Unreadable(_ABSENT) if expected else None)


def _by_name(found: tuple[K, ...] | Unreadable) -> tuple[K, ...] | Unreadable:
    return tuple(sorted(found, key=lambda each: each.metadata.name)) if isinstance(found, tuple) else found
