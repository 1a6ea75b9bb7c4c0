"""The command `cluster-version-operator`, entry point of a release image: a table of commands, imported when called.

The message about an unknown command is an interface: by it a managing operator recognises a target without preflights
(`TargetUnsupported`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from runup.cli.lazy import LazyGroup
from runup.cli.options import option
from runup.cli.output import printable_streams

PROGRAM = "cluster-version-operator"
COMMANDS: dict[str, str] = {
    "start": "runup.cli.operator.start_commands:start",
    "preflight": "runup.cli.operator.preflight_command:preflight",
    "update-status-controller": "runup.cli.operator.start_commands:update_status_controller",
    "update-policy-controller": "runup.cli.operator.start_commands:update_policy_controller",
    "update-extension": "runup.cli.operator.start_commands:update_extension",
    "fleet-update-controller": "runup.cli.operator.start_commands:fleet_update_controller",
    "kernel-module-preflight": "runup.cli.operator.start_commands:kernel_module_preflight",
    "report-status": "runup.cli.operator.report_status_command:report_status",
    "render": "runup.cli.operator.render_command:render",
    "image": "runup.cli.operator.render_command:image",
    "version": "runup.cli.operator.operator_version:version",
}
SUMMARIES: dict[str, str] = {
    "start": "Manage the cluster's version.",
    "preflight": "Check a cluster for an update to this release, changing nothing.",
    "update-status-controller": "Keep UpdateStatus up to date: how the update goes, what needs attention.",
    "update-policy-controller": "Start updates by policy, behind gates and in windows.",
    "update-extension": "Answer the hooks of Cluster API by the gates of update runs.",
    "fleet-update-controller": "Update the clusters of a hub, stage by stage.",
    "kernel-module-preflight": "Try whether kernel modules will load after the update.",
    "report-status": "Put how the update goes where an agent takes it to a hub.",
    "render": "Write what a new cluster starts with.",
    "image": "Print the pull spec of a component's image.",
    "version": "Print the version of this operator.",
}


class _Commands(LazyGroup):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command. Raises UnknownCommand if no command has this name."""
        if args[0] == "help":
            args = [*args[1:], "--help"]
        elif args[1:] == ["--version"]:
            args = ["version"]
        # Managing operators of other releases know this text: it is not click's, and has no hint.
        if self.get_command(ctx, args[0]) is None:
            raise UnknownCommand(args[0])
        return super().resolve_command(ctx, args)


class UnknownCommand(Exception):
    """The error that there is no such command."""


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    """Prints what `version` prints, and ends the program, if `wanted`."""
    if wanted and not ctx.resilient_parsing:
        from runup.cli.operator.operator_version import version

        ctx.invoke(version)
        ctx.exit()


@click.group(
    PROGRAM,
    cls=_Commands,
    places=COMMANDS,
    summaries=SUMMARIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version.")
def operator() -> None:
    """Keep a cluster at the release that its ClusterVersion asks for."""


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code. An error is one line on stderr; a bug in runup shows a traceback."""
    with printable_streams():
        from kubekit.error_types import RunupError
        from runup.cli.errors import describe

        arguments = list(sys.argv[1:] if args is None else args)
        try:
            result = operator.main(arguments, prog_name=PROGRAM, standalone_mode=False)
        except UnknownCommand as error:
            return _fail(f'error: unknown command "{error}" for "{PROGRAM}"')
        except RunupError as error:
            return _fail(f"error: {error.message}")
        except (click.Abort, KeyboardInterrupt):
            return 130
        except Exception as error:
            failure = describe(error)
            if failure is None:
                raise
            sys.stderr.write(failure.text)
            return failure.code
        return result if isinstance(result, int) else 0


def _fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1
