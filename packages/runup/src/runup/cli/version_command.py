"""`runup version`: prints the installed version, and with `--server` the cluster's."""

from __future__ import annotations

import click

from runup import __version__
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.options import option


@click.command("version", cls=Command)
@option("--server", is_flag=True, help="Ask the cluster for its versions too.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@connection_options
@click.pass_context
def version(ctx: click.Context, server: bool, output: str | None) -> None:
    """Print the version of runup, and with --server those of the cluster.

    \b
      runup version
      runup version --server -o json
    """
    versions = {"clientVersion": __version__} | (_server_versions(ctx) if server else {})
    if output:
        from runup.cli.render.text import machine

        click.echo(machine(versions, output), nl=False)
        return
    names = {"clientVersion": "Client", "clusterVersion": "Cluster", "kubernetesVersion": "Kubernetes"}
    for key, value in versions.items():
        click.echo(f"{names[key]} Version: {value}")


def _server_versions(ctx: click.Context) -> dict[str, str]:
    """Returns the versions of the cluster and of its Kubernetes, as its API server reports them."""
    from kubekit.api import codec
    from kubekit.kube import calls
    from kubekit.kube.api_errors import NotFound
    from runup.api.config_v1 import ClusterVersion

    client = connection_of(ctx).client()
    kubernetes = codec.decode(dict, client.send(calls.get_path("/version"))).get("gitVersion", "")
    try:
        cluster = client.send(calls.get(ClusterVersion, "version")).status.desired.version
    except NotFound:
        # Kubernetes without OpenShift, which is no error for this command.
        cluster = "none (this cluster has no ClusterVersion)"
    return {"clusterVersion": cluster, "kubernetesVersion": kubernetes}
