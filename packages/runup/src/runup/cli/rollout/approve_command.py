"""The command `runup upgrade approve`: gives an approval that a run waits for, in the user's own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.options import option

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.update_policy_v1alpha1 import UpdateApprovalSpec


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
    from runup.cli.render.text import out
    from runup.rollout.control import policy_objects
    from runup.rollout.decide.approvals import new_approval

    with connection_of(ctx).client("upgrade approve") as client:
        found = policy_objects.run(client, run)
        spec, name = create(
            client,
            gate=gate,
            reason=reason,
            until=until,
            complete=lambda wanted: new_approval(found, wanted, client.now()),
        )
    text = f"Approved {gate} of run {run} for {found.spec.target.version} as {spec.approved_by}"
    write([out(f"{text} (UpdateApproval {name})\n")])


def create(
    client: SyncClient,
    *,
    gate: str,
    reason: str,
    until: str,
    complete: Callable[[UpdateApprovalSpec], UpdateApprovalSpec],
) -> tuple[UpdateApprovalSpec, str]:
    """Creates an approval in the name of the client's user, and returns it with its name.

    `complete` adds what is approved. Raises CommandError if no approval counts on this cluster, and what `complete`
    raises.
    """
    from kubekit.kube.api_errors import Forbidden
    from runup.advice.control.acceptance_records import user_name
    from runup.api.update_policy_v1alpha1 import UpdateApprovalSpec
    from runup.cli.output import write
    from runup.cli.render.text import err
    from runup.cli.rollout.calendar_command import parse_moment
    from runup.rollout.control import policy_objects

    not_after = parse_moment(until, "--until") if until else None
    if not reason.strip():
        raise CommandError("--reason must not be empty")
    spec = complete(
        UpdateApprovalSpec(
            gate=gate,
            approved_by=user_name(client),
            image_digests=(),
            reason=reason.strip(),
            not_after=not_after,
        )
    )
    try:
        if unverified := policy_objects.why_unverified(client):
            way_out = "`runup install update-policy` installs both"
            raise CommandError(f"no approval counts on this cluster: {unverified}; {way_out}")
    except Forbidden as error:
        write([err(f"warning: could not determine whether approvals count on this cluster: {error.message}\n")])
    return spec, policy_objects.create_approval(client, spec)
