"""The status of a live cluster: the controller's UpdateStatus where there is one, else the same made here and now.

Reading the cluster takes more requests and knows no start times that nobody recorded; both print through one object.
What may not be read is an `Unreadable` in the snapshot, and so a line of the report; so is a kind that the server has
trouble with, for those who ask once. Only without ClusterVersion and operators there is no report at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.core_v1 import Node, Pod
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.meta_v1 import Object
from runup.api.scheme import resource_of
from runup.api.update_v1alpha1 import NAME, UpdateStatus
from runup.api.workloads_v1 import Deployment, PodDisruptionBudget
from runup.cli import cluster as clusters
from runup.cli import thanos
from runup.cli.status.source import EPOCH, Found, alerts_note, assessed
from runup.domain.conditions import find
from runup.domain.updatestatus.control_plane import MACHINE_CONFIG_OPERATOR
from runup.domain.updatestatus.read import report as read_report
from runup.domain.updatestatus.snapshot import LISTED, Snapshot, Unreadable, in_report_order, is_drain_wanted
from runup.kube import calls
from runup.kube.errors import ApiError, Forbidden, NotFound, ServerError
from runup.lang.gotext import nanoseconds

if TYPE_CHECKING:
    from runup.kube.client_sync import SyncClient

T = TypeVar("T")
K = TypeVar("K", bound=Object)
JSON = dict[str, Any]
Refusals = tuple[type[ApiError], ...]

_REFUSED = (Forbidden, NotFound)

MCO_NAMESPACE = "openshift-machine-config-operator"


def read(client: SyncClient, clock: Callable[[], datetime], *, whole: bool = False, following: bool = False) -> Found:
    """The status now; `whole` is for those who want every node, which a large cluster's object does not hold.

    Who is following asks again soon: a server's trouble with one kind is raised then, else what is not seen for a
    moment would look like what is over. The time is asked for after the server has answered: it may be the server's.
    """
    told = _REFUSED if following else (*_REFUSED, ServerError)
    written = written_status(client, told)
    now = clock()
    now_ns = nanoseconds(now - EPOCH)
    notes: tuple[str, ...] = ()
    if written is not None and is_outdated(client, written, now):
        written, notes = None, (_OUTDATED,)
    if written is not None and not (whole and _is_incomplete(written)):
        return Found(written, now_ns, alerts_problem=_alerts_problem(written))
    snapshot = observe(client, now, told)
    known = snapshot.alerts
    problem = alerts_note(known.why) if isinstance(known, Unreadable) else ""
    return Found(assessed(snapshot, now_ns), now_ns, notes, problem)


_OUTDATED = (
    "warning: the update status controller's report is older than ClusterVersion, so the cluster itself was read; "
    "see whether the controller runs in openshift-update-status-controller\n"
)
# A controller that is restarted, or that follows many changes, is a few seconds behind.
_BEHIND = timedelta(seconds=60)


def is_outdated(client: SyncClient, written: JSON, now: datetime) -> bool:
    """Whether ClusterVersion has for a minute been other than the report says: then nobody keeps the report."""
    try:
        cluster = client.send(calls.get(ClusterVersion, clusters.NAME))
    except (NotFound, Forbidden):
        return False
    progressing = find(cluster.status.conditions, "Progressing")
    since = progressing.last_transition_time if progressing else None
    if progressing is None or since is None or now - since < _BEHIND:
        return False
    report = read_report(written)
    insight = report.cluster_version
    if report.updating is None or insight is None:
        return False
    started = cluster.status.history[0].started_time if cluster.status.history else insight.started_at
    return report.updating.status != progressing.status or insight.started_at != started


def written_status(client: SyncClient, told: Refusals = _REFUSED) -> JSON | None:
    """The controller's object, or None: no such API, no right to read it, or nothing written yet."""
    try:
        found = client.send(calls.get_raw(resource_of(UpdateStatus), NAME))
    except told:
        return None
    return found if found.get("status") else None


def _condition(obj: JSON, type_: str) -> JSON:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if isinstance(each, dict) and each.get("type") == type_), {})


