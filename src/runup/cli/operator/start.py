"""`cluster-version-operator start`: flags -> `Options`, then the manager runs until it is told to stop."""

from __future__ import annotations

import sys

import click

from runup.cli.operator.leadership import leadership, read_election


@click.command()
@click.option(
    "--release-image", required=True, metavar="PULLSPEC", help="Pull spec, by digest, of the running release."
)
@click.option(
    "--node-name", envvar="NODE_NAME", required=True, metavar="NAME", help="The node that this process runs on."
)
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--listen", default="127.0.0.1:9099", show_default=True, help="Where metrics and health are served; '' for nowhere."
)
@click.option("--serving-cert-file", default="", metavar="FILE", help="Serve HTTPS with this certificate.")
@click.option("--serving-key-file", default="", metavar="FILE", help="The certificate's key.")
@click.option("--update-service", default="", metavar="URL", help="Asked instead of spec.upstream.")
@click.option("--update-service-ca", default="", metavar="FILE", help="Certificate authorities for the update service.")
@click.option(
    "--report-dir", default="/etc/cvo/preflight", show_default=True, help="Where this process finds the reports."
)
@click.option(
    "--report-sink",
    type=click.Choice(["volume", "configmap"]),
    default="volume",
    show_default=True,
    help="How reports arrive.",
)
@click.option(
    "--preflight-timeout", default=600.0, show_default=True, metavar="SECONDS", help="Until a first complete report."
)
@click.option(
    "--preflight-service-account",
    type=click.Choice(["operator", "dedicated"]),
    default="operator",
    show_default=True,
    help="Account of the target's process.",
)
@click.option("--preflight-cpu-request", default="10m", show_default=True)
@click.option("--preflight-memory-request", default="50Mi", show_default=True)
@click.option("--preflight-cpu-limit", default="500m", show_default=True)
@click.option("--preflight-memory-limit", default="512Mi", show_default=True)
@click.option("--namespace", envvar="CVO_NAMESPACE", default="openshift-cluster-version-operator", show_default=True)
@click.option(
    "--service-account",
    envvar="CVO_NAME",
    default="cluster-version-operator",
    show_default=True,
    help="The operator's own account.",
)
@leadership
def start(**flags: object) -> None:
    """Run the managing operator."""
    sys.exit(run(**flags))  # type: ignore[arg-type]


def run(
    *,
    release_image: str,
    node_name: str,
    kubeconfig: str | None,
    listen: str,
    serving_cert_file: str,
    serving_key_file: str,
    update_service: str,
    update_service_ca: str,
    report_dir: str,
    report_sink: str,
    preflight_timeout: float,
    preflight_service_account: str,
    preflight_cpu_request: str,
    preflight_memory_request: str,
    preflight_cpu_limit: str,
    preflight_memory_limit: str,
    namespace: str,
    service_account: str,
    leader_elect: bool,
    lease: str | None,
) -> int:
    """The exit code: 0 when told to stop, 1 with one line on stderr when it cannot run."""
    import asyncio
    import os
    from pathlib import Path

    from runup.controllers.manager import Options, options_from_environment, serve
    from runup.domain.errors import RunupError
    from runup.domain.preflight.workloads import Quantities, Workplace
    from runup.kube import config
    from runup.kube.errors import KubeError
    from runup.oci.errors import OciError

    quantities = Quantities(
        preflight_cpu_request, preflight_memory_request, preflight_cpu_limit, preflight_memory_limit
    )
    # A runner without mounts gives the folder on this host here; the Deployment mounts it where pods expect it.
    place = Workplace(
        namespace=namespace,
        node_name=node_name,
        operator_service_account=service_account,
        service_account=preflight_service_account,  # type: ignore[arg-type]
        report_sink=report_sink,  # type: ignore[arg-type]
        quantities=quantities,
        timeout_s=preflight_timeout,
    )
    try:
        election = read_election(lease)
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    options = Options(
        release_image=release_image,
        place=place,
        update_service=update_service,
        update_service_ca=update_service_ca,
        listen=listen,
        serving_cert_file=serving_cert_file,
        serving_key_file=serving_key_file,
        report_folder=Path(report_dir),
        leader_elect=leader_elect,
        election=election,
    )
    try:
        cluster = config.load(kubeconfig)
        asyncio.run(serve(cluster, options_from_environment(options, os.environ)))
    except (RunupError, KubeError, OciError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return 0
