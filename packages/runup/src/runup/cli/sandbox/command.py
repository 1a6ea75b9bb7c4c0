"""Defines `runup sandbox`: a cluster on this machine, to try things on or to import a dump into."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runup.cli import static_completion
from runup.cli.lazy import Group

if TYPE_CHECKING:
    from runup.sandbox.processes.lifecycle import Progress
    from runup.sandbox.setup.settings import Ready

DATA = click.option(
    "--data",
    metavar="DIR",
    shell_complete=static_completion.folders,
    help="The sandbox's folder (default: ~/.local/state/runup/sandbox).",
)
OUTPUT = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
_LEFT_OUT_SHOWN = 5
RUNNERS = ["runc", "bubblewrap", "process"]


def _scenarios(_: click.Context) -> Iterable[str]:
    from runup.sandbox.scenario import folder

    return folder.names()


# What kind, minikube and k3d call them; what `reset` removes is recreated.
_ELSEWHERE = dict.fromkeys(("create", "up", "run"), "start") | dict.fromkeys(
    ("delete", "down", "rm", "remove", "destroy"), "stop"
)


@click.group("sandbox", cls=Group, suggest_for=_ELSEWHERE, context_settings={"help_option_names": ["-h", "--help"]})
def sandbox() -> None:
    """A cluster on this machine to try things on.

    \b
      runup sandbox start
      runup sandbox start --scenario clean
      runup sandbox stop
    """


@sandbox.command()
@click.option(
    "--scenario",
    default="",
    metavar="NAME|DIR",
    shell_complete=static_completion.complete_from(_scenarios),
    help="A name that `runup sandbox list` shows, or a folder with a scenario.yaml.",
)
@click.option(
    "--import",
    "source",
    default="",
    metavar="PATH",
    shell_complete=static_completion.files,
    help="Start from the dump of a cluster: a folder, or a tar archive.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the API server (default: a free one).")
@click.option("--runner", type=click.Choice(RUNNERS), envvar="RUNUP_RUNNER", help="How containers run.")
@DATA
def start(scenario: str, source: str, port: int | None, runner: str | None, data: str | None) -> int:
    """Start it, and say how to use it.

    \b
      runup sandbox start --scenario skip-level
      runup sandbox start --import must-gather.local.123
    """
    from kubekit.kube.clock import SystemClock
    from runup.sandbox.processes import lifecycle
    from runup.sandbox.scenario import folder as scenarios
    from runup.sandbox.setup.settings import Settings

    if scenario and source:
        raise click.UsageError("--scenario and --import exclude each other")
    requested = Settings(
        scenario=scenarios.absolute(scenario),
        source=str(Path(source).expanduser().absolute()) if source else "",
        runner=runner or "",
        api_port=port or 0,
    )
    folder = folder_of(data)

    return run_guarded(lambda: print_start(folder, lifecycle.start(folder, requested, SystemClock())))


@sandbox.command()
@DATA
def stop(data: str | None) -> int:
    """Stop the sandbox; its content stays for the next start.

    \b
      runup sandbox stop
      runup sandbox stop --data DIR
    """
    from kubekit.kube.clock import SystemClock
    from runup.sandbox.processes import lifecycle

    def run() -> int:
        folder = folder_of(data)
        ended = lifecycle.stop(folder, SystemClock())
        click.echo("stopped" if ended else f"no sandbox runs in {folder}")
        return 0

    return run_guarded(run)


@sandbox.command()
@DATA
def reset(data: str | None) -> int:
    """Back to the scenario's start: end it, remove its folder, start it again with the same settings.

    \b
      runup sandbox reset
      runup sandbox reset --data DIR
    """
    from kubekit.kube.clock import SystemClock
    from runup.sandbox.processes import lifecycle

    folder = folder_of(data)
    return run_guarded(lambda: print_start(folder, lifecycle.reset(folder, SystemClock())))


@sandbox.command()
@OUTPUT
@DATA
def status(output: str | None, data: str | None) -> int:
    """Shows the running parts, their addresses, and the missing isolation. Exit code 1 when it does not run.

    \b
      runup sandbox status
      runup sandbox status -o json
    """
    from runup.sandbox.processes import lifecycle

    def run() -> int:
        folder = folder_of(data)
        pid, chosen, ready = lifecycle.state(folder)
        if output:
            from kubekit.api import codec
            from runup.cli.render.text import machine

            document: dict[str, Any] = {"running": bool(pid), "data": str(folder)}
            document |= {"settings": codec.to_dict(chosen)} if chosen else {}
            document |= {"cluster": codec.to_dict(ready)} if ready else {}
            click.echo(machine(document, output), nl=False)
        elif not pid:
            click.echo(f"no sandbox runs in {folder}")
        else:
            click.echo(f"running (process {pid})")
            click.echo(how_to_use(folder, ready) if ready else "starting")
        return 0 if pid else 1

    return run_guarded(run)


@sandbox.command("list")
def list_() -> int:
    """The scenarios.

    \b
      runup sandbox list
      runup sandbox start --scenario NAME
    """
    from runup.cli.output import screen_of, write
    from runup.cli.render import table
    from runup.sandbox.scenario import folder as scenarios

    def run() -> int:
        rows = [table.Row((name, scenarios.load(scenarios.find(name)).title)) for name in scenarios.names()]
        columns = (table.Column(title=""), table.Column(title="", flows=True))
        write([("out", table.draw_table(table.Table(columns=columns, rows=rows), screen_of(sys.stdout)))])
        return 0

    return run_guarded(run)


def _logs(ctx: click.Context) -> Iterable[str]:
    from runup.sandbox.processes import lifecycle

    return sorted(lifecycle.log_files(folder_of(ctx.params.get("data"))))


@sandbox.command()
@click.argument("component", default="", shell_complete=static_completion.complete_from(_logs))
@click.option("-f", "--follow", is_flag=True, help="Continue as lines are written.")
@DATA
def logs(component: str, follow: bool, data: str | None) -> int:
    """Print a log: apiserver, cluster, supervisor, or a pod by a part of its name; without a name, list them.

    \b
      runup sandbox logs apiserver
      runup sandbox logs cluster-version-operator -f
    """
    from kubekit.kube.clock import SystemClock
    from runup.sandbox.processes import lifecycle

    def run() -> int:
        folder = folder_of(data)
        logs_by_name = lifecycle.log_files(folder)
        if not component:
            click.echo("\n".join(sorted(logs_by_name)) or f"no logs in {folder}")
            return 0
        matching_names = [name for name in sorted(logs_by_name) if name == component] or [
            n for n in sorted(logs_by_name) if component in n
        ]
        if not matching_names:
            names = ", ".join(sorted(logs_by_name)) or "it has no logs"
            click.echo(f"error: no log of {component!r} in {folder}; {names}", err=True)
            return 1
        print_log(logs_by_name[matching_names[-1]], follow=follow, clock=SystemClock())
        return 0

    return run_guarded(run)


def print_start(folder: Path, steps: Iterator[Progress]) -> int:
    """Prints each step when it is done, then how to use the sandbox."""
    from runup.sandbox.processes import lifecycle

    for progress in steps:
        click.echo(f"{progress.seconds:5.1f} s  {progress.step} ready")
    _, _, ready = lifecycle.state(folder)
    assert ready is not None
    click.echo(how_to_use(folder, ready))
    return 0


def run_guarded(run: Callable[[], int]) -> int:
    """Runs a command; an error of the sandbox is printed as one line that names a solution."""
    from kubekit.error_types import Terminal
    from runup.cli.errors import CommandError

    try:
        return run()
    except Terminal as error:
        raise CommandError(error.message) from error


def folder_of(data: str | None) -> Path:
    """Returns the data folder: `data` if given, else the default one."""
    from runup.sandbox.processes import lifecycle

    return Path(data).expanduser().absolute() if data else lifecycle.default_data()


def how_to_use(folder: Path, ready: Ready) -> str:
    """Returns what a user needs to know about a running sandbox."""
    runs = f"Kubernetes {ready.version}"
    if ready.releases:
        runs = f"release {ready.version}, of {', '.join(ready.releases)}"
    lines = [
        "",
        f"{ready.title}: {runs}",
        *(f"note: {note}" for note in ready.notes),
    ]
    shown_reasons = ready.left_out[:_LEFT_OUT_SHOWN]
    lines += [f"note: left out, in part or whole: {why}" for why in shown_reasons]
    if more := len(ready.left_out) - len(shown_reasons):
        lines.append(f"note: {more} more objects were left out; `runup sandbox logs cluster` names them")
    unprotected = f" (does not isolate: {', '.join(ready.not_isolated)})" if ready.not_isolated else ""
    lines += [
        f"containers run by {ready.runner}{unprotected}",
        "",
        f"  export KUBECONFIG={folder / 'admin.kubeconfig'}",
        "  runup upgrade" if ready.releases else "  runup upgrade status --watch",
        "",
    ]
    return "\n".join(lines)


def print_log(file: Path, *, follow: bool, clock: Any) -> None:
    """Prints a log file; with `follow`, also prints new lines until interrupted."""
    with file.open(encoding="utf-8", errors="replace") as log:
        while True:
            text = log.read()
            if text:
                click.echo(text, nl=False)
            if not follow:
                return
            clock.pause(0.2)