def _is_incomplete(obj: JSON) -> bool:
    return _condition(obj, "Complete").get("status") == "False"


def _alerts_problem(obj: JSON) -> str:
    reachable = _condition(obj, "AlertsReachable")
    known = reachable.get("status", "True") == "True"
    return "" if known else alerts_note(str(reachable.get("message", "")))


def observe(client: SyncClient, now: datetime, told: Refusals = _REFUSED) -> Snapshot:
    """Everything that insights are made of, read now; raises KubeError where ClusterVersion or operators cannot be.

    Answers that are `told` are `Unreadable` in it, others are raised.
    """
    cluster = clusters.read(client, no="no")
    odd: dict[str, str] = {}
    partly: dict[str, str] = {}
    nodes = _try(lambda: _all(client, Node, odd, partly), told)
    pools = _try(lambda: _all(client, MachineConfigPool, odd, partly), told)
    draining = [node.metadata.name for node in nodes if is_drain_wanted(node)] if isinstance(nodes, tuple) else []
    snapshot = Snapshot(
        cluster_version=cluster,
        cluster_operators=_all(client, ClusterOperator, odd, partly),
        machine_config_pools=in_report_order(pools) if isinstance(pools, tuple) else pools,
        nodes=nodes,
        machine_configs=_try(lambda: _configurations(client, odd, partly), told),
        machine_config_operator=_deployment(client),
        alerts=thanos.alerts(client, now) if _asks_for_alerts(cluster) else None,
        pending_pods=_try(lambda: _all(client, Pod, odd, partly, "status.phase=Pending"), told),
        draining_pods=_try(
            lambda: tuple(pod for name in draining for pod in _all(client, Pod, odd, partly, f"spec.nodeName={name}")),
            told,
        ),
        pod_disruption_budgets=_try(lambda: _all(client, PodDisruptionBudget, odd, partly), told) if draining else (),
    )
    incomplete = {field: partly[kind] for field, kind in LISTED.items() if kind in partly}
    return replace(snapshot, undecoded=tuple(sorted(odd.items())), incomplete=incomplete)


def _asks_for_alerts(cluster: ClusterVersion) -> bool:
    # While nothing is updating nobody is told of alerts; workers may go on after the control plane, so only history
    # that ended long before could spare the question, and that is not worth a rule.
    return bool(cluster.status.history)


def _all(
    client: SyncClient, kind: type[K], odd: dict[str, str], partly: dict[str, str], field_selector: str = ""
) -> tuple[K, ...]:
    """All objects of `kind`; those that are not as their kind should be go into `odd`, with the reason.

    A kind that the server does not have in full goes into `partly`.
    """
    found = client.listing(kind, field_selector=field_selector)
    partly |= _said(kind.__name__, found.incomplete)
    odd |= {f"{kind.__name__} {bad.key}": bad.problem for bad in found.undecoded}
    return tuple(sorted(found.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name)))


def _said(kind: str, incomplete: Iterable[str]) -> dict[str, str]:
    why = "; ".join(incomplete)
    return {kind: why} if why else {}


def _configurations(client: SyncClient, odd: dict[str, str], partly: dict[str, str]) -> tuple[MachineConfig, ...]:
    """Names and annotations of all MachineConfigs: their specs are a hundred times as large."""
    found = client.listing(Object, resource=resource_of(MachineConfig))
    partly |= _said("MachineConfig", found.incomplete)
    odd |= {f"MachineConfig {bad.key}": bad.problem for bad in found.undecoded}
    return tuple(MachineConfig(metadata=item.metadata) for item in found.items)


def _deployment(client: SyncClient) -> Deployment | Unreadable | None:
    try:
        return client.send(calls.get(Deployment, MACHINE_CONFIG_OPERATOR, MCO_NAMESPACE))
    except NotFound:
        return None
    except ApiError as error:
        return Unreadable(error.message)


def _try(read: Callable[[], T], told: Refusals) -> T | Unreadable:
    """What `read` reads, or why the server refused it. A server that is gone is an error of the whole command."""
    try:
        return read()
    except told as error:
        return Unreadable(error.message)
