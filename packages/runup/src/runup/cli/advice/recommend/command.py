"""The command `runup upgrade recommend`: the updates of the cluster, and the issues of each. It changes nothing.

The text is oc's. Findings of preflights and acceptance records follow it, if there are any.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError, UsageProblem
from runup.cli.lazy import Command
from runup.cli.options import option
from runup.process.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from runup.cli.advice.recommend.recommend_input import RecommendInput
    from runup.cli.advice.recommend.recommend_text import RecommendFlags


@click.command("recommend", cls=Command)
@click.argument("words", nargs=-1, metavar="")
@option("--show-outdated-releases", is_flag=True, help="List every update, not the newest two of each minor.")
@option("--version", "target", default="", metavar="VERSION", help="Everything about one update.")
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
        from kubekit.lang.gotext import quote_go

        raise UsageProblem(f"unknown command {quote_go(' '.join(words))}", ctx)
    if dump and mock_clusterversion:
        raise CommandError("--dump and --mock-clusterversion both name files to read; give one of them")
    connection = connection_of(ctx)
    names = frozenset(name for part in accept for name in part.split(","))
    inputs = read_input(
        connection, dump, mock_clusterversion, lambda: reject_bad_flags(target, quiet, show_outdated_releases)
    )
    from runup.cli.advice.recommend.recommend_text import RecommendFlags

    _print(inputs, RecommendFlags(target, show_outdated_releases, quiet, names), output)


def reject_bad_flags(target: str, quiet: bool, outdated: bool) -> None:
    """Raises CommandError for flags that contradict each other; oc does so only once it knows where to read."""
    if not target and quiet:
        raise CommandError("--quiet can only be set when --version is set")
    if target and outdated:
        raise CommandError("when --version is set, --show-outdated-releases is unnecessary")
    if target:
        from runup.cli.versions import check_version

        try:
            check_version(target)
        except ValueError as error:
            from kubekit.lang.gotext import quote_go

            raise CommandError(f"cannot parse SemVer target {quote_go(target)}: {error}") from error


def read_input(
    connection: Connection, dump: str | None, mock: str | None, reject_bad_flags: Callable[[], None]
) -> RecommendInput:
    """Reads the input from the cluster, or from a dump or a mock file in its place. Raises what reading raises.

    `reject_bad_flags` is called once it is clear where to read, and raises CommandError.
    """
    from runup.advice.decide import alert_conditions
    from runup.cli.advice.recommend.recommend_input import RecommendInput
    from runup.dump import clusterversion_files

    if not dump and not mock:
        from runup.cli.advice.recommend import live_reads

        return live_reads.read(connection, reject_bad_flags)
    collected = (
        clusterversion_files.mock(mock) if mock else clusterversion_files.dump(str(dump), alerts=True, config_maps=True)
    )
    reject_bad_flags()
    if collected.problem:
        return RecommendInput(collected.cluster, (), collected.problem, collected.config_maps)
    if collected.alerts is not None:
        return RecommendInput(
            collected.cluster,
            alert_conditions.checks(alert_conditions.alerts_in_answer(collected.alerts)),
            "",
            collected.config_maps,
        )
    checks = alert_conditions.no_data(collected.alerts_path) if mock else alert_conditions.not_collected(str(dump))
    return RecommendInput(collected.cluster, checks, "", collected.config_maps)


def _print(recommendation: RecommendInput, flags: RecommendFlags, output: str | None) -> None:
    """Prints the advice as text, or as `output`; nothing with --quiet."""
    from runup.api import clusterversion_json as facts
    from runup.cli.advice.recommend import additions_to_oc, recommend_text

    cluster_facts = facts.read(recommendation.cluster)
    advice = recommend_text.advise(cluster_facts, recommendation.checks, recommendation.problem, flags)
    more = additions_to_oc.additional_output(
        recommendation.cluster, recommendation.config_maps, flags.version, recommendation.now
    )
    if output:
        from runup.cli.advice.recommend.machine import as_data
        from runup.cli.render.text import machine

        if not flags.quiet:
            sys.stdout.write(
                machine(
                    as_data(cluster_facts, recommendation.checks, recommendation.problem, flags, advice, more), output
                )
            )
    elif not flags.quiet:
        for stream, part in (*advice.output, *more.output):
            target = sys.stdout if stream == "out" else sys.stderr
            target.write(part)
            target.flush()
    if advice.error:
        raise CommandError(advice.error)
