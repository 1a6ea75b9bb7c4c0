"""A click group whose commands are imported when they are used, not when they are listed.

In: a table of names, places and one-line summaries. Out: a group whose help and completion read the table alone, so
that `runup version` need not import what `runup upgrade` needs.

`Command` and `Group` print help: examples by the name that the command was called by (`kubectl runup`), options
grouped by purpose, and the options common to all commands last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from runup.cli.options import HelpOption

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Sections = tuple[tuple[str, tuple[str, ...]], ...]
_WHOLE = 500
# Beginnings of the placeholders of options that name what is read, and the parameter that names a hosted cluster.
_MUST_BE_NAMED = ("DIR", "FILE", "hosted_cluster")
_SHARED = ("kubeconfig", "context", "as_user", "as_group")
_OURS = r"(?<![\w./-])(?<!kubectl )(?<!oc )runup(?= [a-z])"
_NEAR = 0.7


class _Formatter(click.HelpFormatter):
    """A help formatter whose examples use the name that the command was called by."""

    program = "runup"

    def getvalue(self) -> str:
        return re.sub(_OURS, self.program, super().getvalue())


class Context(click.Context):
    """A click context whose help uses the program's name."""

    def make_formatter(self) -> click.HelpFormatter:
        formatter = _Formatter(width=self.terminal_width, max_width=self.max_content_width)
        formatter.program = self.find_root().info_name or "runup"
        return formatter


class _Helping(click.Command):
    """A click command with our own `--help` option."""

    _help: HelpOption | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Returns the same option each time, because click compares it by identity."""
        names = self.get_help_option_names(ctx)
        if names and (self._help is None or set(self._help.opts) != set(names)):
            self._help = HelpOption(names)
        return self._help

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does; `help` alone, or nothing where the command needs arguments, prints the help."""
        if not ctx.resilient_parsing and (args == ["help"] or (self.no_args_is_help and not args)):
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            _refuse_empty_names(self, ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. Raises CommandError if it needs the sandbox's package, which an extra brings."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            from runup.cli.errors import CommandError
            from runup.extras import SANDBOX, missing_sandbox

            if error.name != SANDBOX:
                raise
            raise CommandError(f"{ctx.command_path} needs the sandbox: {missing_sandbox()}") from error


def _refuse_empty_names(command: click.Command, ctx: click.Context) -> None:
    """Raises UsageError for a file, folder or hosted cluster whose name is empty, as an unset variable leaves it.

    Without it the command would read the live cluster instead. An empty `--kubeconfig` is the default, as in kubectl.
    """
    for param in command.params:
        value, name = ctx.params.get(param.name or ""), getattr(param, "metavar", None) or ""
        if not name.startswith(_MUST_BE_NAMED) and param.name not in _MUST_BE_NAMED:
            continue
        if (
            (value == "" or (isinstance(value, tuple) and "" in value))
            and param.name
            and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
        ):
            raise click.UsageError(f"{param.opts[0]} must not be empty: name what to read, or leave it out", ctx)


class Command(_Helping):
    """A click command whose help groups its options by `sections`: (title, names of parameters)."""

    context_class = Context

    def __init__(self, *args: Any, sections: Sections = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options by section: those in no section under `Options`, the connection options last."""
        _format_options(self, self.sections, ctx, formatter)


def _format_options(
    command: click.Command, sections: Sections, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Writes the options into the help, a section each; an option without a section goes to "Options"."""
    titles = {name: title for title, names in (*sections, ("Cluster", _SHARED)) for name in names}
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (*(t for t, _ in sections), "Options", "Cluster")}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            rows[titles.get(param.name or "", "Options")].append(record)
    for title, records in rows.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


class Group(_Helping, click.Group):
    """A click group that completes its commands with their whole first sentence; click cuts it at 45 characters."""

    context_class = Context
    command_class = Command

    def __init__(
        self, *args: Any, sections: Sections = (), suggest_for: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        # What other tools call a command of this group -> its name here.
        self.suggest_for = suggest_for or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options as a command does, then the list of commands."""
        _format_options(self, self.sections, ctx, formatter)
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the names of commands and options."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=self.summary(ctx, name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolves a command as click does, but reports an unknown name with everything after it, as `oc` does.

        Beyond oc: a name close to a command's, or what other tools call it, gets that one as a hint.
        """
        # `help NAME` is `NAME --help`.
        if args[0] == "help" and args[1:] and self.get_command(ctx, args[1]) is not None:
            args = [*args[1:], "--help"]
        # Completion parses resiliently: an unfinished name is no error there.
        if ctx.resilient_parsing or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        from kubekit.lang.gotext import quote_go
        from runup.cli.errors import UsageProblem

        # A wrong hint is worse than none, so only a near match counts.
        typed_name = args[0].lower()
        suggested = self.suggest_for.get(typed_name)
        near = [suggested] if suggested else get_close_matches(typed_name, self.list_commands(ctx), n=1, cutoff=_NEAR)
        hint = f"; did you mean {quote_go(near[0])}?" if near else ""
        raise UsageProblem(f"unknown command {quote_go(' '.join(args))}{hint}", ctx)

    def summary(self, ctx: click.Context, name: str) -> str | None:
        """Returns one line about the command of that name."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_WHOLE) if command is not None else None


class LazyGroup(Group):
    """A group over `places` (name -> "module:attribute") and `summaries` (name -> one line of help)."""

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str] | None = None,
        summaries: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.places = places or {}
        self.summaries = summaries or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns every name of the table, in its order."""
        return [*self.places, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of that name, imported now; None if the table has no such name."""
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(__import__(module, fromlist=[attribute]), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands in `--help`, those of the table from the table."""
        rows = [(name, self.summary(ctx, name) or "") for name in self.list_commands(ctx)]
        if not rows:
            return
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def summary(self, ctx: click.Context, name: str) -> str | None:
        """Returns the line from the table, without importing any command of it."""
        return self.summaries.get(name) if name in self.places else super().summary(ctx, name)
