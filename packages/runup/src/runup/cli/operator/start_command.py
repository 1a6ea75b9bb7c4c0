"""`cluster-version-operator start`: turns flags into `Options` and runs the manager until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from runup.cli.operator.command_process import add_serving_options, common, leadership, run_process
from runup.cli.options import with_options
from runup.cli.startup.quick_imports import quick_imports
from runup.process.names import OPERATOR_NAMESPACE

if TYPE_CHECKING:
    from runup.operator.manager import Options


OPTIONS = (
    click.option(
        "--release-image", required=True, metavar="PULLSPEC", help="Pull spec, by digest, of the running release."
    ),
    click.option(
        "--node-name", envvar="NODE_NAME", required=True, metavar="NAME", help="The node that this process runs on."
    ),
    click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none."),
    click.option("--update-service", default="", metavar="URL", help="Asked instead of spec.upstream."),
    click.option(
        "--update-service-ca", default="", metavar="FILE", help="Certificate authorities for the update service."
    ),
    click.option(
        "--prometheus-url", default="", metavar="URL", help="A Prometheus or Thanos to ask; '' disables queries."
    ),
    click.option("--prometheus-ca", default="", metavar="FILE", help="Certificate authorities for it."),
    click.option("--hypershift", is_flag=True, help="The control plane is hosted: queries name its cluster."),
    click.option(
        "--release-source",
        type=click.Choice(["pod", "registry"]),
        default="pod",
        show_default=True,
        help="How other releases are fetched.",
    ),
    click.option(
        "--plain-http",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry that speaks plain HTTP; may be given again.",
    ),
    click.option(
        "--payload-dir",
        default="/etc/cvo/updatepayloads",
        show_default=True,
        metavar="DIR",
        help="Where this process finds what a pod fetched.",
    ),
    click.option(
        "--report-dir", default="/etc/cvo/preflight", show_default=True, help="Where this process finds the reports."
    ),
    click.option(
        "--report-sink",
        type=click.Choice(["volume", "configmap"]),
        default="volume",
        show_default=True,
        help="How reports arrive.",
    ),
    click.option(
        "--preflight-timeout",
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="Until a first complete report.",
    ),
    click.option(
        "--preflight-service-account",
        type=click.Choice(["operator", "dedicated"]),
        default="operator",
        show_default=True,
        help="Account of the target's process.",
    ),
    click.option("--preflight-cpu-request", default="10m", show_default=True),
    click.option("--preflight-memory-request", default="50Mi", show_default=True),
    click.option("--preflight-cpu-limit", default="1", show_default=True),
    click.option("--preflight-memory-limit", default="512Mi", show_default=True),
    click.option(
        "--open-gates",
        default="",
        metavar="A,B",
        help="Feature gates that are open for the operator whatever the cluster's FeatureGate says.",
    ),
    click.option(
        "--record-only",
        is_flag=True,
        help="Apply nothing: an update that is accepted is recorded, and that is all.",
    ),
    click.option(
        "--always-enable-capabilities",
        default="",
        metavar="A,B",
        help="Capabilities that are on whatever the cluster asks for.",
    ),
    click.option("--namespace", envvar="CVO_NAMESPACE", default=OPERATOR_NAMESPACE, show_default=True),
    click.option(
        "--service-account",
        envvar="CVO_NAME",
        default="cluster-version-operator",
        show_default=True,
        help="The operator's own account.",
    ),
)


@click.command()
@with_options(OPTIONS)
@add_serving_options("127.0.0.1:9099")
@leadership
def start(**flags: Any) -> None:
    """Run the managing operator."""
    sys.exit(run(flags))


def run(flags: Mapping[str, Any]) -> int:
    """Runs the manager; returns 0 when told to stop, 1 if it cannot run (see stderr) or loses its lease."""
    import asyncio
    import os

    with quick_imports():
        from runup.operator.manager import options_from_environment, serve

    return run_process(flags, lambda flags: options_from_environment(options_of(flags), os.environ), serve, asyncio.run)


def options_of(flags: Mapping[str, Any]) -> Options:
    """Returns the manager's options. Raises ValueError that names the flag which cannot be parsed."""
    from pathlib import Path

    from runup.operator.manager import Options

    same = (
        "release_image",
        "update_service",
        "update_service_ca",
        "prometheus_url",
        "prometheus_ca",
        "hypershift",
    )
    from runup.preflight.decide.preflight_deployment import PodSettings, Quantities

    quantities = ("cpu_request", "memory_request", "cpu_limit", "memory_limit")
    return Options(
        **common(flags),
        **{name: flags[name] for name in same},
        pod_settings=PodSettings(
            namespace=flags["namespace"],
            node_name=flags["node_name"],
            operator_service_account=flags["service_account"],
            service_account=flags["preflight_service_account"],
            prometheus_url=flags["prometheus_url"],
            prometheus_hosted=flags["hypershift"],
            report_sink=flags["report_sink"],
            plain_http_registries=flags["plain_http"],
            quantities=Quantities(**{name: flags[f"preflight_{name}"] for name in quantities}),
            timeout_s=flags["preflight_timeout"],
        ),
        release_source=flags["release_source"],
        plain_http_registries=frozenset(flags["plain_http"]),
        payload_folder=Path(flags["payload_dir"]),
        # Outside a pod there are no mounts: the flag gives the folder on the host; the Deployment mounts it into pods.
        report_folder=Path(flags["report_dir"]),
        applies=not flags["record_only"],
        always_enabled=tuple(filter(None, flags["always_enable_capabilities"].split(","))),
        open_gates=frozenset(filter(None, flags["open_gates"].split(","))),
    )
