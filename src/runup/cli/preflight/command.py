"""`runup preflight history|compare|explain`: what preflights found, now and before.

Reads ClusterVersion and ConfigMap `preflight-history`; what is printed is made by `render.history` and
`render.explain` out of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group
from runup.cli.upgrade import names

if TYPE_CHECKING:
    from runup.api.config_v1 import ClusterVersion
    from runup.domain.preflight.history import History

_output = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The machine form.")


@click.group("preflight", cls=Group)
@connection_options
def preflight() -> None:
    """Past preflights: history, comparison, one risk in detail.

    A preflight is asked for with `runup upgrade --mode=preflight --to=VERSION`.

    \b
      runup preflight history
      runup preflight compare 5.1.0 5.2.0
      runup preflight explain DualStackIncompatible
    """


def _read(ctx: click.Context) -> tuple[ClusterVersion, History]:
    from runup.cli import cluster as clusters
    from runup.cli.cluster import namespace

    with connection_of(ctx).client() as client:
        cluster = clusters.read(client)
        return cluster, clusters.read_history(client, namespace())


def _print(text: str, data: object, output: str | None) -> None:
    from runup.cli.cluster import write
    from runup.cli.render.text import machine

    write([("out", machine(data, output) if output else text)])


@preflight.command("history")
@_output
@connection_options
@click.pass_context
def history(ctx: click.Context, output: str | None) -> None:
    """List the reports that the cluster keeps: the newest of each target, five at most.

    \b
      runup preflight history
      runup preflight history -o json
    """
    from runup.cli.findings import accepted_names, complete
    from runup.cli.render import history as rendered

    cluster, stored = _read(ctx)
    found = complete(cluster, stored)
    _print(rendered.history(found, accepted_names(cluster)), rendered.history_data(found), output)


@preflight.command("compare")
@click.argument("before", metavar="A", shell_complete=names.versions)
@click.argument("after", metavar="B", shell_complete=names.versions)
@_output
@connection_options
@click.pass_context
def compare(ctx: click.Context, before: str, after: str, output: str | None) -> None:
    """Compare what two targets found on this cluster: risks that are new in B, gone from A, and in both.

    A and B are versions, or preflight IDs as `history` lists them.

    \b
      runup preflight compare 5.1.0 5.2.0
      runup preflight compare 5.1.0 5.2.0 -o json
    """
    from runup.cli.findings import complete
    from runup.cli.render import history as rendered
    from runup.kube.clock import SystemClock

    cluster, stored = _read(ctx)
    found = complete(cluster, stored)
    source = cluster.status.desired.version
    compared = rendered.compare(rendered.pick(found, before, source), rendered.pick(found, after, source))
    _print(rendered.comparison(compared, now=SystemClock().now()), rendered.comparison_data(compared), output)


@preflight.command("explain")
@click.argument("risk", shell_complete=names.risks)
@_output
@connection_options
@click.pass_context
def explain(ctx: click.Context, risk: str, output: str | None) -> None:
    """Everything that is known of one risk: what it is about, for which targets, since when, and what helps.

    Where no cluster answers, the page about the risk is printed all the same.

    \b
      runup preflight explain DualStackIncompatible
      runup preflight explain MachineConfigPoolPaused-worker -o json
    """
    from runup import pages
    from runup.api.codec import DecodeError
    from runup.cli.errors import CommandError, message_of
    from runup.cli.render import explain as rendered
    from runup.kube.errors import KubeError

    page = pages.find(risk)
    try:
        cluster, found = _read(ctx)
    except (KubeError, CommandError, DecodeError) as error:
        if not page:
            # What the cluster might know of that name nobody can tell: the error says why.
            raise
        known = rendered.Explanation(risk, (), page, not_asked=message_of(error).strip().splitlines()[0])
    else:
        known = rendered.explain(cluster, found, risk, page, pages.names())
    _print(rendered.explanation(known), rendered.explanation_data(known), output)
