"""Reads and changes ClusterVersion for every command.

A change that depends on what was read carries the resourceVersion. On a conflict the change is decided again from the
newer object, so that two administrators at once never overwrite each other unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, Forbidden, KubeError, NotFound
from runup.api.kinds import RESOURCES
from runup.process.names import ACCEPTED as ACCEPTED
from runup.process.names import HISTORY as HISTORY
from runup.process.names import OPERATOR_LEASE, operator_namespace

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.config_v1 import ClusterVersion

# Wire types are imported only where something is decoded: half of the commands read plain JSON and start faster.
CLUSTER_VERSION = RESOURCES["runup.api.config_v1.ClusterVersion"]
CONFIG_MAP = RESOURCES["kubekit.api.core_v1.ConfigMap"]
DEPLOYMENT = RESOURCES["kubekit.api.workloads_v1.Deployment"]
_LEASE = RESOURCES["kubekit.api.workloads_v1.Lease"]
NAME = "version"
FIELD_MANAGER = "runup"
namespace = operator_namespace
NO_CLUSTER_VERSION = (
    "{no} cluster version information available - you must be connected to an OpenShift {server}server to fetch the "
    "current version"
)
_ATTEMPTS = 8


class NoClusterVersion(InputError):
    """The cluster has no ClusterVersion."""


Patch = dict[str, Any]


def read(client: SyncClient, *, no: str = "No", server: str = "version 4 ") -> ClusterVersion:
    """Returns the ClusterVersion. Raises InputError with oc's text, completed by `no` and `server`, without one."""
    from runup.api.config_v1 import ClusterVersion

    try:
        return client.send(calls.get(ClusterVersion, NAME))
    except NotFound as error:
        raise NoClusterVersion(NO_CLUSTER_VERSION.format(no=no, server=server)) from error


def read_raw(client: SyncClient, *, no: str = "No") -> dict[str, Any]:
    """Returns the ClusterVersion as JSON. Raises InputError as `read` does."""
    try:
        return client.send(calls.get_raw(CLUSTER_VERSION, NAME))
    except NotFound as error:
        raise NoClusterVersion(NO_CLUSTER_VERSION.format(no=no, server="version 4 ")) from error


def name_of(client: SyncClient, cluster: ClusterVersion | None = None) -> str:
    """Returns the cluster's display name: its infrastructure's name, else its server's host, else its ID."""
    from runup.api.config_v1 import ClusterVersion, Infrastructure, InfrastructureStatus
    from runup.process.names import cluster_name

    try:
        infrastructure = client.send(calls.get(Infrastructure, "cluster")).status
    except (KubeError, codec.DecodeError):
        infrastructure = InfrastructureStatus()
    try:
        cluster = cluster or client.send(calls.get(ClusterVersion, NAME))
    except (KubeError, codec.DecodeError):
        cluster = None
    return cluster_name(infrastructure, cluster, client.config.server)


def read_record(client: SyncClient, name: str) -> dict[str, Any] | None:
    """Returns a ConfigMap of the operator as JSON; None if it does not exist or may not be read."""
    try:
        return client.send(calls.get_raw(CONFIG_MAP, name, namespace()))
    except (NotFound, Forbidden):
        return None


def read_lapse(client: SyncClient) -> str:
    """Returns since when no operator keeps a preflight's state up to date; empty if one does or it is not known."""
    from runup.process.lease_age import LeaseRecord, lapse

    try:
        record = codec.convert(LeaseRecord, client.send(calls.get_raw(_LEASE, OPERATOR_LEASE, namespace())))
    except (NotFound, Forbidden, codec.DecodeError):
        return ""  # an operator without leader election has no Lease
    return lapse(record, client.now(), f"{namespace()}/{OPERATOR_LEASE}")


def patch(
    client: SyncClient, body: Patch, *, dry_run: bool = False, strict: bool = False, manager: str = FIELD_MANAGER
) -> ClusterVersion:
    """Sends one merge patch as this field manager and returns the changed object."""
    from runup.api.config_v1 import ClusterVersion

    call = calls.merge_patch(
        CLUSTER_VERSION,
        NAME,
        body,
        dry_run=dry_run,
        field_validation="Strict" if strict else "",
        field_manager=manager,
    )
    return codec.convert(ClusterVersion, client.send(call))


def change(
    client: SyncClient,
    cluster: ClusterVersion,
    decide: Callable[[ClusterVersion], Patch | None],
    *,
    send: Callable[[Patch], ClusterVersion],
) -> tuple[ClusterVersion, ClusterVersion | None]:
    """Sends the patch that `decide` returns, and decides again after a conflict; returns the object before and after.

    The result is None if `decide` found nothing to change. Raises Conflict after several attempts.
    """
    # Each conflict means that somebody else's write succeeded, so that a few attempts are enough.
    for _ in range(_ATTEMPTS - 1):
        body = decide(cluster)
        if body is None:
            return cluster, None
        try:
            return cluster, send(_with_resource_version(body, cluster))
        except Conflict:
            cluster = read(client)
    body = decide(cluster)
    return cluster, None if body is None else send(_with_resource_version(body, cluster))


def _with_resource_version(body: Patch, cluster: ClusterVersion) -> Patch:
    return {"metadata": {"resourceVersion": cluster.metadata.resource_version}, **body}
