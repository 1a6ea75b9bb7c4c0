"""Defines `runup install` and `runup uninstall`: their flags, and an output of one line for each object."""

from __future__ import annotations

from typing import Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.options import option, with_options

NAMES = ("operator", "update-status", "kernel-modules")
_AUTO = "auto"

_CHOICES = (
    option("-n", "--namespace", metavar="NS", help="The namespace to install into; else that of the manifests."),
    option("--image", metavar="REF", help="The image; for the operator that of a release, by digest."),
    option("--least-privilege", is_flag=True, help="The operator without the rights to apply releases."),
    option(
        "--monitoring",
        type=click.Choice([_AUTO, "on", "off"]),
        default=_AUTO,
        help="Metrics and alerts for Prometheus; auto: where the cluster serves its API.",
    ),
    option("--prometheus", metavar="NS/ACCOUNT", help="The account of the Prometheus that reads the metrics."),
    option(
        "--platform",
        type=click.Choice([_AUTO, "openshift", "kubernetes"]),
        default=_AUTO,
        help="The kind of cluster; auto: as the cluster says.",
    ),
    option(
        "--certificates",
        type=click.Choice(["own", "cert-manager"]),
        help="Who makes serving certificates where no service CA does: by default this command, or, with -o yaml, "
        "cert-manager.",
    ),
    option("-o", "--output", type=click.Choice(["yaml"]), help="Print the objects and apply nothing."),
    option("--dry-run", type=click.Choice(["server"]), help="Ask the server, and write nothing."),
    option("--wait", is_flag=True, help="Wait until all is healthy."),
    option("--timeout", type=click.FloatRange(min=1), default=300.0, metavar="SECONDS", help="How long --wait waits."),
    option("--take-over", is_flag=True, help="Install in place of what somebody else installed."),
    option("--force-conflicts", is_flag=True, help="Set fields that somebody else has set, too."),
)
_SECTIONS = (
    ("What", ("namespace", "image", "least_privilege", "monitoring", "prometheus", "platform", "certificates")),
    ("How", ("output", "dry_run", "wait", "timeout", "take_over", "force_conflicts")),
)


@click.command("install", cls=Command, sections=_SECTIONS)
@click.argument("component", type=click.Choice(NAMES))
@with_options(_CHOICES)
@connection_options
@click.pass_context
def install(
    ctx: click.Context,
    /,
    output: str | None,
    dry_run: str | None,
    wait: bool,
    timeout: float,
    take_over: bool,
    force_conflicts: bool,
    **what: Any,
) -> int:
    """Install a component on the cluster, or bring it to the version of this command.

    update-status keeps the object that `runup upgrade status` shows; kernel-modules tries modules for another kernel;
    both work beside OpenShift's own operator. operator keeps ClusterVersion, and is refused where another one does.

    \b
      runup install update-status --image registry.example/runup:0.1.0 --wait
      runup install kernel-modules --image registry.example/runup:0.1.0 --dry-run=server
      runup install operator --image registry.example/release@sha256:... --least-privilege
      runup install update-status --image registry.example/runup:0.1.0 -o yaml
    """
    from runup.cli.errors import CommandError
    from runup.cli.install import install_commands
    from runup.install.control.choices import Flags

    flags = Flags(**what, printed=bool(output))
    if output:
        return install_commands.print_objects(connection_of(ctx), flags)
    if wait and dry_run:
        raise CommandError("--wait and --dry-run: what is not written cannot become healthy; use one of them")
    manner = install_commands.Manner(take_over, force_conflicts, bool(dry_run))
    return install_commands.install(connection_of(ctx), flags, manner, timeout if wait else None)


@click.command("uninstall", cls=Command)
@click.argument("component", type=click.Choice(NAMES))
@option("-n", "--namespace", metavar="NS", help="The namespace that it is installed in; else wherever it is.")
@option("--definitions", is_flag=True, help="Remove its definitions, too, and with them all objects of their kinds.")
@option("--yes", is_flag=True, help="Needed for the operator's definitions: with ClusterVersion goes its release.")
@option("--dry-run", type=click.Choice(["server"]), help="Ask the server, and remove nothing.")
@connection_options
@click.pass_context
def uninstall(
    ctx: click.Context, component: str, namespace: str | None, definitions: bool, yes: bool, dry_run: str | None
) -> int:
    """Remove what `runup install` has installed, and wait until it is gone.

    Definitions, and what users keep in objects of their kinds, stay unless --definitions is given.

    \b
      runup uninstall update-status
      runup uninstall kernel-modules --definitions
    """
    from runup.cli.install import install_commands

    return install_commands.uninstall(
        connection_of(ctx), component, namespace, install_commands.Removal(definitions, yes, bool(dry_run))
    )
