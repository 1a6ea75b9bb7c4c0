"""Runs `runup install` and `runup uninstall` once their flags are read, and prints their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec

from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang import yaml as kyaml
from runup import __version__
from runup.cli.errors import CommandError
from runup.install.control import healthy_objects, installing, observing, sources
from runup.install.control.choices import Flags, options_of
from runup.install.control.installing import Manner
from runup.install.control.sets import Done, InstallError, ObjectSets, Told
from runup.install.decide.component import COMPONENTS, OPERATOR, Component, Options, Platform
from runup.install.decide.component_objects import component_objects
from runup.install.decide.objects import Objects
from runup.process.connection import Connection
from runup.process.own_image import default_image

__all__ = ("Manner", "Removal", "install", "print_objects", "uninstall")
# What to type next.
_NEXT = {
    "operator": "runup check",
    "update-status": "runup upgrade status",
    "kernel-modules": "runup kmod check",
}


class Removal(msgspec.Struct, frozen=True):
    """Choices for a removal."""

    definitions: bool
    yes: bool
    dry_run: bool


def print_objects(connection: Connection, flags: Flags) -> int:
    """Prints the objects as YAML; asks the cluster only for what the flags leave to it."""
    with _command_errors():
        if flags.asks_the_cluster:
            with connection.client("install") as client:
                options = options_of(flags, observing.server(client, _sets(client)), default_image())
        else:
            options = options_of(flags, None, default_image())
        objects = _objects(flags.chosen, options)
    click.echo(kyaml.dump_all(objects), nl=False)
    if any(obj["kind"] == "Certificate" for obj in objects):
        click.echo("note: the certificates are made by cert-manager, which the cluster has to have", err=True)
    if flags.chosen == OPERATOR and options.platform is Platform.KUBERNETES:
        click.echo("note: without ClusterVersion; create it after these, with a clusterID of its own", err=True)
    return 0


def install(connection: Connection, flags: Flags, manner: Manner, timeout_s: float | None) -> int:
    """Installs the component; with `timeout_s` waits until it is healthy."""
    clock = SystemClock()
    with _command_errors(), connection.client("install") as client:
        sets = _sets(client)
        cluster = observing.server(client, sets)
        options = options_of(flags, cluster, default_image())
        objects = _objects(flags.chosen, options)
        tell = _line_printer(dry_run=manner.dry_run)
        applied = installing.install(client, sets, clock, flags.chosen, objects, options, cluster, manner, tell)
        if timeout_s is not None:
            healthy_objects.wait(client, sets, clock, applied, timeout_s)
            click.echo(f"{flags.component} is installed and healthy: {_NEXT[flags.component]}")
    return 0


def uninstall(connection: Connection, name: str, namespace: str | None, removal: Removal) -> int:
    """Removes the component and waits until it is gone."""
    component = COMPONENTS[name]
    if removal.definitions and component == OPERATOR and not (removal.yes or removal.dry_run):
        raise CommandError(
            "--definitions removes ClusterVersion, and the cluster then removes every object of its release, which "
            "ClusterVersion owns; add --yes if that is what you want, or leave --definitions out"
        )
    with _command_errors(), connection.client("uninstall") as client:
        tell = _line_printer(dry_run=removal.dry_run)
        sets = _sets(client)
        installing.uninstall(sets, component, namespace, tell, definitions=removal.definitions, dry_run=removal.dry_run)
    return 0


def _sets(client: SyncClient) -> ObjectSets:
    return ObjectSets(client, SystemClock(), tool_version=__version__)


def _objects(component: Component, options: Options) -> Objects:
    return component_objects(component, sources.manifests(component, options.platform), options)


def _line_printer(*, dry_run: bool) -> Told:
    """Returns a function that prints what was done with an object, as `kubectl apply` does."""
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
