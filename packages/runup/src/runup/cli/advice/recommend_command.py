"""The command `runup upgrade recommend`: the updates of the cluster, and the issues of each. It changes nothing.

The text is oc's. Findings of preflights and acceptance records follow it, if there are any.
"""

from __future__ import annotations

import sys

import click

from kubekit.lang.gotext import quote_go
from kubekit.lang.oc_version import parse_as_oc
from runup.advice.control import recommend_input
from runup.api import clusterversion_json as facts
from runup.cli import static_completion
from runup.cli.advice.recommend_additions import additional_output
from runup.cli.advice.recommend_text import RecommendFlags, advise, as_data
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option, typed_version
from runup.cli.render.text import machine


@click.command("recommend", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option("--show-outdated-releases", is_flag=True, help="List every update, not the newest two of each minor.")
@option(
    "--version", "target", default="", metavar="VERSION", callback=typed_version, help="Everything about one update."
)
@option("--quiet", is_flag=True, help="With --version: say only what was not accepted.")
@option("--accept", multiple=True, metavar="NAME[,NAME...]", help="Issues to put up with; may be repeated.")
@option("--dump", metavar="DIR", shell_complete=static_completion.folders, help="Read a dump instead of a cluster.")
@option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@option("--mock-clusterversion", metavar="FILE", hidden=True)
@connection_options
@click.pass_context
def recommend(
    ctx: click.Context,
    words: tuple[str, ...],
    show_outdated_releases: bool,
    target: str,
    quiet: bool,
    accept: tuple[str, ...],
    dump: str | None,
    output: str | None,
    mock_clusterversion: str | None,
) -> None:
    """Displays cluster update recommendations.

    \b
      runup upgrade recommend                              the newest updates of each minor version
      runup upgrade recommend --version 5.2.0              one update, exit code 1 where an issue is not accepted
      runup upgrade recommend --version 5.2.0 --accept A   the same, putting up with A
      runup upgrade recommend --dump must-gather.local.1   of a must-gather
    """
    if words:
        raise UsageProblem(f"unknown command {quote_go(' '.join(words))}", ctx)
    if dump and mock_clusterversion:
        raise CommandError("--dump and --mock-clusterversion both name files to read; give one of them")
    connection = connection_of(ctx)
    names = frozenset(name for part in accept for name in part.split(","))
    inputs = recommend_input.read(
        connection,
        dump=dump,
        mock=mock_clusterversion,
        reject_bad_flags=lambda: reject_bad_flags(target, quiet=quiet, outdated=show_outdated_releases),
    )
    flags = RecommendFlags(target, show_outdated_releases, quiet, names)
    cluster_facts = facts.read(inputs.cluster)
    advice = advise(cluster_facts, inputs.checks, inputs.problem, flags)
    more = additional_output(inputs.cluster, inputs.config_maps, flags.version, inputs.now, lapse=inputs.lapse)
    if output and not quiet:
        sys.stdout.write(machine(as_data(cluster_facts, inputs, flags=flags, advice=advice, more=more), output))
    elif not quiet:
        for stream, part in (*advice.output, *more.output):
            file = sys.stdout if stream == "out" else sys.stderr
            file.write(part)
            file.flush()
    if advice.error:
        raise CommandError(advice.error)


def reject_bad_flags(target: str, *, quiet: bool, outdated: bool) -> None:
    """Raises CommandError for flags that contradict each other; oc does so only once it knows where to read."""
    if not target and quiet:
        raise CommandError("--quiet can only be set when --version is set")
    if target and outdated:
        raise CommandError("when --version is set, --show-outdated-releases is unnecessary")
    if target:
        try:
            parse_as_oc(target)
        except ValueError as error:
            raise CommandError(f"cannot parse SemVer target {quote_go(target)}: {error}") from error
