"""Reads the status of a live cluster: the controller's UpdateStatus if there is one, else one that is computed here.

Computing it takes more requests, and start times that nobody recorded stay unknown; both are printed through the same
object. A report that nobody has confirmed for too long (`freshness`) is not believed: the cluster itself is read, and
if it may not be, the report is shown as what it is. A kind that may not be read is an `Unreadable` in the snapshot, and
so a line of the report; so is a kind that the server fails to return, if the command reads only once. Only without
ClusterVersion and operators is there no report at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Condition, Object, Wire
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden, NotFound, ServerError
from kubekit.kube.client_sync import SyncClient
from kubekit.lang.gotext import to_ns
from runup.api.config_v1 import ClusterOperator
from runup.api.kinds import RESOURCES
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.update_v1alpha1 import NAME, UpdateStatus
from runup.process import clusterversion_client as clusters
from runup.process.lease_age import LeaseRecord
from runup.rules.machine_config import is_drain_wanted, is_moving
from runup.rules.update_components import further_namespaces
from runup.updatestatus.control import component_objects, status_reading, thanos
from runup.updatestatus.decide import freshness
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG_OPERATOR
from runup.updatestatus.decide.read_status import Report
from runup.updatestatus.decide.read_status import report as read_report
from runup.updatestatus.decide.snapshot import LISTED, Snapshot, is_under_way, readable, sort_pools

T = TypeVar("T")
K = TypeVar("K", bound=Object)
Refusals = tuple[type[ApiError], ...]

MCO_NAMESPACE = "openshift-machine-config-operator"


def observe(client: SyncClient, now: datetime, refused: Refusals, *, ahead: bool = False) -> Snapshot:
    """Returns a snapshot of the cluster as it is now; raises KubeError if ClusterVersion or operators cannot be read.

    Errors of the types `refused` become `Unreadable` in the snapshot, others are raised. With `ahead`, the components
    are read while no update is under way, too, and alerts are not.
    """
    cluster = clusters.read(client, no="no")
    undecodable: dict[str, str] = {}
    partly: dict[str, str] = {}
    nodes = _try(lambda: _list_objects(client, Node, undecodable, partly), refused)
    pools = _try(lambda: _list_objects(client, MachineConfigPool, undecodable, partly), refused)
    known_nodes = nodes if isinstance(nodes, tuple) else ()
    draining = [node.metadata.name for node in known_nodes if is_drain_wanted(node) or is_moving(node)]
    # Alerts are printed only during an update. Workers may continue after the control plane, so the request could be
    # spared only if the history ended long ago, and that is not worth a rule.
    snapshot = Snapshot(
        cluster_version=cluster,
        cluster_operators=_list_objects(client, ClusterOperator, undecodable, partly),
        machine_config_pools=sort_pools(pools) if isinstance(pools, tuple) else pools,
        nodes=nodes,
        machine_configs=_try(lambda: _configurations(client, undecodable, partly), refused),
        machine_config_operator=_read_operator_deployment(client),
        alerts=thanos.alerts(client, now) if cluster.status.history and not ahead else None,
        pending_pods=_try(
            lambda: _list_objects(
                client, Pod, problems=undecodable, partly=partly, field_selector="status.phase=Pending"
            ),
            refused,
        ),
        draining_pods=_try(
            lambda: tuple(
                pod
                for name in draining
                for pod in _list_objects(
                    client, Pod, problems=undecodable, partly=partly, field_selector=f"spec.nodeName={name}"
                )
            ),
            refused,
        ),
        pod_disruption_budgets=_try(lambda: _list_objects(client, PodDisruptionBudget, undecodable, partly), refused)
        if draining
        else (),
    )
    incomplete = {field: partly[kind] for field, kind in LISTED.items() if kind in partly}
    snapshot = replace(snapshot, undecoded=tuple(sorted(undecodable.items())), incomplete=incomplete)
    if draining or ahead or is_under_way(snapshot):
        further = further_namespaces(readable(snapshot.cluster_operators), cluster.status.desired.version)
        return component_objects.read_once(client, draining, further, refused).within(snapshot)
    return snapshot


def _list_objects(
    client: SyncClient, kind: type[K], problems: dict[str, str], partly: dict[str, str], field_selector: str = ""
) -> tuple[K, ...]:
    """Returns all objects of `kind`; adds those that cannot be decoded to `problems`, with the reason.

    A kind that the server does not return in full is added to `partly`.
    """
    listing = client.listing(kind, field_selector=field_selector)
    partly |= _gap_text(kind.__name__, listing.incomplete)
    problems |= {f"{kind.__name__} {bad.key}": bad.problem for bad in listing.undecoded}
    return tuple(sorted(listing.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))


def _gap_text(kind: str, incomplete: Iterable[str]) -> dict[str, str]:
    why = "; ".join(incomplete)
    return {kind: why} if why else {}


def _configurations(client: SyncClient, problems: dict[str, str], partly: dict[str, str]) -> tuple[MachineConfig, ...]:
    """Returns the names and annotations of all MachineConfigs: their specs are a hundred times as large."""
    listing = client.listing(Object, resource=resource_of(MachineConfig))
    partly |= _gap_text("MachineConfig", listing.incomplete)
    problems |= {f"MachineConfig {bad.key}": bad.problem for bad in listing.undecoded}
    return tuple(MachineConfig(metadata=item.metadata) for item in listing.items)


def _read_operator_deployment(client: SyncClient) -> Deployment | Unreadable | None:
    """Returns the machine-config operator's Deployment, or None."""
    try:
        return client.send(calls.get(Deployment, MACHINE_CONFIG_OPERATOR, MCO_NAMESPACE))
    except NotFound:
        return None
    except ApiError as error:
        return Unreadable(error.message)


