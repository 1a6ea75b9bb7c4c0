"""Defines `runup install` and `runup uninstall`: their flags, and an output of one line for each object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang import yaml as kyaml
from runup import __version__
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.options import option, with_options
from runup.install.control import installing
from runup.install.control.choices import Flags, options_of
from runup.install.control.sets import Done, InstallError, ObjectSets, OnDone
from runup.install.decide.component import COMPONENTS, OPERATOR, Component, Options, Platform
from runup.install.decide.component_objects import component_objects
from runup.install.decide.objects import Objects
from runup.process.names import default_image

# What to type next.
_NEXT = {
    "operator": "runup check",
    "update-status": "runup upgrade status",
    "kernel-modules": "runup kmod check",
    "update-policy": "runup upgrade policy explain",
    "fleet-update": "kubectl get fleetupdates -n runup-fleet",
}


NAMES = tuple(COMPONENTS)
_AUTO = "auto"

_CHOICES = (
    option("-n", "--namespace", metavar="NS", help="The namespace to install into; else that of the manifests."),
    option("--image", metavar="REF", help="The image; for the operator that of a release, by digest."),
    option("--least-privilege", is_flag=True, help="The operator without the rights to apply releases."),
    option("--with-pools", is_flag=True, help="The update policies with the right to pause MachineConfigPools."),
    option("--hub", is_flag=True, help="update-policy on a cluster that gets update runs from a hub."),
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
_CLUSTER = ("platform", "certificates")
_SECTIONS = (
    ("What", ("namespace", "image", "least_privilege", "with_pools", "hub", "monitoring", "prometheus", *_CLUSTER)),
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
    update-policy starts updates in windows and behind gates; fleet-update updates the clusters of a hub.
    All of these work next to OpenShift's own operator.
    operator keeps ClusterVersion, and is refused where another one does.

    \b
      runup install update-status --image registry.example/runup:0.1.0 --wait
      runup install kernel-modules --image registry.example/runup:0.1.0 --dry-run=server
      runup install operator --image registry.example/release@sha256:... --least-privilege
      runup install update-status --image registry.example/runup:0.1.0 -o yaml
    """
    flags = Flags(**what, printed=bool(output))
    if wait and dry_run and not output:
        raise CommandError("--wait and --dry-run: what is not written cannot become healthy; use one of them")
    connection = connection_of(ctx)
    if output:
        with _command_errors():
            cluster = None
            if flags.asks_the_cluster:
                with connection.client("install") as client:
                    cluster = installing.server(client, _sets(client))
            options = options_of(flags, cluster, default_image())
            objects = _objects(flags.chosen, options)
        click.echo(kyaml.dump_all(objects), nl=False)
        if any(obj["kind"] == "Certificate" for obj in objects):
            click.echo("note: the certificates are made by cert-manager, which the cluster has to have", err=True)
        if flags.chosen == OPERATOR and options.platform is Platform.KUBERNETES:
            click.echo("note: without ClusterVersion; create it after these, with a new clusterID", err=True)
        return 0
    with _command_errors(), connection.client("install") as client:
        sets, clock = _sets(client), SystemClock()
        cluster = installing.server(client, sets)
        options = options_of(flags, cluster, default_image())
        applied = installing.install(
            client,
            sets,
            clock,
            component=flags.chosen,
            objects=_objects(flags.chosen, options),
            options=options,
            observed_cluster=cluster,
            manner=installing.Manner(take_over, force_conflicts, bool(dry_run)),
            on_done=_line_printer(dry_run=bool(dry_run)),
        )
        if wait:
            installing.wait(client, sets, clock, applied, timeout_s=timeout)
            click.echo(f"{flags.component} is installed and healthy: {_NEXT[flags.component]}")
    return 0


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
    chosen = COMPONENTS[component]
    if definitions and chosen == OPERATOR and not (yes or dry_run):
        raise CommandError(
            "--definitions removes ClusterVersion, and the cluster then removes every object of its release, which "
            "ClusterVersion owns; add --yes if that is what you want, or leave --definitions out"
        )
    with _command_errors(), connection_of(ctx).client("uninstall") as client:
        on_done = _line_printer(dry_run=bool(dry_run))
        installing.uninstall(_sets(client), chosen, namespace, on_done, definitions=definitions, dry_run=bool(dry_run))
    return 0


def _sets(client: SyncClient) -> ObjectSets:
    return ObjectSets(client, SystemClock(), tool_version=__version__)


def _objects(component: Component, options: Options) -> Objects:
    return component_objects(component, installing.manifests(component, options.platform), options)


def _line_printer(*, dry_run: bool) -> OnDone:
    """Returns a function that prints the action on an object, as `kubectl apply` does."""
    suffix = " (server dry run)" if dry_run else ""

    def print_line(progress: Done) -> None:
        identity = progress.identity
        kind = f"{identity.kind.lower()}.{identity.group}" if identity.group else identity.kind.lower()
        place = f" in {identity.namespace}" if identity.namespace else ""
        click.echo(f"{kind}/{identity.name}{place} {progress.outcome}{suffix}")

    return print_line


@contextmanager
def _command_errors() -> Iterator[None]:
    """Turns an error of an installation into one of the command."""
    try:
        yield
    except InstallError as error:
        raise CommandError(error.message) from error
