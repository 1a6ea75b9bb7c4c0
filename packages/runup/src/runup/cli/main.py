"""The command `runup`: the table of commands, and the place where every exception ends as text and an exit code.

A command returns or prints. This module imports click and nothing of ours that is heavy, since start-up time matters:
a command's module is imported when it is called (`tests/cli/startup/test_startup.py` lists what every command may
import).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from runup.cli.connection import connection_options
from runup.cli.lazy import LazyGroup
from runup.cli.options import option, show_version
from runup.cli.output import printable_streams
from runup.cli.progress import be_quiet, showing_steps

COMMANDS: dict[str, str] = {
    "upgrade": "runup.cli.clusterversion.command:upgrade",
    "preflight": "runup.cli.preflight.command:preflight",
    "fleet": "runup.cli.fleet.command:fleet",
    "serve": "runup.cli.console.command:serve",
    "rehearse": "runup.cli.rehearse.command:rehearse",
    "dump": "runup.cli.preflight.dump_command:dump",
    "kmod": "runup.cli.kernelmodules.command:kmod",
    "check": "runup.cli.clusterversion.check_command:check",
    "install": "runup.cli.install.command:install",
    "uninstall": "runup.cli.install.command:uninstall",
    "graph": "runup.cli.advice.graph_command:graph",
    "checks": "runup.cli.checks.command:checks",
    "release": "runup.cli.release.command:release",
    "sandbox": "runup.cli.sandbox.command:sandbox",
    "demo": "runup.cli.sandbox.demo:demo",
    "adm": "runup.cli.adm:adm",
    "version": "runup.cli.version_command:version",
    "completion": "runup.cli.completion:completion",
}
SUMMARIES: dict[str, str] = {
    "upgrade": "Check, accept and start updates of the cluster.",
    "preflight": "Run a preflight, or look at past ones.",
    "fleet": "Preflights, updates and recommendations of many clusters at once.",
    "serve": "Show clusters in the browser: risks, updates, ways and history.",
    "rehearse": "Rehearse an update on a copy of the cluster.",
    "dump": "Collect what the checks read, to evaluate a cluster without reaching it.",
    "kmod": "Look whether kernel modules will load after an update.",
    "check": "Look whether this cluster can be preflighted, and by you.",
    "install": "Install a component on the cluster, or bring it to this version.",
    "uninstall": "Remove what `runup install` has installed.",
    "graph": "Make, serve and look into the graph of an update service.",
    "checks": "Write, test and list the checks of a release.",
    "release": "Make and inspect release images.",
    "sandbox": "A cluster on this machine to try things on.",
    "demo": "Watch a 5.0.0 cluster be checked by release 5.2.0.",
    "adm": "`adm upgrade` is the same as `upgrade`, for fingers used to oc.",
    "version": "Print the version.",
    "completion": "Print a completion script for a shell.",
}

_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_NO_THREAD = "can't start new thread"  # CPython's RuntimeError where a thread gets no stack


@click.command(
    "runup",
    cls=LazyGroup,
    places=COMMANDS,
    summaries=SUMMARIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    invoke_without_command=True,
)
@option("-q", "--quiet", is_flag=True, help="No progress of long commands on the terminal.")
@option("--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Print the version.")
@connection_options
@click.pass_context
def root(ctx: click.Context, *, quiet: bool) -> None:
    """Safe cluster updates: the release that you want to go to checks the cluster that you have.

    \b
      runup demo                                         see it with no cluster at all
      runup check                                        whether your cluster can be preflighted
      runup upgrade --mode=preflight --to=5.2.0 --wait   let 5.2.0 check your cluster
    """
    if quiet:
        be_quiet()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None, prog: str = "runup") -> int:
    """Runs the command line `argv` and returns its exit code; only a bug of ours ends in a traceback."""
    with printable_streams(), showing_steps():
        try:
            # Runs one command line and returns the exit code; errors become texts on stderr.
            stdout = sys.stdout
            try:
                arguments = list(sys.argv[1:] if argv is None else argv)
                variable = f"_{prog.upper().replace(' ', '_').replace('-', '_')}_COMPLETE"
                # Without standalone mode click raises its errors, and this module words them as oc does.
                result = root.main(arguments, prog_name=prog, complete_var=variable, standalone_mode=False)
                sys.stdout.flush()
            except SystemExit as stop:
                if sys.stdout is not stdout:  # click replaces stdout when the reader of a pipe has left
                    return _reader_left()
                return stop.code if isinstance(stop.code, int) else 1
            except (KeyboardInterrupt, click.Abort):
                return _INTERRUPTED
            except OSError as error:
                if error.errno == errno.EPIPE:
                    return _reader_left()
                return _report(error)
            except Exception as error:  # noqa: BLE001 (an unknown exception is raised again)
                # Python 3.11 raises RuntimeError for an interrupt while a class is created.
                return _INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else _report(error)
            return result if isinstance(result, int) else 0
        except Exception as error:  # noqa: BLE001 (a bug of ours)
            if isinstance(error, MemoryError) or str(error) == _NO_THREAD:
                # A traceback would need memory: it reads and parses the source.
                sys.stderr.write(
                    "error: there is not enough memory for this command; give it more, or let it read less\n"
                )
                return 1
            import traceback

            # Written here and not by the interpreter: its message may quote the cluster.
            sys.stderr.write(traceback.format_exc())
            return 1


def _report(error: Exception) -> int:
    """Writes the text of an error to stderr and returns the exit code; raises `error` again if it is a bug."""
    from runup.cli.errors import Failure, describe

    failure = describe(error)
    if failure is None:
        raise error
    assert isinstance(failure, Failure)
    try:
        sys.stdout.flush()
    except OSError:  # the rest of the output cannot be written, and Python would try again at exit
        _drop_output()
    sys.stderr.write(failure.text)
    return failure.code


def _reader_left() -> int:
    """Returns 141, the shell's code after SIGPIPE, and prints nothing: `runup ... | head` is not an error."""
    _drop_output()
    return 141


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