def _try(read_objects: Callable[[], T], refused: Refusals) -> T | Unreadable:
    """Returns the result of `read_objects`, or Unreadable if the server refuses. Any other error fails the command."""
    try:
        return read_objects()
    except refused as error:
        return Unreadable(error.message)


JSON = dict[str, Any]

# Errors that become a line of the report instead of ending the command.
REFUSED = (Forbidden, NotFound)
TOLERATED = (*REFUSED, ServerError)
"""Those of a single look: one kind that the server does not return does not hide the others."""


def read(
    client: SyncClient, clock: Callable[[], datetime], *, whole: bool = False, following: bool = False
) -> status_reading.StatusReading:
    """Returns the status now; `whole` asks for every node, which a large cluster's object does not hold.

    With `following`, a server error for one kind is raised, because the next read follows soon: otherwise a kind that
    is briefly missing would look like a problem that is over. The time is taken after the server has answered, since it
    may be the server's.
    """
    tolerated = REFUSED if following else TOLERATED
    stored_status = written_status(client, tolerated)
    if stored_status is None:
        return _compute_status(client, clock(), tolerated)
    age = _age_of_report(client, clock, tolerated)
    now = clock()
    report = read_report(stored_status)
    if age.state != freshness.OLD and is_outdated(client, report, now):
        age = freshness.Freshness(freshness.OLD, age.confirmed_at, _OUTDATED)
    if age.state != freshness.OLD and not (whole and (_condition(stored_status, "Complete").get("status") == "False")):
        doubt = status_reading.age_sentence(age)
        reachable = _condition(stored_status, "AlertsReachable")
        # Without a ClusterVersion nobody asks for alerts.
        is_reachable = reachable.get("status", "True") == "True" or reachable.get("reason") == "NotAsked"
        alerts_problem = "" if is_reachable else status_reading.alerts_note(str(reachable.get("message", "")))
        return status_reading.StatusReading(
            obj=status_reading.with_current_condition(stored_status, age, now),
            now_ns=to_ns(now),
            notes=_notes(doubt),
            alerts_problem=alerts_problem,
            read=report,
            doubt=doubt,
        )
    if age.state != freshness.OLD:
        return _compute_status(client, now, tolerated, stored_status)
    try:
        computed = _compute_status(client, now, tolerated, stored_status)
    except Forbidden as error:
        refused = f"The cluster itself may not be read ({error.message}), so the old report is shown"
        doubt = f"{status_reading.age_sentence(age)}. {refused}"
        computed = status_reading.StatusReading(
            obj=status_reading.with_current_condition(stored_status, age, now), now_ns=to_ns(now), read=report
        )
    else:
        hint = f"So the cluster itself was read; see whether the controller runs in {freshness.NAMESPACE}"
        doubt = f"{status_reading.age_sentence(age)}. {hint}"
        computed = replace(computed, obj=status_reading.read_instead(computed.obj, doubt, age, now))
    return replace(computed, notes=_notes(status_reading.with_ago(doubt, age, now)), doubt=doubt)


