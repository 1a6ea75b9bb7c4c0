"""The commands `runup fleet update`: many clusters, stage by stage, from a workstation or a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.fleet.command import cluster_options, complete_context_names
from runup.cli.lazy import Group
from runup.cli.options import option, with_options
from runup.cli.release.shared import run_guarded
from runup.cli.rollout.fleet_update_forms import FORMS
from runup.process.names import FLEET_NAMESPACE

if TYPE_CHECKING:
    from runup.fleet.control.update_driver import Driver, Survey
    from runup.fleet.control.update_journal import Journal
    from runup.fleet.decide.update_records import Kind
    from runup.fleet.decide.update_view import FleetView

F = TypeVar("F", bound=Callable[..., Any])
# Options that have an effect only without a hub, and only with one.
_OF_JOURNAL = frozenset({"journal", "once", "interval"})
_OF_CLUSTERS = frozenset({"contexts", "kubeconfigs", "inventories", "selector", "output"})
_OF_HUB = frozenset({"namespace", "acknowledge", "clusters"})
_JOURNAL = option(
    "--journal",
    metavar="FILE",
    default="",
    shell_complete=static_completion.files,
    help="The journal; else NAME.journal in this folder.",
)
_OUTPUT = option("-o", "--output", type=click.Choice(FORMS), help="Output format for programs, reports and pages.")
_INTERVAL = option("--interval", metavar="DURATION", default="30s", help="How often the clusters are read.")
_ONCE = option("--once", is_flag=True, help="Do what is possible now, and end: for pipelines.")
_REASON = option("--reason", metavar="TEXT", default="", help="Why; it is kept with the update.")
_HUB = option(
    "--hub",
    metavar="CONTEXT",
    default="",
    shell_complete=static_completion.complete_from(complete_context_names),
    help="A hub of Open Cluster Management that carries out the FleetUpdate.",
)
_NAMESPACE = option(
    "-n", "--namespace", metavar="NAME", default="", help=f"With --hub: of the FleetUpdate ({FLEET_NAMESPACE})."
)
_target = click.argument("target", metavar="FILE|NAME", shell_complete=static_completion.files)


@click.group("update", cls=Group)
def update() -> None:
    """Update many clusters, stage by stage, each behind its own gates; from a workstation or a pipeline.

    \b
      runup fleet update plan update.yaml --inventory clusters.yaml
      runup fleet update start update.yaml --inventory clusters.yaml
      runup fleet update status update.yaml
      runup fleet update hold update.yaml
      runup fleet update resume update.yaml
      runup fleet update approve update.yaml --stage main --gate go --reason "change 4711"

    Exit codes: 0 all done; 2 closed gates or running updates (--once); 3 something is unknown (--once); 4 held, or
    an approval is missing; 1 failures beyond the maximum, or an error.
    """


@update.command("plan")
@click.argument("file", shell_complete=static_completion.files)
@cluster_options
@_OUTPUT
@connection_options
@click.pass_context
def plan(ctx: click.Context, /, file: str, output: str | None, **members: Any) -> int:
    """Show waves, ready clusters, why others are not ready, and earliest times; nothing is written.

    \b
      runup fleet update plan update.yaml --inventory clusters.yaml
      runup fleet update plan update.yaml --contexts harbour,lighthouse -o json
    """
    _show(_planned(ctx, file, members), output, plans=True)
    return 0


@update.command("check")
@click.argument("file", metavar="FILE|NAME", shell_complete=static_completion.files)
@cluster_options
@with_options((_OUTPUT, _HUB, _NAMESPACE))
@connection_options
@click.pass_context
def check(ctx: click.Context, /, file: str, output: str | None, hub: str, namespace: str, **members: Any) -> int:
    """Check whether every cluster is ready to start; nothing is written.

    With --hub, check whether the hub can carry out the FleetUpdate: its engine, Placements, and the update itself.

    Exit codes: 0 every cluster is ready or updated; 2 a gate is closed; 3 a cluster is unknown; 1 an error.

    \b
      runup fleet update check update.yaml --inventory clusters.yaml
      runup fleet update check update.yaml --contexts harbour,lighthouse -o junit
      runup fleet update check update.yaml --hub hub
    """
    if _is_on_hub(ctx, hub, not_on_hub=_OF_CLUSTERS):
        from runup.cli.rollout import fleet_hub

        text, code = fleet_hub.check(ctx, file, hub=hub, namespace=namespace)
        _say(text)
        return code
    view = _planned(ctx, file, members)
    _show(view, output, plans=True)
    return view.check_code


@update.command("start")
@click.argument("file", shell_complete=static_completion.files)
@cluster_options
@with_options((_JOURNAL, _ONCE, _INTERVAL, _OUTPUT))
@connection_options
@click.pass_context
def start(
    ctx: click.Context,
    /,
    file: str,
    journal: str,
    once: bool,
    interval: str,
    output: str | None,
    **members: Any,
) -> int:
    """Begin the update and its journal, and follow it until it is over.

    \b
      runup fleet update start update.yaml --inventory clusters.yaml
      runup fleet update start update.yaml --contexts harbour,lighthouse --once -o junit
    """
    from runup.fleet.control import update_driver, update_journal
    from runup.rollout.decide.durations import parse

    def run() -> int:
        interval_s = parse(interval, "--interval").total_seconds()
        path, _ = _journal_of(file, journal)
        if path.exists() and path.stat().st_size:
            way_out = f"`runup fleet update resume {file}` continues it; for another update give --journal OTHER"
            raise CommandError(f"{path} exists: {way_out}")
        survey, left_out = _surveyed(ctx, file, members)
        with update_journal.driver(path) as drives:
            if not drives:
                raise CommandError(f"another process drives the update of {path}; `runup fleet update status` shows it")
            update_driver.begin(path, survey)
            return _drive(ctx, path, once=once, interval_s=interval_s, output=output, left_out=left_out)

    return run_guarded(run)


@update.command("resume")
@_target
@with_options((_JOURNAL, _ONCE, _INTERVAL, _OUTPUT, _HUB, _NAMESPACE))
@option("--acknowledge", is_flag=True, help="With --hub: continue although the fuse has blown; its cause is fixed.")
@connection_options
@click.pass_context
def resume(
    ctx: click.Context,
    /,
    target: str,
    journal: str,
    once: bool,
    interval: str,
    output: str | None,
    hub: str,
    namespace: str,
    acknowledge: bool,
) -> int:
    """Continue an update that was held, or whose process has ended. Every cluster is read first.

    On a hub, the controller continues a FleetUpdate that was held or, with --acknowledge, whose fuse has blown.

    \b
      runup fleet update resume update.yaml
      runup fleet update resume five-one --hub hub
    """
    from runup.fleet.control import update_journal
    from runup.rollout.decide.durations import parse

    if _is_on_hub(ctx, hub):
        return _control_on_hub(ctx, target, hub, namespace, word="resume", acknowledges=acknowledge)

    def run() -> int:
        interval_s = parse(interval, "--interval").total_seconds()
        path, _ = _journal_of(target, journal)
        with _opened(target, journal) as opened:
            control = _control_of(opened)
            if control == "Abort":
                raise CommandError(f"{path} was aborted: begin another update with --journal OTHER")
            if control == "Hold":
                _record(ctx, opened, "control", data={"control": "Run"})
        with update_journal.driver(path) as drives:
            if not drives:
                _say(f"Another process drives the update of {path}, and continues it\n")
                return 0
            return _drive(ctx, path, once=once, interval_s=interval_s, output=output)

    return run_guarded(run)


@update.command("status")
@_target
@with_options((_JOURNAL, _OUTPUT, _HUB, _NAMESPACE))
@option("--clusters", is_flag=True, help="With --hub: also each cluster, and why it waits.")
@connection_options
@click.pass_context
def status(
    ctx: click.Context,
    /,
    target: str,
    journal: str,
    output: str | None,
    hub: str,
    namespace: str,
    clusters: bool,
) -> int:
    """Show stages and clusters as they are now; nothing is written.

    On a hub, stages, turns and troubles are those that its controller has stored.

    Exit codes: those of `--once`.

    \b
      runup fleet update status update.yaml
      runup fleet update status 5.1 -o html > update.html
      runup fleet update status five-one --hub hub
    """

    def run() -> int:
        if _is_on_hub(ctx, hub):
            from runup.cli.rollout import fleet_hub

            wants_clusters = clusters or output is not None
            shown = fleet_hub.view(ctx, target, hub=hub, namespace=namespace, clusters=wants_clusters)
            _show(shown, output)
            return shown.exit_code
        with _opened(target, journal) as opened:
            view = _view(_driver(ctx, opened).survey())
        _show(view, output)
        return view.exit_code

    return run_guarded(run)


@update.command("watch")
@_target
@with_options((_JOURNAL, _INTERVAL, _HUB, _NAMESPACE))
@connection_options
@click.pass_context
def watch(ctx: click.Context, /, target: str, journal: str, interval: str, hub: str, namespace: str) -> int:
    """Follow an update that another process drives, until it is over; nothing is written.

    \b
      runup fleet update watch update.yaml
      runup fleet update watch 5.1 --interval 5m
      runup fleet update watch five-one --hub hub
    """
    from kubekit.kube.clock import SystemClock
    from runup.rollout.decide.durations import parse

    def run() -> int:
        interval_s = parse(interval, "--interval").total_seconds()
        if _is_on_hub(ctx, hub, not_on_hub=frozenset({"journal"})):
            shown = _watched_on_hub(ctx, target, hub, namespace, interval_s=interval_s)
            _show(shown, None)
            return shown.exit_code
        changes = _Changes()
        with _opened(target, journal) as opened:
            driver = _driver(ctx, opened)
            while True:
                survey = driver.survey()
                changes.show(survey)
                if survey.turns.over:
                    break
                SystemClock().pause(interval_s)
        view = _view(survey)
        _show(view, None)
        return view.exit_code

    return run_guarded(run)


@update.command("hold")
@_target
@with_options((_JOURNAL, _REASON, _HUB, _NAMESPACE))
@connection_options
@click.pass_context
def hold(ctx: click.Context, /, target: str, journal: str, reason: str, hub: str, namespace: str) -> int:
    """Start nothing more until `resume`; updates that have begun continue.

    \b
      runup fleet update hold update.yaml --reason "incident 12"
      runup fleet update hold five-one --hub hub
    """
    if _is_on_hub(ctx, hub):
        return _control_on_hub(ctx, target, hub, namespace, word="hold", reason=reason)
    return _control(ctx, target, journal, control="Hold", reason=reason)


@update.command("abort")
@_target
@with_options((_JOURNAL, _REASON, _HUB, _NAMESPACE))
@connection_options
@click.pass_context
def abort(ctx: click.Context, /, target: str, journal: str, reason: str, hub: str, namespace: str) -> int:
    """End the update: nothing more is started, its preflights are taken back; updates that have begun continue.

    \b
      runup fleet update abort update.yaml
      runup fleet update abort five-one --hub hub
    """
    if _is_on_hub(ctx, hub):
        return _control_on_hub(ctx, target, hub, namespace, word="abort", reason=reason)
    return _control(ctx, target, journal, control="Abort", reason=reason)


@update.command("approve")
@_target
@option("--stage", metavar="NAME", required=True, help="The stage whose gate is approved.")
@option("--gate", metavar="NAME", required=True, help="The name of the approval in the file.")
@option("--reason", metavar="TEXT", required=True, help="Why, for example a change number.")
@option("--until", metavar="TIME", default="", help="The approval ends then, such as 2026-12-24T22:00:00Z.")
@with_options((_JOURNAL, _HUB, _NAMESPACE))
@connection_options
@click.pass_context
def approve(
    ctx: click.Context,
    /,
    target: str,
    stage: str,
    gate: str,
    reason: str,
    until: str,
    journal: str,
    hub: str,
    namespace: str,
) -> int:
    """Record an approval in the journal, by the user of this machine, for the release image of this update.

    On a hub, the approval is an UpdateApproval, and the hub's API server verifies that the user may give it.

    \b
      runup fleet update approve update.yaml --stage main --gate go --reason "change 4711"
      runup fleet update approve 5.1 --stage main --gate go --reason "4711" --until 2026-12-24T22:00:00Z
      runup fleet update approve five-one --hub hub --stage main --gate go --reason "change 4711"
    """
    from kubekit.kube.clock import SystemClock
    from kubekit.lang.text import timestamp
    from runup.rollout.decide.approvals import refuse_unknown_approval
    from runup.rollout.decide.durations import parse_moment

    def run() -> int:
        if _is_on_hub(ctx, hub):
            from runup.cli.rollout import fleet_hub

            words = {"hub": hub, "namespace": namespace, "stage": stage, "gate": gate, "reason": reason, "until": until}
            _say(fleet_hub.approve(ctx, target, **words))
            return 0
        end = parse_moment(until, "--until") if until else None
        if not reason.strip():
            raise CommandError("--reason must not be empty")
        if end is not None and end <= SystemClock().now():
            raise CommandError(f"--until {timestamp(end)} must be later than now")
        with _opened(target, journal) as opened:
            spec = opened.start.update.spec
            refuse_unknown_approval(opened.start.update, stage, gate)
            data = {"stage": stage, "gate": gate, "reason": reason.strip()} | (
                {"until": end.isoformat()} if end else {}
            )
            user = _record(ctx, opened, "approval", data=data)
        _say(f"Approved {gate} of stage {stage} for {spec.target.version} as {user}\n")
        return 0

    return run_guarded(run)


@update.command("retry")
@_target
@click.argument("clusters", nargs=-1)
@with_options((_JOURNAL, _REASON, _HUB, _NAMESPACE))
@option("--stage", metavar="NAME", default="", help="With --hub: the stage that is opened again.")
@connection_options
@click.pass_context
def retry(
    ctx: click.Context,
    /,
    target: str,
    clusters: tuple[str, ...],
    journal: str,
    reason: str,
    hub: str,
    namespace: str,
    stage: str,
) -> int:
    """Let clusters that failed or were skipped start again, with their gates from the beginning.

    On a hub, a stage is opened again: its clusters that joined late or used up their rounds get turns.

    \b
      runup fleet update retry update.yaml harbour
      runup fleet update retry 5.1 harbour lighthouse
      runup fleet update retry five-one --hub hub --stage main
    """
    if _is_on_hub(ctx, hub):
        from runup.cli.rollout import fleet_hub

        if clusters or not stage:
            raise CommandError("a hub opens a whole stage again: give --stage, and no clusters")
        _say(fleet_hub.retry(ctx, target, hub=hub, namespace=namespace, stage=stage))
        return 0
    if stage or not clusters:
        raise CommandError("without a hub, clusters are retried: name them after the update, without --stage")
    return _decide_clusters(ctx, target, journal, clusters, kind="retry", reason=reason)


@update.command("skip")
@_target
@click.argument("clusters", nargs=-1, required=True)
@with_options((_JOURNAL, _REASON))
@connection_options
@click.pass_context
def skip(ctx: click.Context, /, target: str, clusters: tuple[str, ...], journal: str, reason: str) -> int:
    """Leave clusters out; a cluster whose update has begun continues. A failed one no longer counts as a failure.

    \b
      runup fleet update skip update.yaml harbour --reason "is decommissioned"
      runup fleet update skip 5.1 harbour lighthouse
    """
    return _decide_clusters(ctx, target, journal, clusters, kind="skip", reason=reason)


def _is_on_hub(ctx: click.Context, hub: str, *, not_on_hub: frozenset[str] = _OF_JOURNAL) -> bool:
    """Reports whether a hub carries out the update. Raises CommandError for options that do not go together."""
    wrong = [
        each.opts[-1]
        for each in ctx.command.params
        if isinstance(each, click.Option)
        and each.name in (not_on_hub if hub else _OF_HUB)
        and ctx.get_parameter_source(each.name) is ParameterSource.COMMANDLINE
    ]
    if wrong:
        names = " and ".join(wrong)
        raise CommandError(
            f"{names} has no effect on a hub, which has neither a journal nor an inventory: leave it out"
            if hub
            else f"{names} needs --hub"
        )
    return bool(hub)


def _watched_on_hub(ctx: click.Context, target: str, hub: str, namespace: str, *, interval_s: float) -> FleetView:
    """Shows the counts of an update on a hub whenever they change, until it is over; returns it as it is then."""
    from kubekit.kube.clock import SystemClock
    from kubekit.lang.text import one_line
    from runup.cli.rollout import fleet_hub
    from runup.cli.rollout.fleet_update_forms import headline

    known = ""
    while True:
        shown = fleet_hub.view(ctx, target, hub=hub, namespace=namespace, clusters=False)
        if shown.is_over:
            return shown
        line = f"{one_line(headline(shown))} ({shown.outcome})"
        if line != known:
            _say(f"{shown.observed:%H:%M:%SZ} {line}\n")
        known = line
        SystemClock().pause(interval_s)


def _control_on_hub(ctx: click.Context, target: str, hub: str, namespace: str, **change: Any) -> int:
    from runup.cli.rollout import fleet_hub

    _say(fleet_hub.control(ctx, target, hub=hub, namespace=namespace, **change))
    return 0


def _planned(ctx: click.Context, file: str, members: dict[str, Any]) -> FleetView:
    views: list[FleetView] = []

    def run() -> int:
        survey, left_out = _surveyed(ctx, file, members)
        views.append(_view(survey, left_out))
        return 0

    run_guarded(run)
    return views[0]


def _surveyed(ctx: click.Context, file: str, members: dict[str, Any]) -> tuple[Survey, tuple[str, ...]]:
    """Returns the survey of an update that has not begun, and the clusters that no stage selects."""
    from kubekit.kube.clock import SystemClock
    from runup.cli.fleet.shared import warnings
    from runup.cli.output import write
    from runup.fleet.control.fleet_members import NamedMembers, resolve_members
    from runup.fleet.control.update_driver import survey_file
    from runup.rollout.control import fleet_files

    connection = connection_of(ctx)
    fleet_file = fleet_files.read(file)
    contexts = tuple(name for names in members["contexts"] for name in names.split(",") if name)
    named = NamedMembers(
        contexts=contexts,
        kubeconfigs=members["kubeconfigs"],
        inventories=members["inventories"],
        selector=members["selector"],
    )
    with resolve_members(named, connection) as (found, notes):
        survey, left_out = survey_file(fleet_file, found, connection, SystemClock())
    write(warnings(notes))
    return survey, left_out


def _journal_of(target: str, journal: str) -> tuple[Path, str]:
    """Returns the journal of a file or a name, and the file if it is one."""
    from runup.rollout.control import fleet_files

    is_file = Path(target).is_file() and Path(target).suffix in (".yaml", ".yml", ".json")
    if journal:
        return Path(journal), target if is_file else ""
    if not is_file:
        return Path(f"{target}.journal"), ""
    return Path(f"{fleet_files.read(target).update.metadata.name}.journal"), target


@contextmanager
def _opened(target: str, journal: str) -> Iterator[Journal]:
    """Yields the journal. Raises CommandError if the file has changed since the start."""
    from runup.fleet.control.update_journal import open_journal
    from runup.rollout.control import fleet_files

    path, file = _journal_of(target, journal)
    with open_journal(path) as opened:
        if file:
            read = fleet_files.read(file)
            if (read.update, read.calendars) != (opened.start.update, opened.start.calendars):
                name = opened.start.update.metadata.name
                way_out = (
                    f"`runup fleet update resume {name}` continues what was started; a changed file is another update"
                )
                raise CommandError(f"{file} has changed since {path} was begun: {way_out}")
        yield opened


def _driver(ctx: click.Context, journal: Journal) -> Driver:
    from kubekit.kube.clock import SystemClock
    from runup.fleet.control.update_driver import Driver

    return Driver(journal, connection_of(ctx), SystemClock())


def _drive(
    ctx: click.Context,
    path: Path,
    *,
    once: bool,
    interval_s: float,
    output: str | None,
    left_out: tuple[str, ...] = (),
) -> int:
    """Drives the update until it is over, or until a signal; returns the exit code."""
    from kubekit.kube.clock import SystemClock
    from runup.fleet.control.update_driver import drive
    from runup.fleet.control.update_journal import open_journal
    from runup.process.ending_signals import exit_on_signal

    code = 0
    changes = _Changes(quiet=output is not None)
    try:
        with exit_on_signal(), open_journal(path) as opened:
            survey = drive(_driver(ctx, opened), SystemClock(), changes.show, once=once, interval_s=interval_s)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    if code:
        line = f"runup fleet update resume {path.name.removesuffix('.journal')} --journal {path}"
        _say(f"Nothing more is started; updates that have begun continue. To resume: {line}\n", stream="err")
        return code
    view = _view(survey, left_out)
    _show(view, output)
    return view.exit_code


class _Changes:
    """Shows each change of a cluster's state on a line."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._states: dict[str, tuple[str, str]] = {}
        self._quiet = quiet

    def show(self, survey: Survey) -> None:
        """Writes the lines of the clusters whose state has changed since the last survey."""
        from kubekit.lang.text import one_line

        view = _view(survey)
        for each in view.clusters:
            known = self._states.get(each.name)
            if known != (each.state, each.reason) and (known is not None or each.state != "waiting"):
                why = f" ({each.reason})" if each.reason else ""
                line = f"{view.observed:%H:%M:%SZ} {one_line(each.name)}: {each.state}{why}\n"
                _say(line, stream="err" if self._quiet else "out")
            self._states[each.name] = each.state, each.reason


