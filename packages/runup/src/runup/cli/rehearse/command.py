"""Defines the command `runup rehearse`: its options, and how they may be combined.

A rehearsal applies a release to a copy of the cluster's objects, on a separate API server, and reports what became
of every object. `rehearsal_command` does that.
"""

from __future__ import annotations

from typing import Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import LazyGroup
from runup.cli.options import version_option
from runup.cli.preflight.outputs import PREFLIGHT_FORMS
from runup.cli.release.shared import REGISTRY_NAMES, access, registry_options, run_guarded

# The subcommands by name: module and command, and their line in `--help`.
SUBCOMMANDS = {"drain": "runup.cli.rehearse.drain_command:drain"}
SUMMARIES = {"drain": "Simulate the drains of an update: what blocks, what is down, how long it takes."}


@click.group(
    "rehearse",
    cls=LazyGroup,
    places=SUBCOMMANDS,
    summaries=SUMMARIES,
    invoke_without_command=True,
    no_args_is_help=True,
)
@version_option("--to", help="Target version, one that the cluster is offered.")
@click.option("--to-image", default="", metavar="IMAGE", help="The target's release image, oci:DIR or in a registry.")
@click.option("--release-dir", default="", metavar="DIR", help="A folder with what the release image has at its root.")
@click.option(
    "--to-kubernetes",
    default="",
    metavar="MINOR",
    help="A version of Kubernetes, such as 1.36, for a cluster without releases.",
)
@click.option("--dump", default="", metavar="DIR", help="Copy a must-gather or another dump instead of the cluster.")
@click.option(
    "--operators",
    "declared",
    multiple=True,
    metavar="stuck:NAME",
    help="Let this ClusterOperator report nothing new, to see what waits for it; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice([name for name in PREFLIGHT_FORMS if name != "plan"]),
    help="The output format; text if it is left out.",
)
@click.option("-v", "--verbose", is_flag=True, help="The whole plan of changes, every risk and every check.")
@click.option(
    "--fail-on",
    type=click.Choice(["unknown", "info", "warning", "critical", "never"]),
    default="unknown",
    show_default=True,
    help="Findings that make the exit code 2 or 3: everything that is open (unknown), or only risks that apply and are "
    "at least as severe as this.",
)
@click.option("--suppressions", default="", metavar="FILE", help="Risks to live with: globs, with reason and last day.")
@click.option(
    "--timeout",
    default=600,
    show_default=True,
    type=click.IntRange(1, 86400),
    help="Seconds that applying the release may take; what is not tried then is Unknown.",
)
@click.option(
    "--max-objects",
    default=100_000,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Objects that are copied at most; some 150 MiB of memory for each 10,000.",
)
@click.option(
    "--server",
    type=click.Choice(["own", "real"]),
    default="own",
    show_default=True,
    help="The API server of the copy: runup's own, or a real kube-apiserver with etcd, as the target has.",
)
@click.option(
    "--server-binaries",
    default="",
    metavar="DIR",
    help="The folder that has kube-apiserver and etcd, for --server real; the folders of PATH if it is left out.",
)
@registry_options
@connection_options
@click.pass_context
def rehearse(ctx: click.Context, /, **given: Any) -> int:
    """Rehearse an update: apply the release to a copy of the cluster, and report what becomes of every object.

    The cluster is only read, by get and list. The copy holds the cluster's objects on a separate API server, in a
    temporary folder that is removed in the end. No component runs there; what the copy cannot know is Unknown.

    Exit codes as for `preflight run`: 0 nothing in the way, 2 risks apply, 3 something is unknown, 1 could not
    be rehearsed.

    \b
      runup rehearse --dump must-gather --to-image registry.example/release:5.2.0
      runup rehearse --to 5.2.0 --operators stuck:network
      runup rehearse --dump my-cluster --release-dir ./release -o json
      runup rehearse --to-kubernetes 1.36
      runup rehearse --to 5.2.0 --server real --server-binaries ./kubernetes
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from runup.cli.rehearse import rehearsal_command as runs

    registry = {name: given.pop(name) for name in REGISTRY_NAMES}
    flags = runs.Flags(**given)
    targets = [name for name, value in (("--to-image", flags.to_image), ("--release-dir", flags.release_dir)) if value]
    if len(targets) > 1:
        raise click.UsageError("--to-image and --release-dir both name the release; give one of them", ctx)
    if flags.to_kubernetes and (flags.to or targets or flags.declared):
        raise click.UsageError("--to-kubernetes is about a cluster without releases; leave out the other targets", ctx)
    if not (flags.to_kubernetes or flags.to or targets):
        raise click.UsageError("name the target: --to, --to-image, --release-dir or --to-kubernetes", ctx)
    if flags.server_binaries and flags.server != "real":
        raise click.UsageError("--server-binaries names the programs of --server real; give both", ctx)
    return run_guarded(lambda: runs.run(connection_of(ctx), flags, lambda: access(**registry)))
