"""The display name of a cluster. Pure."""

from __future__ import annotations

from runup.api.config_v1 import ClusterVersion, InfrastructureStatus


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
