"""Everything that the status of a live cluster is made of, read here and now where no controller wrote it.

What may not be read is an `Unreadable` in the snapshot, and so a line of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment, PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.errors import ApiError, NotFound
from runup.advice.cli import thanos
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.cli import cluster as clusters
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG_OPERATOR
from runup.updatestatus.decide.snapshot import LISTED, Snapshot, Unreadable, in_report_order, is_drain_wanted

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

T = TypeVar("T")
K = TypeVar("K", bound=Object)
Refusals = tuple[type[ApiError], ...]

MCO_NAMESPACE = "openshift-machine-config-operator"


def observe(client: SyncClient, now: datetime, told: Refusals) -> Snapshot:
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
