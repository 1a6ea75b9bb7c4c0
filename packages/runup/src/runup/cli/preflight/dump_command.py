"""The command `runup dump collect`: copies what runup reads of a cluster into a folder or an archive."""

from __future__ import annotations

from pathlib import Path

import click

from kubekit.lang.text import count
from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group


@click.group("dump", cls=Group)
def dump() -> None:
    """Collect what the checks read, so that a cluster can be evaluated without reaching it.

    \b
      runup dump collect my-cluster
      runup preflight run --dump my-cluster
    """


@dump.command("collect")
@click.argument("name", metavar="DIR")
@click.option("--archive", is_flag=True, help="Write DIR.tar.gz instead of a folder.")
@click.option(
    "--redact",
    multiple=True,
    metavar="WORD",
    help="Replace WORD wherever it occurs (a domain, a customer's name); may be repeated.",
)
@click.option(
    "--with", "program", default="", metavar="PROGRAM", help="List by this `kubectl` or `oc`, with its login."
)
@click.option(
    "--whole-objects",
    is_flag=True,
    help="Write objects with all their fields, such as arguments, variables and annotations, which may hold passwords.",
)
@connection_options
@click.pass_context
def collect(
    ctx: click.Context, name: str, archive: bool, redact: tuple[str, ...], program: str, *, whole_objects: bool
) -> None:
    """Collect into DIR the kinds that checks read, and what became of each: complete, forbidden or absent.

    The cluster is only read. Secrets are never collected. Objects have only the fields that are known to hold no
    secrets, and those that runup reads. If a list is refused, its checks are Unknown.

    \b
      runup dump collect my-cluster
      runup dump collect my-cluster --archive --redact example.com
      runup dump collect my-cluster --with oc
    """
    from kubekit.kube.clock import SystemClock
    from runup.checks.catalogue import CHECKS
    from runup.cli.errors import CommandError
    from runup.facts import collect as collection
    from runup.facts.listers import ClientLister, ProgramLister, kinds_read_by
    from runup.facts.target_release import python_checks
    from runup.process.names import operator_namespace
    from runup.rehearse.decide import drain_inputs
    from runup.updatestatus.control.status_reads import READS

    if not all(redact):
        raise click.UsageError("--redact: the word is empty")
    if not Path(name).name or "\0" in name:
        raise click.UsageError(f"{name!r} cannot be the name of a new folder")
    folder = Path(name)
    collection.refuse_existing(folder.with_name(f"{folder.name}.tar.gz") if archive else folder)
    # What the checks read, `upgrade status`, and the simulation of drains with its forecast.
    further = (*READS, *((kind.resource, "") for kind in drain_inputs.KINDS))
    own_checks = tuple(python_checks())
    wanted_kinds = kinds_read_by((*CHECKS, *own_checks), operator_namespace(), further)
    connection = connection_of(ctx)
    if program:
        # The flags of kubectl that select the same cluster and user.
        selection = (("kubeconfig", connection.kubeconfig), ("context", connection.context), ("as", connection.as_user))
        words = [f"--{flag}={value}" for flag, value in selection if value]
        words += [f"--as-group={group}" for group in connection.as_group]
        lister = ProgramLister(program, tuple(words))
        collected, kubernetes = collection.collect_kinds(wanted_kinds, lister), lister.server_version()
        now = SystemClock().now()
    else:
        with connection.client("dump") as client:
            collected, kubernetes = (
                collection.collect_kinds(wanted_kinds, ClientLister(client)),
                ClientLister(client).server_version(),
            )
            now = client.now()
    of_cluster = next(kind for kind in collected if kind.name == "clusterversions.config.openshift.io")
    # Without one it is a cluster of Kubernetes alone, for which other checks are made.
    if not of_cluster.count and of_cluster.state not in (collection.COMPLETE, collection.ABSENT):
        problem = of_cluster.message
        raise CommandError(f"whether there is a ClusterVersion is not known, and nothing was written: {problem}")
    if not whole_objects:
        own_reads = (resource for check in own_checks for resource in check.reads)
        collected = collection.with_known_fields(collected, own_reads)
    redaction = collection.Redaction(redact)
    path = collection.write(collected, folder, now, redaction, archive=archive, kubernetes=kubernetes)
    # How much is complete, and what is missing and why.
    complete = sum(kind.state == collection.COMPLETE for kind in collected)
    objects = sum(kind.count for kind in collected)
    lines = [f"{path}: {count(objects, 'object')} of {count(len(collected), 'kind')}, {complete} of them complete."]
    if absent := sum(kind.state == collection.ABSENT for kind in collected):
        lines.append(f"The cluster does not have {count(absent, 'kind')} that checks read.")
    missing = [kind for kind in collected if kind.state not in (collection.COMPLETE, collection.ABSENT)]
    lines += [f"{kind.state}: {kind.name}: {kind.message}" for kind in sorted(missing, key=lambda kind: kind.state)]
    click.echo("\n".join([*lines, f"Check it: runup preflight run --dump {path}"]))
