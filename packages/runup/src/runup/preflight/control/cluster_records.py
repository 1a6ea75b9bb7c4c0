"""Reads the results of preflights that an operator stored in the cluster, and the records of accepted risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, NotFound
from runup.advice.decide.acceptance import Accepted, accepted, accepted_names
from runup.api.clusterversion_json import texts
from runup.process.clusterversion_client import ACCEPTED, DEPLOYMENT, read_lapse, read_record

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.config_v1 import ClusterVersion
    from runup.preflight.decide import stored_reports


def read_history(client: SyncClient, namespace: str) -> stored_reports.History:
    """Returns the stored reports; none if the ConfigMap is missing or may not be read, since they only add detail."""
    from kubekit.api.core_v1 import ConfigMap
    from runup.preflight.decide import stored_reports  # which not every command asks for

    try:
        history = stored_reports.read(client.send(calls.get(ConfigMap, stored_reports.NAME, namespace)))
    except (NotFound, Forbidden):
        history = stored_reports.History()
    return replace(history, lapse=read_lapse(client))


def read_preflight_target(client: SyncClient, namespace: str) -> str | None:
    """Returns the target of the preflight whose Deployment exists; None if it does not exist or it may not be read."""
    from runup.preflight.decide import preflight_deployment

    try:
        deployment_data = client.send(calls.get_raw(DEPLOYMENT, preflight_deployment.NAME, namespace))
    except (NotFound, Forbidden):
        return None
    labels: dict[str, str] = deployment_data.get("metadata", {}).get("labels") or {}
    return labels.get(preflight_deployment.TARGET_LABEL) or preflight_deployment.NAME


def read_accepted(client: SyncClient, cluster: ClusterVersion) -> Accepted:
    """Returns the accepted names that are in effect with their records; all names if the records cannot be read."""
    # Most clusters accept no risks, and are spared the request.
    if not accepted_names(cluster):
        return {}
    return accepted(cluster, texts(read_record(client, ACCEPTED), "data"), client.now())
