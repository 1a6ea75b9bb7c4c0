"""The command `runup upgrade approve`: gives an approval that a run waits for, in the user's own name."""

from __future__ import annotations

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Command
from runup.cli.options import option


@click.command("approve", cls=Command)
@click.argument("run")
@option("--gate", metavar="NAME", required=True, help="The approval, as the policy names it.")
@option("--reason", metavar="TEXT", required=True, help="Why, for example a change number.")
@option("--until", metavar="TIME", default="", help="The approval ends then, such as 2026-12-24T22:00:00Z.")
@connection_options
@click.pass_context
def approve(ctx: click.Context, /, run: str, gate: str, reason: str, until: str) -> None:
    """Approve an update that waits for it, for the release image of the run only.

    \b
      runup upgrade approve 5.1.0-ff4b4c --gate cab --reason "change 4711"
      runup upgrade approve 5.1.0-ff4b4c --gate cab --reason "change 4711" --until 2026-12-24T22:00:00Z

    The server verifies that you may approve the run. `kubectl delete updateapproval NAME` withdraws the approval as
    long as the update has not begun.
    """
    from runup.cli.output import write
    from runup.rollout.control import policy_objects, run_changes

    with connection_of(ctx).client("upgrade approve") as client:
        found = policy_objects.run(client, run)
        said = run_changes.approve(client, found, gate, reason=reason, until=until)
    write(said)
