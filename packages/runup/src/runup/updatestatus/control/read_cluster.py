"""Reads the input of a live cluster's status, for clusters where no controller wrote an UpdateStatus.

A kind that may not be read is an `Unreadable` in the snapshot, and so a line of the report.
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
from kubekit.kube.api_errors import ApiError, NotFound
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.process import clusterversion_client as clusters
from runup.rules.machine_config import is_drain_wanted
from runup.updatestatus.control import thanos
from runup.updatestatus.decide.control_plane import MACHINE_CONFIG_OPERATOR
from runup.updatestatus.decide.snapshot import LISTED, Snapshot, Unreadable, sort_pools

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

T = TypeVar("T")
K = TypeVar("K", bound=Object)
Refusals = tuple[type[ApiError], ...]

MCO_NAMESPACE = "openshift-machine-config-operator"


def observe(client: SyncClient, now: datetime, refused: Refusals) -> Snapshot:
    """Returns a snapshot of the cluster as it is now; raises KubeError if ClusterVersion or operators cannot be read.

    Errors of the types `refused` become `Unreadable` in the snapshot, others are raised.
    """
    cluster = clusters.read(client, no="no")
    undecodable: dict[str, str] = {}
    partly: dict[str, str] = {}
    nodes = _try(lambda: _list_objects(client, Node, undecodable, partly), refused)
    pools = _try(lambda: _list_objects(client, MachineConfigPool, undecodable, partly), refused)
    draining = [node.metadata.name for node in nodes if is_drain_wanted(node)] if isinstance(nodes, tuple) else []
    snapshot = Snapshot(
        cluster_version=cluster,
        cluster_operators=_list_objects(client, ClusterOperator, undecodable, partly),
        machine_config_pools=sort_pools(pools) if isinstance(pools, tuple) else pools,
        nodes=nodes,
        machine_configs=_try(lambda: _configurations(client, undecodable, partly), refused),
        machine_config_operator=_read_operator_deployment(client),
        alerts=thanos.alerts(client, now) if _asks_for_alerts(cluster) else None,
        pending_pods=_try(lambda: _list_objects(client, Pod, undecodable, partly, "status.phase=Pending"), refused),
        draining_pods=_try(
            lambda: tuple(
                pod
                for name in draining
                for pod in _list_objects(client, Pod, undecodable, partly, f"spec.nodeName={name}")
            ),
            refused,
        ),
        pod_disruption_budgets=_try(lambda: _list_objects(client, PodDisruptionBudget, undecodable, partly), refused)
        if draining
        else (),
    )
    incomplete = {field: partly[kind] for field, kind in LISTED.items() if kind in partly}
    return replace(snapshot, undecoded=tuple(sorted(undecodable.items())), incomplete=incomplete)


def _asks_for_alerts(cluster: ClusterVersion) -> bool:
    # Alerts are printed only during an update. Workers may go on after the control plane, so the request could be
    # spared only if the history ended long ago, and that is not worth a rule.
    return bool(cluster.status.history)


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
    """Returns the machine-config operator's Deployment, None if there is none."""
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
