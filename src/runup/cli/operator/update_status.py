"""`cluster-version-operator update-status-controller`: flags -> `Options`, then it runs until it is told to stop."""

from __future__ import annotations

import sys

import click

from runup.cli.operator.leadership import leadership, read_election
from runup.cli.operator.serving import serving


@click.command("update-status-controller")
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="openshift-update-status-controller",
    show_default=True,
    help="Where the leader's lease is kept.",
)
@click.option(
    "--alerts-url", default="", metavar="URL", help="A Prometheus or Thanos to ask for alerts; '' asks nobody."
)
@click.option("--alerts-ca", default="", metavar="FILE", help="Certificate authorities for it.")
@serving("")
@leadership
@click.option(
    "--write-interval",
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    help="The object is written this often at most.",
)
@click.option(
    "--mock-now", default="", metavar="TIME", hidden=True, help="What time it is for a cluster out of a dump."
)
def update_status_controller(**flags: object) -> None:
    """Keep the object UpdateStatus up to date: how the update goes, and what needs the administrator."""
    sys.exit(run(**flags))  # type: ignore[arg-type]


def run(
    *,
    kubeconfig: str | None,
    namespace: str,
    alerts_url: str,
    alerts_ca: str,
    listen: str,
    serving_cert_file: str,
    serving_key_file: str,
    metrics_auth: str,
    leader_elect: bool,
    lease: str | None,
    write_interval: float,
    mock_now: str,
) -> int:
    """The exit code: 0 when told to stop, 1 with one line on stderr when it cannot run."""
    from datetime import datetime

    import uvloop

    from runup.cli.operator.process import run_process
    from runup.controllers.updatestatus.controller import Timing
    from runup.controllers.updatestatus.process import Options, serve
    from runup.kube import config
    from runup.kube.errors import KubeError

    try:
        election = read_election(lease)
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    try:
        fixed = datetime.fromisoformat(mock_now) if mock_now else None
    except ValueError as error:
        click.echo(f"error: --mock-now {mock_now}: {error}", err=True)
        return 1
    options = Options(
        namespace=namespace,
        alerts_url=alerts_url,
        alerts_ca=alerts_ca,
        listen=listen,
        serving_cert_file=serving_cert_file,
        serving_key_file=serving_key_file,
        metrics_auth=metrics_auth == "token",
        leader_elect=leader_elect,
        election=election,
        timing=Timing(interval_s=write_interval),
        fixed_now=fixed,
    )
    try:
        cluster = config.load(kubeconfig)
    except (KubeError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return run_process(lambda: serve(cluster, options), uvloop.run)
