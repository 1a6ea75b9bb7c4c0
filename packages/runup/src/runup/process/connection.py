"""The connection to one cluster, as the connection options of a command name it.

The kube layer is imported just before the first request, so that help, flag errors and `runup version` start without
loading it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubekit.error_types import InputError

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.config import ClusterConfig


class Connection:
    """The values of the connection options; a command is about one cluster, so each has one value."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.context = context
        self.as_user: str | None = None
        self.as_group: tuple[str, ...] = ()

    def config(self) -> ClusterConfig:
        """Returns the cluster and the credentials. Raises ConfigError."""
        from msgspec.structs import replace

        from kubekit.kube import config

        cluster_config = config.load(self.kubeconfig, self.context)
        if self.as_group and not self.as_user:
            raise InputError("--as-group needs --as: groups are added to a user")
        # https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
        impersonation = [("Impersonate-User", self.as_user)] if self.as_user else []
        impersonation += [("Impersonate-Group", group) for group in self.as_group]
        return (
            replace(cluster_config, headers=(*cluster_config.headers, *impersonation))
            if impersonation
            else cluster_config
        )

    def client(self, purpose: str = "") -> SyncClient:
        """Returns a client of that cluster whose user agent names the `purpose`, as oc's does. Raises ConfigError."""
        from kubekit.kube.client_sync import SyncClient
        from runup import __version__

        agent = f"runup/{__version__}"
        return SyncClient(self.config(), user_agent=f"{agent} ({purpose})" if purpose else agent)
