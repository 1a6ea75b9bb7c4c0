"""Names that several layers use: of the cluster's own objects, of the cluster itself, and of the user of our pods."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runup import build_info

if TYPE_CHECKING:
    from runup.api.config_v1 import ClusterVersion, InfrastructureStatus

OPERATOR_NAMESPACE = "openshift-cluster-version-operator"
"""The namespace of the managing operator and the preflights, unless CVO_NAMESPACE overrides it.

Source: docs/decisions/0072 D19.
"""

FLEET_NAMESPACE = "runup-fleet"
"""The namespace of FleetUpdates on a hub, and of their controller."""

NOBODY = 65534
"""The user `nobody`: the image names no user, and its processes write no file but in /tmp."""

# The ConfigMaps with the reports of preflights, and with the reason, author and end of each accepted risk.
HISTORY, ACCEPTED = "preflight-history", "accepted-risks"


OPERATOR_LEASE = "version"
"""The Lease of the managing operator, in its namespace."""


def operator_namespace() -> str:
    """Returns the operator's namespace; CVO_NAMESPACE overrides the default (docs/decisions/0072 D19)."""
    return os.environ.get("CVO_NAMESPACE") or OPERATOR_NAMESPACE


def default_image() -> str | None:
    """Returns the pull spec of the image of the same release, None if none was set when this runup was built."""
    return build_info.IMAGE or None


def cluster_name(infrastructure: InfrastructureStatus, cluster: ClusterVersion | None, server: str = "") -> str:
    """Returns the infrastructure's name and address, as far as known; else `server`'s host, else the cluster's ID."""
    # The infrastructure's URL is the cluster's public one; a kubeconfig may name a tunnel or a load balancer.
    host = _host(infrastructure.api_server_url) or _host(server)
    if infrastructure.infrastructure_name:
        return f"{infrastructure.infrastructure_name} ({host})" if host else infrastructure.infrastructure_name
    cluster_id = cluster.spec.cluster_id if cluster is not None else ""
    return host or cluster_id or "a cluster without a name"


def _host(url: str) -> str:
    """Returns the host of a URL if it is meaningful on other machines: neither localhost nor an IP address."""
    if not url:
        return ""
    from ipaddress import ip_address
    from urllib.parse import urlsplit  # most reports name no address

    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    try:
        ip_address(host)
    except ValueError:
        return "" if host == "localhost" else host
    return ""
