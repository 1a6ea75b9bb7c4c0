"""The commands that start the operator's processes: each turns flags into options and runs until a signal stops it.

Each ends with exit code 0 after that signal, with 1 if it cannot run (one line on stderr) or loses its lease.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import click

from kubekit.http.quick_imports import quick_imports
from runup.cli.lazy import Command
from runup.cli.operator.command_process import add_serving_options, common, leadership, run_process
from runup.cli.options import with_options
from runup.process.names import OPERATOR_NAMESPACE

if TYPE_CHECKING:
    from runup.fleet.control import hub_process as fleet_update
    from runup.kernelmodules.control import process as kernel_modules
    from runup.operator import manager
    from runup.rollout.control import extension
    from runup.rollout.control import process as update_policy
    from runup.updatestatus.control import process as update_status


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
    click.option("--preflight-memory-request", default="40Mi", show_default=True),
    click.option("--preflight-cpu-limit", default="900m", show_default=True),
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


@click.command(cls=Command)
@with_options(OPTIONS)
@add_serving_options("127.0.0.1:9099")
@leadership
def start(**flags: Any) -> None:
    """Run the managing operator."""
    import asyncio
    import os

    with quick_imports():
        from runup.operator.manager import options_from_environment, serve

    options_of = lambda flags: options_from_environment(manager_options(flags), os.environ)  # noqa: E731
    sys.exit(run_process(flags, options_of, serve, asyncio.run))


def manager_options(flags: Mapping[str, Any]) -> manager.Options:
    """Returns the manager's options. Raises ValueError that names the flag which cannot be parsed."""
    from pathlib import Path

    from runup.operator import manager
    from runup.preflight.decide.preflight_deployment import PodSettings, Quantities

    same = (
        "release_image",
        "update_service",
        "update_service_ca",
        "prometheus_url",
        "prometheus_ca",
        "hypershift",
    )
    quantities = ("cpu_request", "memory_request", "cpu_limit", "memory_limit")
    return manager.Options(
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


@click.command("update-status-controller", cls=Command)
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="openshift-update-status-controller",
    show_default=True,
    help="Where the leader's lease is kept.",
)
@click.option(
    "--alerts-url", default="", metavar="URL", help="A Prometheus or Thanos to ask for alerts; '' disables queries."
)
@click.option("--alerts-ca", default="", metavar="FILE", help="Certificate authorities for it.")
@add_serving_options("")
@leadership
@click.option(
    "--write-interval",
    default=0.3,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    help="The object is written this often at most.",
)
@click.option(
    "--mock-now", default="", metavar="TIME", hidden=True, help="The time of a cluster that was imported from a dump."
)
def update_status_controller(**flags: Any) -> None:
    """Keep the object UpdateStatus up to date: the progress of the update and its issues."""
    import uvloop

    with quick_imports():
        from runup.updatestatus.control.process import serve

    sys.exit(run_process(flags, update_status_options, serve, uvloop.run))


def update_status_options(flags: Mapping[str, Any]) -> update_status.Options:
    """Returns the controller's options. Raises ValueError that names the flag which cannot be parsed."""
    from datetime import datetime

    from runup.updatestatus.control import process as update_status
    from runup.updatestatus.control.controller import Timing

    now = flags["mock_now"]
    try:
        # Ages in a dump are meant as of when it was taken.
        fixed = datetime.fromisoformat(now) if now else None
    except ValueError as error:
        raise ValueError(f"--mock-now {now}: {error}") from error
    return update_status.Options(
        **common(flags),
        namespace=flags["namespace"],
        alerts_url=flags["alerts_url"],
        alerts_ca=flags["alerts_ca"],
        timing=Timing(interval_s=flags["write_interval"]),
        fixed_now=fixed,
    )


@click.command("update-policy-controller", cls=Command)
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="runup-update",
    show_default=True,
    help="Where the leader's lease is kept.",
)
@click.option(
    "--node-minutes", default="", metavar="A-B", help="From drained to ready, where no earlier update shows it."
)
@add_serving_options("")
@leadership
def update_policy_controller(**flags: Any) -> None:
    """Carry out the UpdatePolicy: runs that start an update, or open its gate, once every gate is open."""
    import uvloop

    with quick_imports():
        from runup.rollout.control.process import serve

    sys.exit(run_process(flags, update_policy_options, serve, uvloop.run))


def update_policy_options(flags: Mapping[str, Any]) -> update_policy.Options:
    """Returns the controller's options. Raises ValueError that names the flag which cannot be parsed."""
    from runup.cli.errors import CommandError
    from runup.cli.rehearse.forecast_command import parse_node_minutes
    from runup.rollout.control import process as update_policy

    try:
        node_s = parse_node_minutes(flags["node_minutes"])
    except CommandError as error:
        raise ValueError(error.message) from error
    return update_policy.Options(**common(flags), namespace=flags["namespace"], node_s=node_s)


