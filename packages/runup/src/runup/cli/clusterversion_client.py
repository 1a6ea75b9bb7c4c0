"""Reads and changes ClusterVersion for every command.

A change that depends on what was read carries the resourceVersion. On a conflict the change is decided again from the
newer object, so that two administrators at once never overwrite each other unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, Forbidden, KubeError, NotFound
from runup.api.kinds import RESOURCES
from runup.cli.errors import CommandError
from runup.cli.operator_namespace import operator_namespace
from runup.cli.output import write as write

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.config_v1 import ClusterVersion
    from runup.preflight.decide import stored_reports
    from runup.preflight.decide.findings import Accepted

# Wire types are imported only where something is decoded: half of the commands read plain JSON and start faster.
CLUSTER_VERSION = RESOURCES["runup.api.config_v1.ClusterVersion"]
CONFIG_MAP = RESOURCES["kubekit.api.core_v1.ConfigMap"]
DEPLOYMENT = RESOURCES["kubekit.api.workloads_v1.Deployment"]
NAME = "version"
FIELD_MANAGER = "runup"
# The ConfigMap with the reason, author and end of each accepted risk.
ACCEPTED = "accepted-risks"
namespace = operator_namespace
NO_CLUSTER_VERSION = (
    "{no} cluster version information available - you must be connected to an OpenShift {server}server to fetch the "
    "current version"
)
_ATTEMPTS = 8
Patch = dict[str, Any]


def read(client: SyncClient, *, no: str = "No", server: str = "version 4 ") -> ClusterVersion:
    """Returns the ClusterVersion. Raises CommandError with oc's text, completed by `no` and `server`, without one."""
    from runup.api.config_v1 import ClusterVersion

    try:
        return client.send(calls.get(ClusterVersion, NAME))
    except NotFound as error:
        raise CommandError(NO_CLUSTER_VERSION.format(no=no, server=server)) from error


def read_raw(client: SyncClient, *, no: str = "No") -> dict[str, Any]:
    """Returns the ClusterVersion as JSON. Raises CommandError as `read` does."""
    try:
        return client.send(calls.get_raw(CLUSTER_VERSION, NAME))
    except NotFound as error:
        raise CommandError(NO_CLUSTER_VERSION.format(no=no, server="version 4 ")) from error


def name_of(client: SyncClient, cluster: ClusterVersion | None = None) -> str:
    """Returns the cluster's display name: its infrastructure's name, else its server's host, else its ID."""
    from runup.api.config_v1 import ClusterVersion, Infrastructure, InfrastructureStatus
    from runup.cli.render.cluster_name import cluster_name

    try:
        infrastructure = client.send(calls.get(Infrastructure, "cluster")).status
    except (KubeError, codec.DecodeError):
        infrastructure = InfrastructureStatus()
    try:
        cluster = cluster or client.send(calls.get(ClusterVersion, NAME))
    except (KubeError, codec.DecodeError):
        cluster = None
    return cluster_name(infrastructure, cluster, client.config.server)


def read_history(client: SyncClient, namespace: str) -> stored_reports.History:
    """Returns the stored reports; none if the ConfigMap is missing or may not be read, since they only add detail."""
    from kubekit.api.core_v1 import ConfigMap
    from runup.preflight.decide import stored_reports  # which not every command asks for

    try:
        return stored_reports.read(client.send(calls.get(ConfigMap, stored_reports.NAME, namespace)))
    except (NotFound, Forbidden):
        return stored_reports.History()


def read_preflight_target(client: SyncClient, namespace: str) -> str | None:
    """Returns the target of the preflight whose Deployment exists; None if there is none or it may not be read."""
    from runup.preflight.decide import preflight_deployment

    try:
        deployment_data = client.send(calls.get_raw(DEPLOYMENT, preflight_deployment.NAME, namespace))
    except (NotFound, Forbidden):
        return None
    labels: dict[str, str] = deployment_data.get("metadata", {}).get("labels") or {}
    return labels.get(preflight_deployment.TARGET_LABEL) or preflight_deployment.NAME


def read_record(client: SyncClient, name: str) -> dict[str, Any] | None:
    """Returns a ConfigMap of the operator as JSON; None if it does not exist or may not be read."""
    try:
        return client.send(calls.get_raw(CONFIG_MAP, name, namespace()))
    except (NotFound, Forbidden):
        return None


def read_accepted(client: SyncClient, cluster: ClusterVersion) -> Accepted:
    """Returns the accepted names that count now, each with its record; all of them if their records may not be read."""
    from runup.cli import facts
    from runup.preflight.decide.findings import accepted, accepted_names

    # Most clusters accept no risks, and are spared the request.
    if not accepted_names(cluster):
        return {}
    return accepted(cluster, facts.texts(read_record(client, ACCEPTED), "data"), client.now())


def patch(client: SyncClient, body: Patch, *, dry_run: bool = False, strict: bool = False) -> ClusterVersion:
    """Sends one merge patch and returns the changed object."""
    from runup.api.config_v1 import ClusterVersion

    call = calls.merge_patch(
        CLUSTER_VERSION,
        NAME,
        body,
        dry_run=dry_run,
        field_validation="Strict" if strict else "",
        field_manager=FIELD_MANAGER,
    )
    return codec.convert(ClusterVersion, client.send(call))


def change(
    client: SyncClient,
    cluster: ClusterVersion,
    decide: Callable[[ClusterVersion], Patch | None],
    *,
    send: Callable[[Patch], ClusterVersion],
) -> tuple[ClusterVersion, ClusterVersion | None]:
    """Sends the patch that `decide` returns, and decides anew after a conflict; returns the object before and after.

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
