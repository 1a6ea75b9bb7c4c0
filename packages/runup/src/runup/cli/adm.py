"""`runup adm upgrade`: the commands of `runup upgrade` under the name that `oc adm` uses."""

from __future__ import annotations

import click

from runup.cli.connection import connection_options
from runup.cli.lazy import LazyGroup


@click.command(
    "adm",
    cls=LazyGroup,
    places={"upgrade": "runup.cli.clusterversion.command:upgrade"},
    summaries={"upgrade": "Check, accept and start updates of the cluster."},
    invoke_without_command=True,
)
@connection_options
@click.pass_context
def adm(ctx: click.Context) -> None:
    """Cluster administration as `oc adm` spells it; `runup adm upgrade` is `runup upgrade`.

    \b
      runup adm upgrade
      runup adm upgrade accept NAME
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