def _age_of_report(client: SyncClient, clock: Callable[[], datetime], refused: Refusals) -> freshness.Freshness:
    """Returns how old the report is; UNKNOWN if the Lease is refused with one of `refused` or cannot be decoded."""
    try:
        lease = codec.convert(
            LeaseRecord,
            client.send(
                calls.get_raw(RESOURCES["kubekit.api.workloads_v1.Lease"], freshness.LEASE, freshness.NAMESPACE)
            ),
        )
    except NotFound:
        return freshness.no_lease()
    except refused as error:
        return freshness.Freshness(
            freshness.UNKNOWN, None, f"Lease {freshness.NAMESPACE}/{freshness.LEASE} could not be read: {error.message}"
        )
    except codec.DecodeError as error:
        return freshness.Freshness(
            freshness.UNKNOWN, None, f"Lease {freshness.NAMESPACE}/{freshness.LEASE} could not be read: {error}"
        )
    return freshness.freshness(lease, clock())


def _notes(problem_text: str) -> tuple[str, ...]:
    return (f"warning: {problem_text}\n",) if problem_text else ()


def _compute_status(
    client: SyncClient, now: datetime, tolerated: Refusals, stored_status: JSON | None = None
) -> status_reading.StatusReading:
    """Returns the status computed from the cluster's own objects; raises what reading ClusterVersion raises.

    Times that the cluster does not record are taken from `stored_status`, the controller's object.
    """
    now_ns = to_ns(now)
    try:
        snapshot = observe(client, now, tolerated)
    except clusters.NoClusterVersion:
        # Imported here because most clusters that are asked have a ClusterVersion.
        from runup.updatestatus.control import kubernetes_objects

        status = status_reading.complete_status(
            kubernetes_objects.observe(client, tolerated), now_ns, stored_status=stored_status
        )
        return status_reading.StatusReading(obj=status, now_ns=now_ns)
    alerts = snapshot.alerts
    problem = status_reading.alerts_note(alerts.why) if isinstance(alerts, Unreadable) else ""
    return status_reading.StatusReading(
        obj=status_reading.complete_status(snapshot, now_ns, stored_status=stored_status),
        now_ns=now_ns,
        alerts_problem=problem,
    )


_OUTDATED = "it is older than ClusterVersion"
# A controller that was restarted, or that handles many changes, lags a few seconds behind: that is not outdated.
_BEHIND = timedelta(seconds=60)


# Only the fields of ClusterVersion that are compared: building the whole type takes a seventh of Python's start.
class _Entry(Wire, frozen=True):
    started_time: datetime


class _Status(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()
    history: tuple[_Entry, ...] = ()


class _ClusterVersion(Wire, frozen=True):
    status: _Status = _Status()


def is_outdated(client: SyncClient, report: Report, now: datetime) -> bool:
    """Reports whether ClusterVersion has contradicted the report for a minute, so that no controller maintains it.

    They can differ since Progressing changed or the newest entry of the history began, whichever is later.
    """
    try:
        document = client.send(calls.get_raw(clusters.CLUSTER_VERSION, clusters.NAME))
    except (NotFound, Forbidden):
        return False
    try:
        cluster = codec.convert(_ClusterVersion, document)
    except codec.DecodeError as error:
        raise codec.DecodeError(f"ClusterVersion {clusters.NAME} cannot be read: {error}") from error
    progressing = find(cluster.status.conditions, "Progressing")
    changed_at = progressing.last_transition_time if progressing else None
    insight = report.cluster_version
    if progressing is None or changed_at is None or report.updating is None or insight is None:
        return False
    started = insight.started_at
    if cluster.status.history:
        started = cluster.status.history[0].started_time
        # Another target during an update is a new entry, while Progressing stays as it is.
        changed_at = max(changed_at, started)
    differs = report.updating.status != progressing.status or insight.started_at != started
    return differs and now - changed_at >= _BEHIND


def written_status(client: SyncClient, refused: Refusals = REFUSED) -> JSON | None:
    """Returns the controller's object, or None: no such API, no right to read it, or nothing written yet."""
    try:
        status_object = client.send(calls.get_raw(resource_of(UpdateStatus), NAME))
    except refused:
        return None
    return status_object if status_object.get("status") else None


def _condition(obj: JSON, type_: str) -> JSON:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next(
        (condition for condition in conditions if isinstance(condition, dict) and condition.get("type") == type_), {}
    )
