"""`kernel-module-preflight`: turns flags into `Options` and runs the controller until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import click

from runup.cli.operator.command_process import add_serving_options, common, leadership, run_process
from runup.cli.startup.quick_imports import quick_imports

if TYPE_CHECKING:
    from kubekit.http.addresses import Network
    from runup.kernelmodules.control.process import Options


@click.command("kernel-module-preflight")
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
    help="The addresses of the cluster's Services, if the cluster does not tell them; may be given again.",
)
@add_serving_options("")
@leadership
def kernel_module_preflight(**flags: Any) -> None:
    """Try every Module against the kernels of PreflightValidations: image, build, signature."""
    sys.exit(run(flags))


def run(flags: Mapping[str, Any]) -> int:
    """Runs the controller; returns 0 when told to stop, 1 with one line on stderr if it cannot run."""
    import uvloop

    with quick_imports():
        from runup.kernelmodules.control.process import serve

    return run_process(flags, options_of, serve, uvloop.run)


def options_of(flags: Mapping[str, Any]) -> Options:
    """Returns the operator's options. Raises ValueError that names the flag which cannot be parsed."""
    from runup.kernelmodules.control.process import Options
    from runup.kernelmodules.decide.build_jobs import Builder

    return Options(
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
        services=tuple(_network(text) for text in flags["service_network"]),
    )


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"--service-network {text}: give a network such as 10.96.0.0/12") from error