@click.command("update-extension", cls=Command)
@click.option(
    "--kubeconfig", default=None, metavar="FILE", help="The cluster whose update runs count; a pod needs none."
)
@click.option(
    "--cluster",
    required=True,
    metavar="NAMESPACE/NAME",
    help="The Cluster of Cluster API that this gate is for; the calls of others are closed.",
)
@add_serving_options("127.0.0.1:9443")
def update_extension(**flags: Any) -> None:
    """Answer the hooks of Cluster API's runtime extensions by the gates of update runs; nothing is written."""
    import uvloop

    with quick_imports():
        from runup.rollout.control.extension import serve

    sys.exit(run_process({**flags, "leader_elect": False, "lease": None}, extension_options, serve, uvloop.run))


def extension_options(flags: Mapping[str, Any]) -> extension.Options:
    """Returns the extension's options. Raises ValueError that names the flag which cannot be parsed."""
    from runup.rollout.control import extension

    namespace, slash, name = flags["cluster"].partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ValueError(f"--cluster {flags['cluster']}: give NAMESPACE/NAME")
    if not flags["listen"]:
        raise ValueError("--listen: an extension that does not listen answers no hook; give host:port")
    return extension.Options(**common(flags), cluster=(namespace, name))


@click.command("fleet-update-controller", cls=Command)
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the hub; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="runup-fleet",
    show_default=True,
    help="Where FleetUpdates and the leader's lease are.",
)
@add_serving_options("")
@leadership
def fleet_update_controller(**flags: Any) -> None:
    """Carry out the FleetUpdates of a hub of Open Cluster Management."""
    import uvloop

    with quick_imports():
        from runup.fleet.control.hub_process import serve

    sys.exit(run_process(flags, fleet_update_options, serve, uvloop.run))


def fleet_update_options(flags: Mapping[str, Any]) -> fleet_update.Options:
    """Returns the controller's options. Raises ValueError that names the flag which cannot be parsed."""
    from runup.fleet.control import hub_process as fleet_update

    return fleet_update.Options(**common(flags), namespace=flags["namespace"])


@click.command("kernel-module-preflight", cls=Command)
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="openshift-kernel-module-preflight",
    show_default=True,
    help="Where the leader's lease is kept.",
)
@click.option(
    "--build-image",
    envvar="RELATED_IMAGE_BUILD",
    default="",
    metavar="IMAGE",
    help="An image with buildah, for builds and signatures; not needed where there are OpenShift Builds.",
)
@click.option(
    "--sign-image",
    envvar="RELATED_IMAGE_SIGN",
    default="",
    metavar="IMAGE",
    help="An image with sign-file and a shell; without it the kernel's own driver toolkit signs.",
)
@click.option(
    "--sign-file", default="/usr/local/bin/sign-file", show_default=True, help="The path of the program in that image."
)
@click.option(
    "--build-deadline",
    default=3600,
    show_default=True,
    metavar="SECONDS",
    type=click.IntRange(min=1),
    help="A build or a signature that takes longer has failed.",
)
@click.option(
    "--build-with",
    type=click.Choice(["auto", "jobs"]),
    default="auto",
    show_default=True,
    help="auto: by OpenShift Builds where the cluster has them.",
)
@click.option(
    "--plain-http",
    multiple=True,
    metavar="HOST[:PORT]",
    help="A registry that speaks plain HTTP, for release images; may be given again.",
)
@click.option(
    "--certificate-authority",
    default="",
    metavar="FILE",
    help="Certificate authorities for registries, besides the system's.",
)
@click.option(
    "--inner-registry",
    multiple=True,
    metavar="HOST[:PORT]",
    help="A registry on this machine, link-local, or behind a Service that Modules may name; may be given again.",
)
@click.option(
    "--service-network",
    multiple=True,
    metavar="CIDR",
    help="The addresses of the cluster's Services, if the cluster does not report them; may be repeated.",
)
@add_serving_options("")
@leadership
def kernel_module_preflight(**flags: Any) -> None:
    """Try every Module against the kernels of PreflightValidations: image, build, signature."""
    import uvloop

    with quick_imports():
        from runup.kernelmodules.control.process import serve

    sys.exit(run_process(flags, kernel_module_options, serve, uvloop.run))


def kernel_module_options(flags: Mapping[str, Any]) -> kernel_modules.Options:
    """Returns the operator's options. Raises ValueError that names the flag which cannot be parsed."""
    from runup.kernelmodules.control import process as kernel_modules
    from runup.kernelmodules.decide.build_jobs import Builder

    services = []
    for text in flags["service_network"]:
        try:
            services.append(ip_network(text, strict=False))
        except ValueError as error:
            raise ValueError(f"--service-network {text}: give a network such as 10.96.0.0/12") from error
    return kernel_modules.Options(
        **common(flags),
        namespace=flags["namespace"],
        builder=Builder(
            image=flags["build_image"],
            sign_image=flags["sign_image"],
            sign_file=flags["sign_file"],
            deadline_s=flags["build_deadline"],
        ),
        # "auto" looks for OpenShift Builds in the cluster; "jobs" never uses them.
        builds=flags["build_with"] == "auto",
        plain_http=frozenset(flags["plain_http"]),
        inner=frozenset(flags["inner_registry"]),
        certificate_authority=flags["certificate_authority"],
        services=tuple(services),
    )