def _view(survey: Survey, left_out: tuple[str, ...] = ()) -> FleetView:
    from kubekit.kube.clock import SystemClock
    from runup.fleet.decide.update_view import view_of

    clusters = [(each.progress, each.verdict) for each in survey.clusters]
    return view_of(survey.start.update, clusters, survey.turns, SystemClock().now(), left_out=left_out)


def _show(view: FleetView, output: str | None, *, plans: bool = False) -> None:
    from runup.cli.output import screen_of, write
    from runup.cli.render.text import out
    from runup.cli.rollout import fleet_update_forms

    if output:
        write([out(fleet_update_forms.render(view, output))])
    else:
        write(map(out, fleet_update_forms.text(view, screen_of(sys.stdout), plans=plans)))


def _say(text: str, *, stream: str = "out") -> None:
    from runup.cli.output import write
    from runup.cli.render.text import err, out

    write([out(text) if stream == "out" else err(text)])


def _control_of(journal: Journal) -> str:
    from runup.fleet.decide.update_records import requests_of

    return requests_of(journal.entries(), "").decisions.control


def _record(
    ctx: click.Context, journal: Journal, kind: Kind, cluster: str = "", data: dict[str, str] | None = None
) -> str:
    """Adds a decision to the journal, and returns the user of this machine who made it."""
    import getpass

    from kubekit.kube.clock import SystemClock

    try:
        user = connection_of(ctx).as_user or getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    journal.add(kind, SystemClock().now(), cluster, {**(data or {}), "by": user})
    return user


