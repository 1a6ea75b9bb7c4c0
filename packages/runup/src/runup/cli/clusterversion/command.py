"""`runup upgrade`: shows the cluster's updates, starts or takes back one, or lets the target check the cluster first.

The texts without `--mode` are those of `oc adm upgrade`.
"""

from __future__ import annotations

from typing import Any

import click

from runup.cli import cluster_completion, static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import LazyGroup
from runup.cli.options import option, typed_version, with_options

_OC_FLAGS = (
    option(
        "--to",
        metavar="VERSION",
        default="",
        callback=typed_version,
        shell_complete=cluster_completion.versions,
        help="The version to go to.",
    ),
    option("--to-image", metavar="IMAGE", default="", help="The release image to go to, by digest."),
    option("--to-latest", is_flag=True, help="Go to the newest version that is offered."),
    option("--to-multi-arch", is_flag=True, help="Move the current version to its multi-architecture image."),
    option("--clear", is_flag=True, help="Cancel a requested update that has not begun, or a preflight."),
    option("--force", is_flag=True, help="Waive signature and preconditions in the cluster. Dangerous."),
    option("--allow-explicit-upgrade", is_flag=True, help="Accept an --to-image that no list has."),
    option("--allow-upgrade-with-warnings", is_flag=True, help="Continue although the client sees a problem."),
    option("--include-not-recommended", is_flag=True, help="List updates with known issues too."),
    option("--allow-not-recommended", is_flag=True, help="Accept a target that is not recommended."),
)
_OUR_FLAGS = (
    option(
        "--mode",
        metavar="preflight",
        default=None,
        shell_complete=static_completion.complete_from(lambda _: ("preflight",)),
        help="preflight: check the target, change nothing.",
    ),
    option("--preflight", is_flag=True, help="Short for --mode=preflight."),
    option("--wait", is_flag=True, help="Wait for the preflight; exit 0 none, 2 risks, 3 unknown, 1 failed."),
    option("--timeout", metavar="DURATION", default=None, help="How long --wait waits (default 15m)."),
    option("--clear-preflight", is_flag=True, help="End the preflight; accepted risks stay accepted."),
    option("--dump", metavar="DIR", shell_complete=static_completion.folders, help="Show the updates of a dump."),
    option(
        "-o",
        "--output",
        type=click.Choice(["wide", "json", "yaml", "html"]),
        help="More columns, the machine form, or a preflight as one web page.",
    ),
)


_OF_CONNECTION = ("kubeconfig", "context", "as_user", "as_group")
_OF_SHOWING = (*_OF_CONNECTION, "dump", "output", "include_not_recommended")
_IN_SPITE_OF = ("allow_not_recommended", "allow_explicit_upgrade", "allow_upgrade_with_warnings", "force")


@click.command(
    "upgrade",
    cls=LazyGroup,
    places={
        "recommend": "runup.cli.advice.recommend_command:recommend",
        "channel": "runup.cli.advice.channel:channel",
        "accept": "runup.cli.advice.accept:accept",
        "rollback": "runup.cli.clusterversion.rollback:rollback",
        # A forecast simulates drains: it stands above all other commands.
        "forecast": "runup.cli.rehearse.forecast_command:forecast",
        "status": "runup.cli.updatestatus.command:status",
        "calendar": "runup.cli.rollout.calendar_command:calendar",
        "approve": "runup.cli.rollout.approve_command:approve",
        "gate": "runup.cli.rollout.gate_command:gate",
        "policy": "runup.cli.rollout.policy_command:policy",
        "runs": "runup.cli.rollout.runs_command:runs",
        "run": "runup.cli.rollout.runs_command:control_run",
    },
    summaries={
        "recommend": "Displays cluster update recommendations.",
        "channel": "Set or clear the update channel",
        "rollback": "Rollback the cluster to the previous release.",
        "accept": "Accept risks exposed to conditional updates.",
        "forecast": "How long an update takes, and whether it fits into a window.",
        "status": "Display the status of the current cluster version update or multi-arch migration",
        "calendar": "Show when the windows of update calendars open.",
        "approve": "Approve an update that waits for it.",
        "gate": "Evaluate the gates of an update policy or run.",
        "policy": "Explain what the update policy will do, pause it, or acknowledge a failed run.",
        "runs": "Show update runs, and the gates that keep them from starting.",
        "run": "Hold, resume, abort or skip an update run.",
    },
    sections=(
        ("Check first", ("mode", "preflight", "wait", "timeout", "clear_preflight")),
        ("Update", ("to", "to_image", "to_latest", "to_multi_arch", "clear")),
        ("Continue despite", _IN_SPITE_OF),
        ("Show", ("include_not_recommended", "dump", "output")),
    ),
    invoke_without_command=True,
)
@with_options(_OC_FLAGS + _OUR_FLAGS)
@connection_options
@click.pass_context
def upgrade(
    ctx: click.Context,
    /,
    mode: str | None,
    preflight: bool,
    wait: bool,
    timeout: str | None,
    clear_preflight: bool,
    dump: str | None,
    output: str | None,
    **flags: Any,
) -> int | None:
    """Show the cluster's updates; check, start or take back one.

    \b
      runup upgrade                                        what is offered
      runup upgrade --mode=preflight --to=5.2.0 --wait     let 5.2.0 check this cluster
      runup upgrade accept NAME                            accept a risk by name
      runup upgrade --to=5.2.0                             start the update
      runup upgrade --clear-preflight                      end the check
    """
    if ctx.invoked_subcommand is not None:
        # `upgrade --to=X accept Y` would silently ignore the flags before the subcommand.
        for param in ctx.command.params:
            if _is_given(ctx, param) and param.name not in _OF_CONNECTION:
                raise CommandError(f"{param.opts[-1]} cannot be used with `{ctx.invoked_subcommand}`")
        return None
    # The overview is read from plain JSON, which spares the imports of everything else.
    only_shows = not any(_is_given(ctx, param) for param in ctx.command.params if param.name not in _OF_SHOWING)
    if dump is not None or (only_shows and output != "html"):
        from runup.cli.clusterversion import show

        options = show.ShowOptions(flags["include_not_recommended"], output)
        if dump is None:
            show.show_live_cluster(connection_of(ctx), options)
        else:
            for param in ctx.command.params:
                # A dump can only be shown.
                if param.name not in ("dump", "output", "include_not_recommended") and _is_given(ctx, param):
                    raise CommandError(
                        f"{param.opts[-1]} needs a cluster, and a dump is not a cluster; leave out one of them"
                    )
            show.show_dump(dump, options)
        return None
    from runup.cli.clusterversion.actions import UpgradeRequest, run
    from runup.clusterversion.decide.upgrade_target import Flags

    upgrade_flags = Flags(**flags)
    # An unknown mode must not fall through to an update.
    if mode is not None and mode.lower() != "preflight":
        raise CommandError(f'--mode must be "preflight", not "{mode}"; leave it out to start the update itself')
    request = UpgradeRequest(
        flags=upgrade_flags,
        preflight=preflight or mode is not None,
        wait=wait,
        timeout=timeout,
        clear_preflight=clear_preflight,
        output=output,
    )
    return run(request, connection_of(ctx))


def _is_given(ctx: click.Context, param: click.Parameter) -> bool:
    # A default or an environment variable was not typed, so it contradicts nothing.
    source = ctx.get_parameter_source(param.name) if param.name is not None else None
    return source is click.core.ParameterSource.COMMANDLINE
