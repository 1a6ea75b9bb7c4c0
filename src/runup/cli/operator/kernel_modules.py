"""`kernel-module-preflight`: flags -> `Options`, then it runs until it is told to stop."""

from __future__ import annotations

import sys

import click

from runup.cli.operator.leadership import leadership, read_election
from runup.cli.operator.serving import serving


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
@click.option("--sign-file", default="/usr/local/bin/sign-file", show_default=True, help="Where it is in that image.")
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
@serving("")
@leadership
def kernel_module_preflight(**flags: object) -> None:
    """Try every Module against the kernels of PreflightValidations: image, build, signature."""
    sys.exit(run(**flags))  # type: ignore[arg-type]


def run(
    *,
    kubeconfig: str | None,
    namespace: str,
    build_image: str,
    sign_image: str,
    sign_file: str,
    build_deadline: int,
    build_with: str,
    plain_http: tuple[str, ...],
    listen: str,
    serving_cert_file: str,
    serving_key_file: str,
    metrics_auth: str,
    leader_elect: bool,
    lease: str | None,
) -> int:
    """The exit code: 0 when told to stop, 1 with one line on stderr when it cannot run."""
    import uvloop

    from runup.cli.operator.process import run_process
    from runup.controllers.kernelmodules.process import Options, serve
    from runup.domain.kernelmodules.jobs import Builder
    from runup.kube import config
    from runup.kube.errors import KubeError

    try:
        election = read_election(lease)
        cluster = config.load(kubeconfig)
    except (KubeError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    options = Options(
        namespace=namespace,
        builder=Builder(image=build_image, sign_image=sign_image, sign_file=sign_file, deadline_s=build_deadline),
        builds=build_with == "auto",
        plain_http=frozenset(plain_http),
        listen=listen,
        serving_cert_file=serving_cert_file,
        serving_key_file=serving_key_file,
        metrics_auth=metrics_auth == "token",
        leader_elect=leader_elect,
        election=election,
    )
    return run_process(lambda: serve(cluster, options), uvloop.run)