def _control(ctx: click.Context, target: str, journal: str, *, control: str, reason: str) -> int:
    """Records a hold or an abort, and carries it out unless another process drives the update."""
    from runup.fleet.control import update_journal

    def run() -> int:
        path, _ = _journal_of(target, journal)
        with _opened(target, journal) as opened:
            if _control_of(opened) == "Abort":
                raise CommandError(f"{path} was aborted already")
            _record(ctx, opened, "control", data={"control": control, "reason": reason})
            words = {"Hold": "Held", "Abort": "Aborted"}
            _say(f"{words[control]}: nothing more is started; updates that have begun continue\n")
            with update_journal.driver(path) as drives:
                if drives:
                    _driver(ctx, opened).make_pass()
        return 0

    return run_guarded(run)


def _decide_clusters(
    ctx: click.Context, target: str, journal: str, names: tuple[str, ...], *, kind: Kind, reason: str
) -> int:
    """Records that clusters are retried or skipped."""
    from runup.fleet.decide.update_records import refuse_decision

    def run() -> int:
        with _opened(target, journal) as opened:
            clusters = {each.member.name: each.progress for each in _driver(ctx, opened).survey().clusters}
            for name in names:
                refuse_decision(kind, name, clusters)
            for name in names:
                _record(ctx, opened, kind, name, data={"reason": reason})
        word = "Retried" if kind == "retry" else "Skipped"
        _say(f"{word} {', '.join(names)}; `runup fleet update resume` carries it out\n")
        return 0

    return run_guarded(run)
